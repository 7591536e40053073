/* Cache tiles of kernels and the workspace that follows from them. */
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
 * the workspace that the others need. */
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
workspace_bytes(int64_t nelem)
{
	int64_t n;

	if (nelem < 0 || !mul_ok(nelem, 4, &n) || n > INT64_MAX / 4)
		return -1;
	return (n + 63) / 64 * 64;
}

static int64_t
workspace_mul(int64_t a, int64_t b)
{
	int64_t n;

	return a >= 0 && b >= 0 && mul_ok(a, b, &n) ? n : -1;
}

/* The scores of one block, for the gradient those of the probabilities'
 * adjoint too, and one number per row; of 16-bit floats, rows of the block and
 * of its key head as float32. */
int64_t
tile_attention(const Graph *g, const Node *n)
{
	bool grad = n->op == OP_ATTENTION_GRAD;
	const Shape *q = &g->val[n->in[grad]].shape;
	const Shape *k = &g->val[n->in[grad + 1]].shape;
	const Shape *v = &g->val[n->in[grad + 2]].shape;
	int64_t rows = tile_attention_rows(q->dim[2]), more = 0;
	int64_t keys = (k->dim[2] + 15) / 16 * 16;
	int64_t each = workspace_mul(rows, keys), lines;

	if (grad)
		each = workspace_mul(each, 2);
	if (dtype_is_half(g->val[n->in[grad]].dt)) {
		lines = workspace_mul(k->dim[2] + rows, grad ? 2 : 1);
		more = workspace_mul(lines, v->dim[3] + q->dim[3]);
	}
	if (each < 0 || more < 0 || !add_ok(each, more + TILE_ROWS, &each))
		return -1;
	return each;
}

int64_t
work_attention(const Graph *g, const Node *n, int threads)
{
	return workspace_bytes(workspace_mul(tile_attention(g, n), threads));
}

/* [rows, width] of operand x of a norm, all of which have the same axis;
 * false: too many. */
static bool
norm_size(const Graph *g, const Node *n, int operand, int64_t *rows,
          int64_t *width)
{
	const Shape *x = &g->val[n->in[operand]].shape;
	int64_t axis = n->attr.LAYERNORM.axis;

	axis += axis < 0 ? x->rank : 0;
	*rows = *width = 1;
	for (int i = 0; i < x->rank; i++) {
		int64_t *of = i < axis ? rows : width;

		if (!mul_ok(*of, x->dim[i], of))
			return false;
	}
	return true;
}

int64_t
tile_norm_parts(const Graph *g, const Node *n)
{
	int64_t rows, width, parts;

	if (!norm_size(g, n, 1, &rows, &width))
		return -1;
	parts = rows > 0 ? ceil_div(rows, tile_part_rows(rows)) : 0;
	if (n->op == OP_LAYERNORM_GRAD)
		parts *= 2;
	return workspace_mul(parts, width);
}

/* Rows of 16-bit floats as float32.  ORDER TILE: struct ckr_norm. */
static int64_t
norm_rows(const Graph *g, const Node *n, int operand, int count, int threads)
{
	int64_t rows, width;

	if (!tile_is_mixed(g, n))
		return 0;
	return norm_size(g, n, operand, &rows, &width)
		? workspace_mul(2 + (int64_t)count * threads, width)
		: -1;
}

int64_t
work_norm(const Graph *g, const Node *n, int threads)
{
	return workspace_bytes(norm_rows(g, n, 0, 2, threads));
}

/* Partial sums of scale's (and bias') gradient, too. */
int64_t
work_norm_grad(const Graph *g, const Node *n, int threads)
{
	int64_t parts = tile_norm_parts(g, n);
	int64_t more = norm_rows(g, n, 1, 3, threads);

	return parts < 0 || more < 0 || !add_ok(parts, more, &parts)
		? -1
		: workspace_bytes(parts);
}

/* n in parts of at most `most`, of equal size but for vectors. */
static int64_t
even_part(int64_t n, int64_t most)
{
	int64_t part = ceil_div(n, larger(1, ceil_div(n, most)));

	return larger(1, smaller(n, ceil_div(part, 16) * 16));
}

/* Tiles of at most that size, and of less where there were too few. */
static struct product_tile
tile_within(struct product_tile most, int64_t batch, int64_t m, int64_t n,
            int64_t k)
{
	struct product_tile t = { even_part(m, most.rows),
		even_part(n, most.cols), larger(1, smaller(k, most.depth)) };

	while (batch * ceil_div(m, t.rows) * ceil_div(n, t.cols)
	       < TILE_PRODUCTS && larger(t.rows, t.cols) > TILE_PRODUCT_LEAST)
		if (t.rows > t.cols)
			t.rows = even_part(m, t.rows / 2);
		else
			t.cols = even_part(n, t.cols / 2);
	return t;
}

