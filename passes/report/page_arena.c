/* The arena over the schedule as a picture. */
#include "passes/report/plan_page.h"
#include "passes/report/report.h"
#include "runtime/support/number.h"

#include <inttypes.h>

enum {
	WIDTH = 1080, HEIGHT = 460, LEFT = 70, BOTTOM = 26, TOP = 18,
	MANY = 20000,                   /* places: small ones are left out */
	SMALL = 4000                    /* ... below this part of the arena */
};

struct arena_scale {
	double x, y;                    /* of a step, of a byte */
};

static double
top_of(const struct arena_scale *s, double bytes)
{
	return HEIGHT - BOTTOM - bytes * s->y;
}

/* First step behind those of the phase and of what stands before it. */
static int64_t
phase_end(const Plan *plan, Phase phase)
{
	int64_t end = 0;

	for (int64_t i = 0; i < plan->nstep; i++)
		if (plan->step[i].phase == phase)
			end = i + 1;
	return end;
}

static void
put_arena_axes(const Plan *plan, const struct arena_scale *s, FILE *out)
{
	char buf[24];

	for (int i = 0; i <= 4; i++) {
		double bytes = (double)plan->sum.arena * i / 4;
		double y = top_of(s, bytes);

		fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#e4e4e4\"/>"
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s"
		        "</text>\n", LEFT, y, WIDTH, LEFT - 6, y + 4,
		        number_bytes(buf, bytes));
	}
}

static void
put_phase(const struct arena_scale *s, int64_t from, int64_t to,
          const char *name, FILE *out)
{
	if (to <= from)
		return;
	fprintf(out, "<path d=\"M%.2f %dV%d\" stroke=\"#111\" stroke-dasharray"
	        "=\"3 3\"/><text x=\"%.2f\" y=\"%d\">%s</text>\n",
	        LEFT + (double)from * s->x, TOP, HEIGHT - BOTTOM,
	        LEFT + (double)from * s->x + 3, HEIGHT - 8, name);
}

static void
put_phases(const Plan *plan, const struct arena_scale *s, FILE *out)
{
	int64_t forward = phase_end(plan, PH_FORWARD);
	int64_t backward = phase_end(plan, PH_BACKWARD);

	put_phase(s, 0, forward, "forward", out);
	put_phase(s, forward, backward, "backward", out);
	put_phase(s, backward > forward ? backward : forward, plan->nstep,
	          "update", out);
}

static void
put_place(const struct page *g, int64_t i, const struct arena_scale *s)
{
	const struct plan_tensor *t = &g->plan->tensor[i];
	FILE *out = g->out;

	fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
	        "height=\"%.2f\"><title>", page_class(t),
	        LEFT + (double)t->first * s->x,
	        top_of(s, (double)(t->offset + t->bytes)),
	        (double)(t->last - t->first + 1) * s->x,
	        (double)t->bytes * s->y);
	page_title(g, i);
	fputs("</title></rect>\n", out);
}

static bool
has_bytes(const struct plan_tensor *t)
{
	return !t->resident && t->bytes;
}

void
page_arena(const struct page *g)
{
	const Plan *plan = g->plan;
	FILE *out = g->out;
	struct arena_scale s;
	int64_t n = 0, small = 0;

	if (!plan->nstep || !plan->sum.arena) {
		fputs("<p>The arena is empty.\n", out);
		return;
	}
	s.x = (WIDTH - LEFT) / (double)plan->nstep;
	s.y = (HEIGHT - BOTTOM - TOP) / (double)plan->sum.arena;
	for (int64_t i = 0; i < plan->ntensor; i++)
		n += has_bytes(&plan->tensor[i]);
	fprintf(out, "<div><svg id=\"arena\" width=\"%d\" height=\"%d\" "
	        "viewBox=\"0 0 %d %d\" role=\"img\" font-size=\"11\">\n<title>"
	        "bytes of the arena over %" PRId64 " instructions</title>\n",
	        WIDTH, HEIGHT, WIDTH, HEIGHT, plan->nstep);
	put_arena_axes(plan, &s, out);
	fputs("<g stroke=\"#fff\" stroke-width=\"0.2\">\n", out);
	for (int64_t i = 0; i < plan->ntensor; i++) {
		if (!has_bytes(&plan->tensor[i]))
			continue;
		if (n > MANY && plan->tensor[i].bytes
		    < plan->sum.arena / SMALL)
			small++;
		else
			put_place(g, i, &s);
	}
	fputs("</g>\n", out);
	put_phases(plan, &s, out);
	fputs("</svg></div>\n", out);
	if (small)
		fprintf(out, "<p>%" PRId64 " tensors smaller than 1/%d of the "
		        "arena are not shown.\n", small, SMALL);
}
