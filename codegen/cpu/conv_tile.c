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

struct conv_tile
conv_tile(const Graph *g, const Node *n)
{
	struct window w = window_of(g, n);
	struct conv_depthwise thin = conv_depthwise(g, n);
	int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2], rows;
	int64_t blocks;
	struct conv_tile t = { .direct = window_is_direct(&w), .parts = 1,
		.each = w.images };

	if (thin.fits) {
		t.windows = t.channels = 1;
		t.workspace = thin.workspace;
		return t;
	}
	t.channels = n->op == OP_CONV ? w.cin
	           : smaller(w.cin, larger(1, ceil_div(CONV_ROWS,
	                                               larger(taps, 1))));
	t.channels = larger(t.channels, 1);
	rows = t.channels * taps;
	blocks = ceil_div(w.cin, t.channels);
	t.windows = block_windows(&w, rows, n->op == OP_CONV
	                          ? w.images * w.group : CONV_TASKS);
	if (!t.direct)
		t.workspace = padded_product(rows, t.windows);
	if (n->op != OP_CONV_DW || w.images < 1)
		return t;
	int64_t weights = larger(1, w.group * w.cout * w.cin * taps);
	int64_t parts = smaller(ceil_div(CONV_TASKS,
	                                 larger(1, w.group * blocks)),
	                        CONV_PART_BYTES / 4 / weights);

	parts = larger(1, smaller(parts, w.images));
	t.each = ceil_div(w.images, parts);
	t.parts = ceil_div(w.images, t.each);
	if (t.parts > 1)
		t.shared = padded_product(t.parts, weights);
	return t;
}
