/* How depthwise convolutions (one input channel per group) are laid out for
 * their kernel. */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

enum {
	DEPTHWISE_FLOATS = 6144,        /* copies of one task: first cache */
	DEPTHWISE_LANES = 16,           /* of a vector, which may overrun */
	DEPTHWISE_MOST = 1 << 30,       /* most floats of workspace, ... */
	DEPTHWISE_TABLE = 1 << 12,      /* ... most taps, most phases */
};

static int64_t
in_lanes(int64_t n)
{
	return ceil_div(n, DEPTHWISE_LANES) * DEPTHWISE_LANES;
}

/* Most images in a task, so that tasks are alike. */
static int64_t
images_of_task(int64_t images, int64_t floats)
{
	int64_t n = smaller(images, DEPTHWISE_FLOATS / larger(floats, 1));

	while (n > 1 && images % n)
		n--;
	return larger(n, 1);
}

struct conv_depthwise
conv_depthwise(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	struct conv_depthwise t = { .image = 1 };
	int64_t phases = 1, taps = w.kernel[0] * w.kernel[1] * w.kernel[2];

	if (w.cin != 1 || w.group < 2)
		return t;
	for (int i = 0; i < WINDOW_DIMS; i++) {
		int64_t reach = (w.kernel[i] - 1) * w.dilation[i];

		t.phases[i] = smaller(w.stride[i], reach + 1);
		t.room[i] = w.out[i] + reach / w.stride[i];
		if (!mul_ok(t.image, t.room[i], &t.image)
		    || !mul_ok(phases, t.phases[i], &phases)
		    || t.image > DEPTHWISE_MOST || phases > DEPTHWISE_TABLE)
			return t;
	}
	t.images = images_of_task(w.images, t.image * (phases + 1));
	t.size = in_lanes(t.images * t.image);
	t.run = ((w.out[0] - 1) * t.room[1] + w.out[1] - 1) * t.room[2]
		+ w.out[2];
	t.lead = in_lanes(t.image - t.run);
	t.run += (t.images - 1) * t.image;
	t.all = phases * t.size + DEPTHWISE_LANES;
	t.workspace = t.all + t.lead + t.size + DEPTHWISE_LANES;
	t.fits = taps <= DEPTHWISE_TABLE && t.workspace <= DEPTHWISE_MOST;
	return t;
}

/* Offset of a tap's run in its phase; the phase. */
static int64_t
tap_at(const struct window *w, const struct conv_depthwise *t, int64_t tap,
       int64_t *phase)
{
	int64_t at = 0, i[WINDOW_DIMS];

	for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
		i[d] = tap % w->kernel[d] * w->dilation[d];
		tap /= w->kernel[d];
	}
	*phase = 0;
	for (int d = 0; d < WINDOW_DIMS; d++) {
		*phase = *phase * t->phases[d] + i[d] % w->stride[d];
		at = at * t->room[d] + i[d] / w->stride[d];
	}
	return at;
}

/* Taps in the order of weights, with their places among all phases. */
static void
emit_taps(struct emit *e, const struct window *w,
          const struct conv_depthwise *t, int64_t taps)
{
	for (int64_t k = 0; k < taps; k++) {
		int64_t phase, at = tap_at(w, t, k, &phase);

		out_line(e->out, "{ %lld, %lld },", (long long)k,
		         (long long)(phase * t->size + at));
	}
}

/* ... phase by phase; where each ends goes to `ends`. */
static void
emit_taps_by_phase(struct emit *e, const struct window *w,
                   const struct conv_depthwise *t, int64_t taps, int64_t *ends)
{
	int64_t phases = t->phases[0] * t->phases[1] * t->phases[2], n = 0;

	for (int64_t p = 0; p < phases; p++) {
		for (int64_t k = 0; k < taps; k++) {
			int64_t phase, at = tap_at(w, t, k, &phase);

			if (phase != p)
				continue;
			out_line(e->out, "{ %lld, -%lld },", (long long)k,
			         (long long)at);
			n++;
		}
		ends[p] = n;
	}
}

void
emit_depthwise(struct emit *e, const Node *n, bool by_phase)
{
	struct window w = window_of(e->g, n);
	struct conv_depthwise t = conv_depthwise(e->g, n);
	int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
	int64_t phases = t.phases[0] * t.phases[1] * t.phases[2];
	int64_t *ends = arena_array(e->arena, (size_t)phases, sizeof *ends);

	out_line(e->out, "static const struct ckr_tap taps1[] = {");
	if (by_phase)
		emit_taps_by_phase(e, &w, &t, taps, ends);
	else
		emit_taps(e, &w, &t, taps);
	out_line(e->out, "};");
	if (by_phase) {
		out_line(e->out, "static const int64_t ends1[] = {");
		for (int64_t p = 0; p < phases; p++)
			out_line(e->out, "%lld,", (long long)ends[p]);
		out_line(e->out, "};");
	}
	out_line(e->out, "static const struct ckr_thin t1 = {");
	emit_triple(e, "phases", t.phases);
	emit_triple(e, "room", t.room);
	EMIT_MEMBERS(e, "images image size all", t.images, t.image, t.size,
	             t.all);
	out_line(e->out, ".run = %lld, .lead = %lld, .tap = taps1,%s",
	         (long long)t.run, (long long)t.lead,
	         by_phase ? " .ends = ends1," : "");
	out_line(e->out, "};");
}
