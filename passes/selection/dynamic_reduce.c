/* ops that combine rows of a padded dim (dynamic.c).
 *
 * Each rule fills the padding with the neutral element of the op.
 */
#include "passes/selection/dynamic_rules.h"

#include <math.h>

/* ---- combining rows ---- */

/* Operand k with `fill` in the padding. */
static bool
mask_operand(struct fold *f, NodeId id, int k, double fill)
{
	ValId x = fold_fill_padding(f, f->g->node[id].in[k], fill, id);

	if (x)
		f->g->node[id].in[k] = x;
	return x != 0;
}

static double
neutral_element(Op op, DType dt)
{
	double most = dtype_info[dt].cls == 'f' ? (double)INFINITY
	                                        : (double)INT32_MAX;

	return op == OP_REDUCE_MAX ? -most : op == OP_REDUCE_MIN ? most
	     : op == OP_REDUCE_PROD ? 1 : 0;
}

static bool
handle_reduce(struct fold *f, NodeId id, const Node *was)
{
	Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	const Attr a = n->attr;
	const IntList *axes = &a.REDUCE_SUM.axes;
	DType dt = in_val(f, n, 0)->dt;
	int64_t times = 1;
	bool over = false;
	int before = 0;
	ValId two[2];
	Attr sum = attr_default(OP_REDUCE_SUM);

	(void)was;
	if (n->nin > 1)
		return refuse_dynamic(f, id, p->size,
		                      "reduces over axes that are "
		                      "known only at run time");
	for (int i = 0; i < axes->n; i++) {
		over |= axes->v[i] == p->axis;
		before += axes->v[i] < p->axis;
		if (axes->v[i] != p->axis)
			times *= extent(f, n->in[0], (int)axes->v[i]);
	}
	if (!over)
		return set_padded(f, id, 0, p->axis
		                  - (a.REDUCE_SUM.keepdims ? 0 : before),
		                  p->size);
	if ((n->op == OP_REDUCE_MAX || n->op == OP_REDUCE_MIN)
	    && dt != DT_I32 && dtype_info[dt].cls != 'f')
		return refuse_dynamic(f, id, p->size,
		                      "reduces a dim of data-dependent size in "
		                      "an unsupported dtype");
	if (!mask_operand(f, id, 0, neutral_element(n->op, dt)))
		return false;
	n = &f->g->node[id];
	if (n->op != OP_REDUCE_MEAN)
		return true;
	if (dtype_info[dt].cls != 'f')
		return refuse_dynamic(f, id, p->size,
		                      "takes a mean of integers "
		                      "over a dim of data-dependent size");
	sum.REDUCE_SUM.axes = a.REDUCE_MEAN.axes;
	sum.REDUCE_SUM.keepdims = a.REDUCE_MEAN.keepdims;
	two[0] = fold_emit(f, OP_REDUCE_SUM, 1, &n->in[0], &sum, id);
	two[1] = fold_valid_count(f, p->size, times, dt, id);
	n = &f->g->node[id];
	n->op = OP_DIV;
	n->attr = attr_default(OP_DIV);
	n->in = arena_copy(f->g->arena, two, sizeof two);
	n->nin = 2;
	return two[0] && two[1];
}

static bool
handle_matmul(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int a = padded_axis(f, n->in[0]), b = padded_axis(f, n->in[1]);
	int ra = rank_of(f, n->in[0]), rb = rank_of(f, n->in[1]);
	int ry = out_val(f, n)->shape.rank, at;
	int rows = n->attr.MATMUL.ta ? ra - 1 : ra - 2;
	int cols = n->attr.MATMUL.tb ? rb - 2 : rb - 1;
	int size = any_size(f, n);

	(void)was;
	for (int i = 2; i < n->nin; i++)
		if (padded_of(f, n->in[i]) || i > 2)
			return refuse_dynamic(f, id, size, "adds an operand of "
			                      "data-dependent size");
	if (ra < 2 || rb < (b < 0 ? 1 : 2))
		return refuse_dynamic(f, id, size,
		                      "multiplies a vector and a dim "
		                      "of data-dependent size");
	if (rb == 1 && a == rows && a >= 0)     /* rows by a vector */
		return set_padded(f, id, 0, ry - 1, size);
	if (rb == 1)
		return refuse_dynamic(f, id, size,
		                      "multiplies a vector and a dim "
		                      "of data-dependent size");
	if (a >= 0 && a == ra - 1 + ra - 2 - rows && b == rb - 1 + rb - 2 - cols
	    && padded_of(f, n->in[0])->size == padded_of(f, n->in[1])->size)
		return mask_operand(f, id, 0, 0) && mask_operand(f, id, 1, 0);
	if (a >= 0 && b < 0 && a == rows)
		return set_padded(f, id, 0, ry - 2, size);
	if (b >= 0 && a < 0 && b == cols && n->nin == 2)
		return set_padded(f, id, 0, ry - 1, size);
	/* a batch dim: as broadcast() does for all but the last two dims */
	at = a >= 0 ? a + ry - ra : b + ry - rb;
	if (at >= ry - 2 || (a >= 0 && b >= 0
	    && (a - ra != b - rb || padded_of(f, n->in[0])->size
	        != padded_of(f, n->in[1])->size)))
		return refuse_dynamic(f, id, size, "multiplies along a dim of "
		                      "data-dependent size");
	for (int k = 0; k < 2; k++) {
		int d = at - ry + (k ? rb : ra);

		if ((k ? b : a) < 0 && d >= 0 && extent(f, n->in[k], d) != 1)
			return refuse_dynamic(f, id, size, "combines a dim of "
			                      "data-dependent size with one of "
			                      "fixed size");
	}
	return set_padded(f, id, 0, at, size);
}