struct product_tile
tile_product(int64_t batch, int64_t m, int64_t n, int64_t k)
{
	return tile_within((struct product_tile){ TILE_PRODUCT_ROWS,
		TILE_PRODUCT_COLS, TILE_PRODUCT_DEPTH }, batch, m, n, k);
}

/* Tiles of all rows and some columns. */
static struct product_tile
tile_strip(int64_t m, int64_t n, int64_t k)
{
	int64_t cols = larger(TILE_STRIP_LEAST, n / TILE_PRODUCTS);

	return (struct product_tile){ larger(1, m),
		even_part(n, smaller(cols, TILE_PRODUCT_COLS)),
		larger(1, smaller(k, TILE_PRODUCT_DEPTH)) };
}

/* Whether kernels compute with copies of it in float32. */
static bool
tile_converts(DType dt)
{
	return dtype_is_half(dt) || dtype_is_blocks(dt);
}

/* Floats of a thread that makes such a tile of y from a and b.  ORDER TILE:
 * ckr_half_tile() lays them out. */
static int64_t
product_workspace(struct product_tile t, DType a, DType b, DType y)
{
	int64_t n = t.cols;

	n += dtype_is_half(a) ? t.rows * t.depth : 0;
	n += tile_converts(b) ? t.cols * t.depth : 0;
	n += dtype_is_half(y) ? t.rows * t.cols : 0;
	return ceil_div(n, 16) * 16;
}

