/* Blocking of kernels and the scratch that follows from it. */
#include "codegen/cpu/tile.h"

int64_t
tile_attention_rows(int64_t nquery)
{
	return nquery < TILE_ROWS ? nquery : TILE_ROWS;
}

int64_t
tile_part_rows(int64_t rows)
{
	int64_t n = ceil_div(rows, TILE_PARTS);

	return n < TILE_PART_ROWS ? TILE_PART_ROWS : n;
}

/* Chunks are of equal size where possible: a short last chunk would waste
 * the scratch that the others need. */
int64_t
tile_classifier_rows(int64_t rows, int64_t classes, int64_t chunk)
{
	int64_t row = classes > 0 ? classes * 4 : 4;

	if (chunk <= 0) {
		chunk = TILE_LOGITS / row;
		if (chunk < 32)
			chunk = 32;
	}
	if (chunk >= rows)
		return rows > 0 ? rows : 1;
	return ceil_div(rows, ceil_div(rows, chunk));
}

/* Elements to bytes, padded; -1 if too many. */
static int64_t
scratch_bytes(int64_t nelem)
{
	int64_t n;

	if (nelem < 0 || !mul_ok(nelem, 4, &n) || n > INT64_MAX / 4)
		return -1;
	return (n + 63) / 64 * 64;
}

static int64_t
scratch_mul(int64_t a, int64_t b)
{
	int64_t n;

	return a >= 0 && b >= 0 && mul_ok(a, b, &n) ? n : -1;
}

/* Per thread: the scores of one block, for the gradient those of the
 * probabilities' adjoint too and one number per row.  ORDER TILE: the
 * kernels in codegen/cpu/kernels/attention.h split it the same way. */
int64_t
work_attention(const Graph *g, const Node *n, int threads)
{
	bool grad = n->op == OP_ATTENTION_GRAD;
	const Shape *q = &g->val[n->in[grad]].shape;
	const Shape *k = &g->val[n->in[grad + 1]].shape;
	int64_t rows = tile_attention_rows(q->dim[2]);
	int64_t keys = (k->dim[2] + 15) / 16 * 16;
	int64_t each = scratch_mul(rows, keys);

	if (grad)
		each = scratch_mul(each, 2);
	if (each >= 0 && !add_ok(each, TILE_ROWS, &each))
		each = -1;
	return scratch_bytes(scratch_mul(each, threads));
}

/* Partial sums of scale's (and bias') gradient. */
int64_t
work_norm(const Graph *g, const Node *n, int threads)
{
	const Shape *x = &g->val[n->in[1]].shape;
	bool bias = n->op == OP_LAYERNORM_GRAD;
	int64_t axis = bias ? n->attr.LAYERNORM_GRAD.axis
	                    : n->attr.RMSNORM_GRAD.axis;
	int64_t rows = 1, width = 1, parts;

	(void)threads;
	if (axis < 0)
		axis += x->rank;
	for (int i = 0; i < x->rank; i++)
		if (i < axis)
			rows = scratch_mul(rows, x->dim[i]);
		else
			width = scratch_mul(width, x->dim[i]);
	if (rows < 0 || width < 0)
		return -1;
	parts = rows > 0 ? ceil_div(rows, tile_part_rows(rows)) : 0;
	return scratch_bytes(scratch_mul(scratch_mul(parts, bias ? 2 : 1),
	                                width));
}

/* One chunk of logits and a loss per row. */
int64_t
work_classifier(const Graph *g, const Node *n, int threads)
{
	const Shape *x = &g->val[n->in[0]].shape;
	const Shape *w = &g->val[n->in[1]].shape;
	int64_t classes = w->dim[n->attr.CLASSIFIER.tb ? 0 : 1];
	int64_t rows = tile_classifier_rows(x->dim[0], classes,
	                                    n->attr.CLASSIFIER.chunk);
	int64_t nelem = scratch_mul(rows, classes);

	(void)threads;
	if (nelem < 0 || !add_ok(nelem, rows, &nelem))
		return -1;
	return scratch_bytes(nelem);
}

/* Per thread: where the best of a line are, as 64-bit numbers. */
int64_t
work_topk(const Graph *g, const Node *n, int threads)
{
	(void)g;
	return scratch_bytes(scratch_mul(scratch_mul(n->attr.TOPK.k, threads),
	                                 2));
}

/* Tiles of both operands and of the result, and a row.  ORDER TILE:
 * ckr_half_matmul() lays them out. */
int64_t
work_matmul(const Graph *g, const Node *n, int threads)
{
	const Shape *a = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	int64_t m, cols, k;

	(void)threads;
	if (!dtype_is_half(g->val[n->out[0]].dt) || a->rank < 2 || y->rank < 2)
		return 0;
	/* dims before the last two may become rows */
	m = y->rank > 2 ? TILE_HALF_ROWS
	  : smaller(y->dim[0], TILE_HALF_ROWS);
	cols = smaller(y->dim[y->rank - 1], TILE_HALF_COLS);
	k = smaller(a->dim[a->rank - (n->attr.MATMUL.ta ? 2 : 1)],
	          TILE_HALF_DEPTH);
	return scratch_bytes((m + cols) * k + (m + 1) * cols);
}

bool
tile_staged(const Graph *g, const Node *n)
{
	if (!(op_info[n->op].flags & F_STAGED))
		return false;
	for (int i = 0; i < n->nin + n->nout; i++) {
		ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];

		if (v && dtype_is_half(g->val[v].dt))
			return true;
	}
	return false;
}

int64_t
tile_stage(const Val *v, int64_t *stride)
{
	int64_t n = 1;

	if (!dtype_is_half(v->dt))
		return 0;
	for (int i = v->shape.rank - 1; i >= 0; i--) {
		bool spread = v->laid_out && v->stride[i] == 0
		              && v->shape.dim[i] > 1;

		stride[i] = spread ? 0 : n;
		if (!spread)
			n = scratch_mul(n, v->shape.dim[i]);
		if (n < 0)
			return -1;
	}
	return scratch_bytes(n);
}

/* A number per matrix.  ORDER TILE: ckr_adafactor() counts on it. */
int64_t
work_adafactor(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[0]].shape;
	int64_t matrices = 1;

	(void)threads;
	for (int i = 0; i < s->rank - 2; i++)
		matrices = scratch_mul(matrices, s->dim[i]);
	return s->rank < 2 ? 0 : scratch_bytes(matrices);
}

int64_t
work_none(const Graph *g, const Node *n, int threads)
{
	(void)g;
	(void)n;
	(void)threads;
	return 0;
}

int64_t
tile_workspace(const Graph *g, const Node *n, int threads)
{
	int64_t total = work_rule[n->op](g, n, threads < 1 ? 1 : threads);
	int64_t stride[MAX_RANK];

	for (int i = 0; tile_staged(g, n) && i < n->nin + n->nout; i++) {
		ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		int64_t each = v ? tile_stage(&g->val[v], stride) : 0;

		if (total < 0 || each < 0 || !add_ok(total, each, &total) ||
		    total > INT64_MAX / 4)
			return -1;
	}
	return total;
}