static bool
handle_softmax(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);

	(void)was;
	if (n->attr.SOFTMAX.axis == p->axis
	    && !mask_operand(f, id, 0, -INFINITY))
		return false;
	return set_padded(f, id, 0, p->axis, p->size);
}

/* sce, nll: give padding rows an ignored label. */
static bool
handle_cross_entropy(struct fold *f, NodeId id, const Node *was)
{
	Node *n = &f->g->node[id];
	const struct padded_dim *x = padded_of(f, n->in[0]);
	const struct padded_dim *y = padded_of(f, n->in[1]);
	int64_t *ignore = n->op == OP_SCE ? &n->attr.SCE.ignore
	                                  : &n->attr.NLL.ignore;
	int64_t none = in_val(f, n, 1)->dt == DT_I32 ? INT32_MIN
	                                             : INT64_MIN + 1024;
	int rows = n->op == OP_SCE ? 2 : 1;

	(void)was;
	if (!x || !y || x->axis != 0 || y->axis != 0 || x->size != y->size
	    || (n->nin > 2 && padded_of(f, n->in[2])))
		return refuse_dynamic(f, id, any_size(f, n),
		              "has labels and rows of different data-dependent "
		              "sizes");
	if (*ignore == INT64_MIN)
		*ignore = none;
	if (!mask_operand(f, id, 1, (double)*ignore))
		return false;
	n = &f->g->node[id];
	if (n->attr.SCE.reduction == 0 && !set_padded(f, id, 0, 0, x->size))
		return false;
	return rows == 1 || set_padded(f, id, 1, 0, x->size);
}

/* idx made non-negative, with its padding at `beyond`, an element added to the
 * operand. */
static ValId
redirect_padding(struct fold *f, NodeId id, ValId idx, ValId extents,
                 ValId beyond)
{
	const struct padded_dim *p = padded_of(f, idx);
	ValId at = idx, valid;

	if (!fold_is_indices(f, idx, p->size))
		at = fold_wrap_index(f, idx, val_scalar(f->g,
			f->g->val[idx].dt, 0), extents, id);
	valid = fold_valid_mask(f, p->size, p->axis, rank_of(f, idx), id);
	return fold_where(f, valid, at, beyond, id);
}

/* x with one more element at the end of axis. */
static ValId
append_row(struct fold *f, NodeId id, ValId x, int axis)
{
	Attr a = attr_default(OP_PAD);

	a.PAD.begin = a.PAD.end = list_filled(rank_of(f, x), 0);
	a.PAD.end.v[axis] = 1;
	return fold_emit(f, OP_PAD, 1, &x, &a, id);
}

static ValId
const_vector(struct fold *f, DType dt, int n, const int64_t *v)
{
	int32_t narrow[MAX_RANK] = { 0 };

	for (int i = 0; i < n; i++)
		narrow[i] = (int32_t)v[i];
	return val_const(f->g, NULL, dt, SHAPE(n),
	                 dt == DT_I32 ? (const void *)narrow : v);
}

/* Whether the tuples idx are the indices of a nonzero over all rows of x. */
static bool
covers_rows(struct fold *f, ValId idx, const Shape *x)
{
	int size = padded_of(f, idx)->size;
	const Shape *from = &f->g->val[f->size[size - 1].from].shape;

	for (int d = 0; d < from->rank; d++)
		if (d >= x->rank || x->dim[d] != from->dim[d])
			return false;
	return fold_is_indices(f, idx, size);
}

