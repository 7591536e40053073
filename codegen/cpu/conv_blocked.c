/* Work items of convolutions for a library that takes a channel-blocked layout
 * (nChw16c).
 *
 * All work items have one shape, so that one prepared convolution serves all
 * of them.  They depend only on the shapes of the operands.  If the rows do
 * not divide evenly, the last work item overlaps the one before.
 */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/tile.h"

static int64_t
padded_channels(int64_t channels)
{
	return ceil_div(channels, BLOCK) * BLOCK;
}

/* Two spatial dims at most, sizes that a 32-bit int holds with room to spare,
 * and channels that mostly fill their blocks.  1x1 is a matrix product as it
 * is; blocks of floats pay only where its rows are short. */
static bool
is_suited(const struct window *w, Op op, bool half)
{
	int64_t cin = w->cin <= BLOCK_PLAIN ? w->cin : padded_channels(w->cin);
	int64_t most = 1 << 20;

	if (!half && w->kernel[1] == 1 && w->kernel[2] == 1
	    && (op == OP_CONV_DW || w->out[1] > BLOCK_POINTS
	        || w->out[1] * w->out[2] > BLOCK_POINTS))
		return false;
	if (w->in[0] != 1 || w->out[0] != 1 || w->kernel[0] != 1
	    || w->begin[0] != 0 || w->images < 1 || w->cin < 1 || w->cout < 1
	    || w->images > most || w->cin > most || w->cout > most
	    || (w->group > 1 && w->cin <= BLOCK_PLAIN))
		return false;
	for (int i = 1; i < WINDOW_DIMS; i++)
		if (w->in[i] < 1 || w->out[i] < 1 || w->in[i] > most
		    || w->out[i] > most || w->kernel[i] > 64
		    || w->stride[i] > 64 || w->dilation[i] > 64
		    || w->begin[i] < 0 || w->begin[i] > most)
			return false;
	return cin * padded_channels(w->cout) <= 2 * w->cin * w->cout;
}

/* Set the part of x that `lines` rows of windows cover, and the floats that a
 * task touches; returns their sum. */
static int64_t
set_task_size(struct conv_blocked *b, const struct window *w, Op op,
              int64_t lines)
{
	int64_t cin = op == OP_CONV_DX ? b->channels : b->cin;
	int64_t cout = op == OP_CONV_DX ? b->cout : b->channels;

	for (int i = 0; i < 2; i++) {
		int64_t n = i ? w->out[2] : lines;

		b->extent[i] = b->point ? n : (n - 1) * w->stride[1 + i]
			+ (w->kernel[1 + i] - 1) * w->dilation[1 + i] + 1;
	}
	b->lines = lines;
	/* copies go by squares: one more is in reach of the last */
	b->x = (ceil_div(b->images * cin * b->extent[0] * b->extent[1], BLOCK)
	        + BLOCK) * BLOCK;
	b->y = (ceil_div(b->images * cout * lines * w->out[2], BLOCK)
	        + BLOCK) * BLOCK;
	return b->x + b->y;
}

/* Choose as many rows of windows as fit in `room` floats, then as many
 * images. */
static void
choose_extent(struct conv_blocked *b, const struct window *w, Op op,
              int64_t room)
{
	int64_t lines = w->out[1], all, n;

	b->halo = 0;
	b->images = 1;
	all = set_task_size(b, w, op, lines);
	if (all > 2 * room) {
		n = ceil_div(all, room);
		if (op == OP_CONV_DX)
			b->halo = ceil_div((w->kernel[1] - 1) * w->dilation[1],
			                   w->stride[1]);
		lines = larger(ceil_div(lines, n), larger(1, b->halo));
		if (lines + b->halo >= w->out[1]) {
			lines = w->out[1];
			b->halo = 0;
		}
		set_task_size(b, w, op, lines + b->halo);
		return;
	}
	for (n = 1; n <= w->images; n++)
		if (w->images % n == 0 && n * all <= room
		    && (n == 1 || w->group * (w->images / n) >= BLOCK_TASKS
		        || op == OP_CONV_DW))
			b->images = n;
	set_task_size(b, w, op, lines);
}

/* Sets of images of conv_dw that each have sums of their own. */
static int64_t
count_parts(const struct window *w, int64_t weights)
{
	int64_t n = larger(1, BLOCK_PART_BYTES / 4 / larger(1, weights));

	return smaller(n, smaller(2 * BLOCK_TASKS, w->images));
}

/* Halve the channels of a task until there are enough tasks, `tasks` of which
 * share all channels. */