int64_t
tile_matmul(const Graph *g, const Node *n)
{
	const Shape *a = &g->val[n->in[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	int64_t m = 1, cols = y->dim[y->rank - 1];
	int64_t k = a->dim[a->rank - (n->attr.MATMUL.ta ? 2 : 1)];
	struct product_tile t;

	for (int i = 0; i < y->rank - 1; i++)
		if (!mul_ok(m, y->dim[i], &m))
			return -1;
	t = y->rank == 2 ? tile_product(1, m, cols, k)
	  : (struct product_tile){ smaller(m, TILE_PRODUCT_ROWS),
		smaller(cols, TILE_PRODUCT_COLS),
		larger(1, smaller(k, TILE_PRODUCT_DEPTH)) };
	return product_workspace(t, g->val[n->in[0]].dt, g->val[n->in[1]].dt,
	                         g->val[n->out[0]].dt);
}

/* Tiles of every thread. */
int64_t
work_matmul(const Graph *g, const Node *n, int threads)
{
	if (!tile_is_mixed(g, n) || g->val[n->in[0]].shape.rank < 2
	    || g->val[n->out[0]].shape.rank < 2)
		return 0;
	return workspace_bytes(workspace_mul(threads, tile_matmul(g, n)));
}

/* Places behind the sorted rows, which are 64-bit numbers; `thread`: floats of
 * a thread's tiles.  ORDER TILE: ckr_expert_sort(). */
static void
place_experts(struct expert_tile *t, int64_t rows, int threads)
{
	t->tiles = workspace_mul(2, rows + t->experts + 2);
	t->tiles = t->tiles < 0 ? 0 : ceil_div(t->tiles, 16) * 16;
	if (!add_ok(t->tiles, workspace_mul(threads, t->thread), &t->floats))
		t->floats = -1;
}

/* Each tile packs its rows, so that large ones pack less.  16-bit weights are
 * converted for each, in a part of the cache. */
static struct product_tile
tile_experts(DType dt, int64_t experts, int64_t m, int64_t n, int64_t k)
{
	if (dtype_is_half(dt))
		return tile_product(experts, m, n, k);
	return tile_within((struct product_tile){ TILE_EXPERT_ROWS,
		TILE_EXPERT_COLS, TILE_EXPERT_DEPTH }, experts, m, n, k);
}

/* An expert may have all rows.  ORDER TILE: ckr_expert_tile(). */
struct expert_tile
tile_expert_matmul(const Graph *g, const Node *n, int threads)
{
	const Val *x = &g->val[n->in[0]];
	const Shape *w = &g->val[n->in[1]].shape;
	int64_t rows = x->shape.dim[0];
	/* as if each expert had one tile of them */
	int64_t m = smaller(rows, dtype_is_half(x->dt) ? TILE_PRODUCT_ROWS
	                                               : TILE_EXPERT_ROWS);
	struct expert_tile t = { .experts = w->dim[0],
		.inner = x->shape.dim[1],
		.width = w->dim[n->attr.EXPERT_MATMUL.tb ? 1 : 2] };

	t.tile = tile_experts(x->dt, t.experts, m, t.width, t.inner);
	t.thread = t.tile.rows * (t.tile.depth + t.tile.cols);
	if (dtype_is_half(x->dt))
		t.thread += t.tile.cols * t.tile.depth;
	place_experts(&t, rows, threads);
	return t;
}

/* ORDER TILE: ckr_expert_dw_tile(). */
struct expert_tile
tile_expert_dw(const Graph *g, const Node *n, int threads)
{
	const Val *a = &g->val[n->in[0]];
	int64_t rows = a->shape.dim[0];
	struct expert_tile t = { .experts = n->attr.EXPERT_DW.experts,
		.inner = a->shape.dim[1],
		.width = g->val[n->in[1]].shape.dim[1] };

	t.tile = tile_experts(a->dt, t.experts, t.inner, t.width, rows);
	t.thread = (t.tile.rows + t.tile.cols) * t.tile.depth;
	if (dtype_is_half(a->dt))
		t.thread += t.tile.rows * t.tile.cols;
	place_experts(&t, rows, threads);
	return t;
}

int64_t
work_expert_matmul(const Graph *g, const Node *n, int threads)
{
	return workspace_bytes(tile_expert_matmul(g, n, threads).floats);
}

/* Of each replica a 64-bit number. */
int64_t
work_expert_slots(const Graph *g, const Node *n, int threads)
{
	(void)g;
	(void)threads;
	return workspace_bytes(2 * n->attr.EXPERT_SLOTS.replicas);
}

int64_t
work_expert_dw(const Graph *g, const Node *n, int threads)
{
	return workspace_bytes(tile_expert_dw(g, n, threads).floats);
}

/* Whether it keeps the adjoints of all rows, as 16-bit floats, for dw. */
static bool
classifier_keeps(const Graph *g, const Node *n, int64_t dim)
{
	const Val *x = &g->val[n->in[0]];

	return n->out[2] && dtype_is_half(x->dt)
		&& x->shape.dim[0] / 2 <= dim;
}

/* Rows of chunks.  Beside the adjoints of all rows is place for fewer logits;
 * those of the first chunks lie where adjoints of later ones will be, too. */
static void
set_chunk_rows(const Graph *g, const Node *n, struct classifier_tile *t)
{
	int64_t rows = g->val[n->in[0]].shape.dim[0];

	t->chunk = tile_classifier_rows(rows, t->classes,
	                                n->attr.CLASSIFIER.chunk);
	t->most = t->chunk;
	if (!t->keep)
		return;
	t->chunk = tile_classifier_rows(rows, t->classes,
	                                ceil_div(t->chunk, 2));
	t->most = larger(1, smaller((rows + 2 * t->chunk) / 3,
	                            TILE_LOGIT_ROWS));
}

/* Rows of one product for dx. */
static int64_t
rows_of_dx(const Graph *g, const Node *n, const struct classifier_tile *t)
{
	const Val *x = &g->val[n->in[0]];

	return t->keep && x->dt == DT_BF16 ? x->shape.dim[0] : t->most;
}

/* Tiles of the products for logits, dx and dw; returns the most floats that a
 * thread needs for one.  Those of the first span all rows of a chunk, so that
 * each weight is converted once for it. */
static int64_t
classifier_products(const Graph *g, const Node *n, struct classifier_tile *t)
{
	bool tb = n->attr.CLASSIFIER.tb != 0;
	DType x = g->val[n->in[0]].dt;
	DType w = t->slice ? x : g->val[n->in[1]].dt;   /* as multiplied */
	DType sum = t->keep ? x : DT_F32, d = x == DT_BF16 ? x : DT_F32;
	DType kept = t->keep ? x : d;
	int64_t rows = t->keep ? g->val[n->in[0]].shape.dim[0] : t->most;
	struct product_tile *p = t->tile;

	p[0] = tile_strip(t->most, t->slice ? t->slice : t->classes, t->dim);
	p[1] = tile_product(1, rows_of_dx(g, n, t), t->dim, t->classes);
	p[2] = tile_product(1, tb ? t->classes : t->dim,
	                    tb ? t->dim : t->classes, rows);
	return larger(
		larger(product_workspace(p[0], x, w, DT_F32),
	               product_workspace(p[1], d, w, x)),
		product_workspace(p[2], tb ? kept : x, tb ? x : kept, sum));
}

/* Adds to the floats of workspace (-1: too many); returns their number before.
 */
static int64_t
classifier_place(struct classifier_tile *t, int64_t nelem)
{
	int64_t at = t->floats;

	if (at < 0 || nelem < 0 || !add_ok(at, nelem, &t->floats))
		t->floats = -1;
	return at;
}

struct classifier_tile
tile_classifier(const Graph *g, const Node *n, int threads)
{
	const Val *x = &g->val[n->in[0]];
	const Shape *w = &g->val[n->in[1]].shape;
	bool tb = n->attr.CLASSIFIER.tb != 0, half = dtype_is_half(x->dt);
	struct classifier_tile t = { .classes = w->dim[!tb],
		.dim = w->dim[tb] };

	t.keep = classifier_keeps(g, n, t.dim);
	set_chunk_rows(g, n, &t);
	if (t.keep)
		classifier_place(
			&t,
			ceil_div(workspace_mul(x->shape.dim[0], t.classes), 2));
	classifier_place(&t, workspace_mul(t.chunk, t.classes));
	t.each = classifier_place(&t, t.most);
	if (!tile_is_mixed(g, n))
		return t;
	t.bias = classifier_place(&t, n->nin > 3 && n->in[3] ? t.classes : 0);
	t.db = classifier_place(&t, half && n->nout > 3 && n->out[3]
	                        ? t.classes : 0);
	t.dw = classifier_place(&t,
	                        half && n->out[2] && !t.keep
	                                ? workspace_mul(t.classes, t.dim)
	                                : 0);
	if (x->dt == DT_BF16 && g->val[n->in[1]].dt == DT_F32) {
		t.slice = even_part(t.classes,
		                    larger(1, TILE_WEIGHTS / 2
		                           / larger(1, t.dim)));
		t.weights = classifier_place(
			&t, ceil_div(workspace_mul(t.slice, t.dim), 2));
		t.dx = classifier_place(&t, n->out[1]
		                        ? workspace_mul(rows_of_dx(g, n, &t),
		                                        t.dim) : 0);
	}
	t.thread = classifier_products(g, n, &t);
	t.tiles = classifier_place(&t, workspace_mul(threads, t.thread));
	return t;
}

int64_t
work_classifier(const Graph *g, const Node *n, int threads)
{
	return workspace_bytes(tile_classifier(g, n, threads).floats);
}

/* Two matrices of double per thread. */
int64_t
work_det(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[n->nin - 1]].shape;
	int64_t m = s->dim[s->rank - 1], size;

	if (!mul_ok(m, m, &size) || !mul_ok(size, 16 * threads, &size)
	    || size > INT64_MAX / 4)
		return -1;
	return size ? (size + 63) / 64 * 64 : 64;
}

/* Per thread: where the best of a line are, as 64-bit numbers. */
int64_t
work_topk(const Graph *g, const Node *n, int threads)
{
	(void)g;
	return workspace_bytes(
		workspace_mul(workspace_mul(n->attr.TOPK.k, threads), 2));
}

bool
tile_is_mixed(const Graph *g, const Node *n)
{
	for (int i = 0; i < n->nin + n->nout; i++) {
		ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];

		if (v && tile_converts(g->val[v].dt))
			return true;
	}
	return false;
}

/* Matrices of an update by Adafactor; 0: it is not factored. */
static int64_t
count_factored_matrices(const Graph *g, const Node *n)
{
	const Val *p = &g->val[n->in[0]];
	const Shape *s = p->shard ? &p->shard->shape : &p->shape;
	int64_t count = 1;

	for (int i = 0; i < s->rank - 2; i++)
		count = workspace_mul(count, s->dim[i]);
	return s->rank < 2 ? 0 : count;
}

/* A number per matrix.  ORDER TILE: ckr_adafactor() counts on it. */
int64_t
work_adafactor(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return workspace_bytes(count_factored_matrices(g, n));
}

/* ... and new means of rows and columns.  ORDER TILE:
 * ckr_adafactor_squares(). */
int64_t
work_adafactor_squares(const Graph *g, const Node *n, int threads)
{
	int64_t count = count_factored_matrices(g, n);

	(void)threads;
	for (int k = 2; k < 4 && count > 0; k++)
		count += val_nelem(&g->val[n->in[k]]);
	return workspace_bytes(count);
}