/* The node writes a valid row of the padded dim to each row of its operand: for
 * rows in place, a sum or a `where`. */
static void
scatter_in_place(struct fold *f, NodeId id, int size)
{
	const Node *n = &f->g->node[id];
	const Shape *from = &f->g->val[f->size[size - 1].from].shape;
	Shape rows = in_val(f, n, 0)->shape;
	bool add = n->attr.SCATTER_ND.add == 1;
	ValId y = n->out[0], in[3] = { 0, 0, n->in[0] };

	in[1] = fold_reshape(f, n->in[2], &rows, id);
	for (int d = from->rank; d < rows.rank; d++)
		rows.dim[d] = 1;
	if (add) {
		in[0] = in[2];
	} else {
		in[0] = fold_reshape(f, fold_valid_mask(f, size, 0, 1, id),
		                     &rows, id);
	}
	if (in[0] && in[1])
		fold_add_placed(f, y, fold_emit(f, add ? OP_ADD : OP_WHERE,
		                              add ? 2 : 3, in, NULL, id), size);
}

/* Padding is added as 0, or written to an extra element at the end that is cut
 * off again. */
static bool
handle_scatter(struct fold *f, NodeId id, const Node *was)
{
	Node *n = &f->g->node[id];
	bool nd = n->op == OP_SCATTER_ND;
	const struct padded_dim *idx = padded_of(f, n->in[1]);
	const struct padded_dim *upd = padded_of(f, n->in[2]);
	int axis = nd ? 0 : (int)n->attr.SCATTER_ELEMENTS.axis, ir, k = 1;
	int64_t add = nd ? n->attr.SCATTER_ND.add
	                 : n->attr.SCATTER_ELEMENTS.add;
	int64_t ext[MAX_RANK] = { 0 }, end[MAX_RANK] = { 0 };
	Shape whole = in_val(f, n, 0)->shape;
	DType dt = in_val(f, n, 1)->dt;
	Attr a = n->attr;
	ValId in[3], y;

	(void)was;
	if (idx && upd && !idx->symbol && !upd->symbol && idx->axis >= 0
	    && upd->axis == idx->axis
	    && !fold_unify_size(f, n->in[2], idx->size)) {
		y = fold_first_rows(f, n->in[2], upd->axis, idx->size, true,
		                    id);
		n = &f->g->node[id];
		if (!y)
			return false;
		n->in[2] = y;
		upd = padded_of(f, y);
	}
	ir = rank_of(f, n->in[1]);
	if ((dt != DT_I64 && dt != DT_I32)
	    || padded_of(f, n->in[0]) || !idx || !upd || idx->axis < 0
	    || idx->axis != upd->axis || idx->size != upd->size || idx->symbol
	    || upd->symbol || (nd ? idx->axis == ir - 1 : idx->axis != axis))
		return refuse_dynamic(f, id, any_size(f, n),
		              "scatters along a dim of data-dependent size in "
		              "an unsupported form");
	if (add == 1 && !mask_operand(f, id, 2, 0))
		return false;
	if (nd && add <= 1 && covers_rows(f, n->in[1], &whole))
		scatter_in_place(f, id, idx->size);
	if (add == 1)
		return true;
	if (nd)
		k = (int)extent(f, n->in[1], ir - 1);
	for (int d = 0; d < k; d++)
		ext[d] = whole.dim[nd ? d : axis];
	end[0] = ext[0];
	in[1] = redirect_padding(f, id, n->in[1], const_vector(f, dt, k, ext),
	                         const_vector(f, dt, k, end));
	in[2] = f->g->node[id].in[2];
	in[0] = append_row(f, id, f->g->node[id].in[0], axis);
	y = fold_emit(f, f->g->node[id].op, 3, in, &a, id);
	if (!y)
		return false;
	fold_set_op(f, id, OP_SLICE, y);
	f->g->node[id].attr.SLICE.start = list_filled(whole.rank, 0);
	f->g->node[id].attr.SLICE.step = list_filled(whole.rank, 1);
	return true;
}

/* ---- the rules ---- */

const struct dynamic_rule
	dynamic_reduce = { handle_reduce, .may = 1 },
	dynamic_matmul = { handle_matmul, .may = 3 },
	dynamic_softmax = { handle_softmax, .may = 1 },
	dynamic_cross_entropy = { handle_cross_entropy, .may = 3 },
	dynamic_scatter = { handle_scatter, .may = 7, .flat = 4 };
