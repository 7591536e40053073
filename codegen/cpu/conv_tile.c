/* Blocking of convolutions. */
#include "codegen/cpu/conv_tile.h"
#include "codegen/cpu/tile.h"

/* Windows in a block, given the rows of patches that are unfolded: whole lines,
 * unless one is too long. */
static int64_t
block_windows(const struct window *w, int64_t rows, int64_t tasks)
{
	int64_t lines = w->out[0] * w->out[1], width = larger(w->out[2], 1);
	int64_t most = CONV_BYTES / 4 / larger(rows, 1) / width;
	int64_t least = ceil_div(CONV_COLUMNS, width), n;

	/* enough tasks, unless blocks get too narrow for a product */
	if (!mul_ok(lines, tasks, &n))
		n = lines;
	n = smaller(most, ceil_div(n, CONV_TASKS));
	lines = larger(1, smaller(lines, larger(n, least)));
	return most > 0 || lines > 1 ? lines * width
		: larger(CONV_COLUMNS, CONV_BYTES / 4 / larger(rows, 1));
}

/* a * b, rounded up to a multiple of 16; INT64_MAX if that is too large */
static int64_t
padded_product(int64_t a, int64_t b)
{
	int64_t n;

	if (!mul_ok(a, b, &n) || !add_ok(n, 15, &n))
		return INT64_MAX;
	return n / 16 * 16;
}

/* The 16-bit type that all operands of a convolution have, which are dense;
 * DT_NONE: there is none. */
static DType
half_of_operands(const Graph *g, const Node *n)
{
	uint64_t flags = op_info[n->op].flags;
	DType dt = g->val[n->in[0]].dt;

	if (!(flags & F_CONTRACT) || !(flags & F_STAGED) || !dtype_is_half(dt))
		return DT_NONE;
	for (int i = 0; i < n->nin + n->nout; i++) {
		ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];

		if (v && (g->val[v].dt != dt || (g->val[v].laid_out
		          && !val_contiguous(&g->val[v]))))
			return DT_NONE;
	}
	return dt;
}

bool
conv_takes_bf16(const Graph *g, const Node *n)
{
	return half_of_operands(g, n) == DT_BF16 && !conv_depthwise(g, n).fits;
}

bool
conv_takes_half(const Graph *g, const Node *n)
{
	return half_of_operands(g, n) && conv_depthwise(g, n).fits;
}

/* Elements of the result that a task sums up at a time. */
static int64_t
task_sums(const struct conv_tile *t, const struct window *w, Op op)
{
	int64_t in = w->in[0] * w->in[1] * w->in[2];

	return op == OP_CONV_DW ? 0
	     : op == OP_CONV ? padded_product(w->cout, t->windows)
	     : padded_product(t->channels, t->direct ? t->windows : in);
}

struct conv_tile
conv_tile(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	struct conv_depthwise thin = conv_depthwise(g, n);
	int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2], rows;
	int64_t blocks;
	bool half = conv_takes_bf16(g, n);
	bool forward = n->op == OP_CONV, dw = n->op == OP_CONV_DW;
	struct conv_tile t = { .direct = window_is_direct(&w), .parts = 1,
		.each = w.images };

	if (thin.fits) {
		t.windows = t.channels = 1;
		t.workspace = t.room = thin.workspace;
		if (dw && conv_takes_half(g, n))
			t.workspace += padded_product(w.cout, taps);
		return t;
	}
	t.channels = forward ? w.cin
	           : smaller(w.cin, larger(1, ceil_div(CONV_ROWS,
	                                               larger(taps, 1))));
	if (half && !forward && !dw && !t.direct)
		t.channels = smaller(t.channels, CONV_SUM_BYTES / 4
			/ larger(1, w.in[0] * w.in[1] * w.in[2]));
	t.channels = larger(t.channels, 1);
	rows = t.channels * taps;
	blocks = ceil_div(w.cin, t.channels);
	/* sums of bf16 are floats, too: as many as of patches */
	t.windows = block_windows(&w, half && forward ? larger(rows, w.cout)
	                          : rows, forward ? w.images * w.group
	                          : CONV_TASKS);
	if (!t.direct)
		t.workspace = padded_product(rows, t.windows);
	if (half) {
		t.room = t.workspace;
		if (!add_ok(t.room, task_sums(&t, &w, n->op), &t.workspace))
			t.workspace = INT64_MAX;
	}
	if (!dw || w.images < 1)
		return t;
	int64_t weights = larger(1, w.group * w.cout * w.cin * taps);
	int64_t parts = smaller(ceil_div(CONV_TASKS,
	                                 larger(1, w.group * blocks)),
	                        CONV_PART_BYTES / 4 / weights);

	parts = larger(1, smaller(parts, w.images));
	t.each = ceil_div(w.images, parts);
	t.parts = ceil_div(w.images, t.each);
	if (t.parts > 1 || half)
		t.shared = padded_product(t.parts, weights);
	return t;
}