static void
split_channels(struct conv_blocked *b, const struct window *w, Op op,
               int64_t tasks)
{
	int64_t all = op == OP_CONV_DX ? b->cin : b->cout;

	while (tasks * (all / b->channels) < BLOCK_TASKS
	       && b->channels % (2 * BLOCK) == 0
	       && b->channels >= 2 * BLOCK_CHANNELS)
		b->channels /= 2;
	if (op != OP_CONV_DW)
		set_task_size(b, w, op, b->lines);
}

/* A task of conv_dw writes its sums in each call and adds them up: as many
 * images go into a call as take twice their memory, but 4 MiB at most. */
static void
choose_dw(struct conv_blocked *b, const struct window *w, int64_t taps)
{
	int64_t parts = count_parts(w, b->weights), sums;

	split_channels(b, w, OP_CONV_DW, w->group * parts);
	sums = b->channels * b->cin * taps;
	choose_extent(b, w, OP_CONV_DW, larger(BLOCK_BYTES / 4,
	                                       smaller(2 * sums, BLOCK_BYTES)));
	b->each = ceil_div(ceil_div(w->images, b->images), parts) * b->images;
	b->weights *= ceil_div(w->images, b->each);
	if (b->each > b->images || b->lines < w->out[1])
		b->w = sums;
}

/* The other two. */
static void
choose_tasks(struct conv_blocked *b, const struct window *w, Op op)
{
	choose_extent(b, w, op, BLOCK_BYTES / 4);
	split_channels(b, w, op, w->group * (w->images / b->images)
	               * ceil_div(w->out[1], b->lines - b->halo));
}

/* Operands of bf16 take half of the memory; the computed one does not.  oneDNN
 * 2.6 was seen to ask for this scratch, for one image.  1x1: float32 sums, at
 * most 31 windows more.  dw: bf16 copies of both operands, rows of x at most 4
 * strides longer, rows of y one window longer.  256 floats: for alignment. */
static void
set_bf16_sizes(struct conv_blocked *b, const struct window *w, Op op)
{
	int64_t more = 4 * (b->point ? 1 : w->stride[2]);

	if (op == OP_CONV_DW)
		b->scratch = ceil_div(b->cin * b->extent[0]
			* (b->extent[1] + more) + b->channels * b->lines
			* (w->out[2] + 1), 2) + 256;
	else if (op == OP_CONV && b->point)
		b->scratch = b->channels * (b->lines * w->out[2] + 32) + 256;
	b->scratch = ceil_div(b->scratch, BLOCK) * BLOCK;
	if (op != OP_CONV_DX)
		b->x = ceil_div(b->x, 2 * BLOCK) * BLOCK;
	if (op != OP_CONV)
		b->y = ceil_div(b->y, 2 * BLOCK) * BLOCK;
	if (op != OP_CONV_DW)
		b->weights = ceil_div(b->weights / b->cin * ceil_div(b->cin, 2),
		                      BLOCK) * BLOCK;
}

struct conv_blocked
conv_blocked(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	struct conv_blocked b = { .each = w.images,
		.half = conv_takes_bf16(g, n) };
	int64_t taps = w.kernel[1] * w.kernel[2], all;

	if (!is_suited(&w, n->op, b.half))
		return b;
	b.point = taps == 1;
	b.cout = padded_channels(w.cout);
	b.cin = w.cin <= BLOCK_PLAIN && n->op != OP_CONV_DX ? w.cin
	      : padded_channels(w.cin);
	b.channels = n->op == OP_CONV_DX ? b.cin : b.cout;
	if (!mul_ok(b.cin * b.cout, taps, &all)
	    || !mul_ok(all, w.group, &all))
		return b;
	b.weights = all;
	if (n->op == OP_CONV_DW)
		choose_dw(&b, &w, taps);
	else
		choose_tasks(&b, &w, n->op);
	/* a single row may be too long */
	b.fits = b.x + b.y <= 12 * (BLOCK_BYTES / 4);
	if (b.half && b.fits)
		set_bf16_sizes(&b, &w, n->op);
	return b;
}

int64_t
work_conv(const Graph *g, const Node *n, int threads)
{
	struct conv_tile t = conv_tile(g, n);
	struct conv_blocked b = conv_blocked(g, n);
	int64_t bytes, other = 0;

	if (b.fits && (!mul_ok(b.x + b.y + b.w + b.scratch, threads, &other)
	               || !add_ok(other, b.weights, &other)))
		return -1;
	if (!mul_ok(t.workspace, threads, &bytes)
	    || !add_ok(bytes, t.shared, &bytes))
		return -1;
	if (!mul_ok(larger(bytes, other), 4, &bytes))
		return -1;
	return (bytes + 63) / 64 * 64;
}
