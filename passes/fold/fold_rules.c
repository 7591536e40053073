/* Pass fold: the table of rules for nodes that could not be computed; rules of
 * windows and norms. */
#include "ir/window.h"
#include "passes/fold/fold_rules.h"

#include <math.h>

/* ---- convolutions and resampling ---- */

/* Exporters add a bias of zeros to convolutions without one: drop it. */
static enum step
simplify_conv(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	double x;

	if (has_operand(n, 2) && val_splat(f->g, n->in[2], &x) && x == 0)
		n->nin = 2;
	return STEP_KEEP;
}

/* Emit one resize for every axis that changes. */
static enum step
simplify_interpolate(struct fold *f, NodeId id)
{
	Attr from = f->g->node[id].attr, a = attr_default(OP_RESIZE);
	ValId x = f->g->node[id].in[0];
	Shape s = f->g->val[x].shape;
	struct interpolated_axis r[MAX_RANK];

	if (!are_const(f, &f->g->node[id], 1)
	    || interpolate_axes(f->g, &f->g->node[id], r))
		return STEP_KEEP;
	a.RESIZE.mode = from.INTERPOLATE.mode;
	a.RESIZE.coord = from.INTERPOLATE.coord;
	a.RESIZE.round = from.INTERPOLATE.round;
	a.RESIZE.cubic = from.INTERPOLATE.cubic;
	a.RESIZE.exclude = from.INTERPOLATE.exclude;
	a.RESIZE.antialias = from.INTERPOLATE.antialias;
	a.RESIZE.fill = from.INTERPOLATE.fill;
	for (int d = 0; d < s.rank; d++) {
		bool cropped = a.RESIZE.coord == 4
			&& (r[d].first != 0 || r[d].last != 1);

		/* also where tf_half_pixel_for_nn, read literally, would move
		 * batch and channels by half an element; as ONNX Runtime */
		if (r[d].to == s.dim[d] && !cropped
		    && (r[d].scale == 0 || r[d].scale == 1))
			continue;
		a.RESIZE.axis = d;
		a.RESIZE.extent_in = s.dim[d];
		a.RESIZE.extent_out = r[d].to;
		a.RESIZE.scale = r[d].scale;
		a.RESIZE.first = r[d].first;
		a.RESIZE.last = r[d].last;
		x = fold_emit(f, OP_RESIZE, 1, &x, &a, id);
	}
	return fold_set_broadcast(f, id, x);
}

/* Move windows and their elements, in turn along dim `axis` of x, to their
 * positions in the image. */
static ValId
lay_columns(struct fold *f, ValId x, int axis, const struct columns *c,
            NodeId like)
{
	int64_t many = c->count * c->block, all = c->begin + c->image + c->end;
	int64_t *at = arena_array(f->mem, (size_t)many, sizeof *at);
	Attr a = attr_default(OP_SCATTER_ADD);
	Shape s = f->g->val[x].shape;
	bool beside = many == all;
	ValId in[2] = { 0, x };

	for (int64_t i = 0; i < many; i++) {
		at[i] = i / c->block * c->stride + i % c->block * c->dilation;
		beside &= at[i] == i;
	}
	s.dim[axis] = all;
	if (!beside) {
		a.SCATTER_ADD.axis = axis;
		a.SCATTER_ADD.shape = shape_list(&s);
		in[0] = val_const(f->g, NULL, DT_I64, SHAPE(many), at);
		x = fold_emit(f, OP_SCATTER_ADD, 2, in, &a, like);
	}
	return fold_slice_axis(f, x, axis, c->begin, c->image, like);
}

/* Columns as [N, C, windows and elements of the block in turn...], then added
 * dim by dim. */
static enum step
simplify_col2im(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	Attr a = attr_default(OP_TRANSPOSE);
	IntList *perm = &a.TRANSPOSE.perm;
	struct columns c[WINDOW_DIMS];
	const char *why;
	ValId x = n->in[0];
	Shape s = out_val(f, n)->shape, split = s, flat = s;
	int dims;

	if (!are_const(f, n, 1) || !(dims = col2im_dims(f->g, n, c, &why)))
		return STEP_KEEP;
	*perm = (IntList){ 2 + 2 * dims, { 0, 1 } };
	split.rank = perm->n;
	for (int d = 0; d < dims; d++) {
		split.dim[2 + d] = c[d].block;
		split.dim[2 + dims + d] = c[d].count;
		flat.dim[2 + d] = c[d].count * c[d].block;
		perm->v[2 + 2 * d] = 2 + dims + d;
		perm->v[3 + 2 * d] = 2 + d;
	}
	x = fold_reshape(f, x, &split, id);
	x = fold_emit(f, OP_TRANSPOSE, 1, &x, &a, id);
	x = fold_reshape(f, x, &flat, id);
	for (int d = 0; d < dims && x; d++)
		x = lay_columns(f, x, 2 + d, &c[d], id);
	return fold_set_broadcast(f, id, x);
}

/* ---- norms ---- */

/* Shape of a row: that of x from the axis on. */
static Shape
row_shape(const struct fold *f, const Node *n)
{
	const Shape *x = &in_val(f, n, 0)->shape;
	int axis = (int)n->attr.LAYERNORM.axis;

	return shape_make(x->rank - axis, x->dim + axis);
}

static bool
same_in_all_rows(const Shape *s, const Shape *row)
{
	for (int i = 0; i < s->rank - row->rank; i++)
		if (s->dim[i] != 1)
			return false;
	return true;
}

/* Expand v to the shape of a row. */
static ValId
as_row(struct fold *f, ValId v, const Shape *row, NodeId like)
{
	Shape s = f->g->val[v].shape, own = s;
	int more = s.rank - row->rank;

	for (int i = 0; more > 0 && i < row->rank; i++)
		own.dim[i] = s.dim[more + i];
	own.rank = more > 0 ? row->rank : s.rank;
	return fold_expand(f, fold_reshape(f, v, &own, like), row, like);
}

static ValId
const_ones(struct fold *f, DType dt, const Shape *row, NodeId like)
{
	return fold_expand(f, val_scalar(f->g, dt, 1), row, like);
}

/* Give the norm a new result; the following node computes its former one. */
static enum step
finish_outside(struct fold *f, NodeId id, ValId scale, ValId bias)
{
	Graph *g = f->g;
	ValId y = g->node[id].out[0], x;

	x = val_new(g, V_TEMP, NULL, g->val[y].dt, g->val[y].shape);
	g->val[x].def = id;
	g->node[id].out[0] = x;
	fold_push(f, id);
	for (int k = 0; k < 2; k++) {
		ValId v = k ? bias : scale;

		if (!v)
			continue;
		v = fold_cast(f, v, g->val[y].dt, id);
		TRY(x = fold_binary(f, k ? OP_ADD : OP_MUL, x, v, id));
	}
	fold_replace(f, y, x);
	return STEP_GONE;
}

/* Expand a scale or bias that broadcasts to the rows.  Move one that differs
 * between rows behind the norm. */
static enum step
simplify_norm(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	Shape row = row_shape(f, n);
	ValId scale = n->in[1], bias = has_operand(n, 2) ? n->in[2] : 0;
	DType dt = f->g->val[scale].dt;

	if (!shape_known(&f->g->val[scale].shape)
	    || (bias && !shape_known(&f->g->val[bias].shape)))
		return STEP_KEEP;
	bool in = same_in_all_rows(&f->g->val[scale].shape, &row);
	bool both = !bias || (in && same_in_all_rows(&f->g->val[bias].shape,
	                                             &row));
	ValId s, b = 0;

	TRY(s = in ? as_row(f, scale, &row, id) : const_ones(f, dt, &row, id));
	if (bias && both)
		TRY(b = as_row(f, bias, &row, id));
	f->g->node[id].in[1] = s;
	if (bias)
		f->g->node[id].in[2] = b;
	if (bias && !b)
		f->g->node[id].nin = 2;
	return in && both ? STEP_KEEP
	       : finish_outside(f, id, in ? 0 : scale, both ? 0 : bias);
}

static Simplify *const simplify[OP_COUNT] = {
	[OP_IDENTITY] = simplify_identity,
	[OP_RESHAPE] = simplify_reshape,
	[OP_EXPAND] = simplify_expand,
	[OP_TRANSPOSE] = simplify_transpose,
	[OP_SLICE] = simplify_slice,
	[OP_SPLIT] = simplify_split,
	[OP_PAD] = simplify_pad,
	[OP_TILE] = simplify_tile,
	[OP_CONCAT] = simplify_concat,
	[OP_CONSTANT_OF_SHAPE] = simplify_constant_of_shape,
	[OP_GATHER] = simplify_gather,
	[OP_GATHER_ND] = simplify_gather_nd,
	[OP_ONE_HOT] = simplify_one_hot,
	[OP_ADD] = simplify_add,
	[OP_SUB] = simplify_sub,
	[OP_MUL] = simplify_mul,
	[OP_DIV] = simplify_by_one,
	[OP_POW] = simplify_by_one,
	[OP_AND] = simplify_logic,
	[OP_OR] = simplify_logic,
	[OP_XOR] = simplify_xor,
	[OP_NOT] = simplify_not,
	[OP_WHERE] = simplify_where,
	[OP_CAST] = simplify_cast,
	[OP_DROPOUT] = simplify_dropout,
	[OP_ISNAN] = simplify_isnan,
	[OP_REDUCE_SUM] = simplify_reduce,
	[OP_REDUCE_MEAN] = simplify_reduce,
	[OP_REDUCE_MAX] = simplify_reduce,
	[OP_REDUCE_MIN] = simplify_reduce,
	[OP_REDUCE_PROD] = simplify_reduce,
	[OP_MATMUL] = simplify_matmul,
	[OP_LAYERNORM] = simplify_norm,
	[OP_RMSNORM] = simplify_norm,
	[OP_RNN] = fold_rnn,
	[OP_CONV] = simplify_conv,
	[OP_CONV_DX] = simplify_conv,
	[OP_INTERPOLATE] = simplify_interpolate,
	[OP_COL2IM] = simplify_col2im,
};

enum step
fold_simplify(struct fold *f, NodeId id)
{
	Op op = f->g->node[id].op;
	enum step step;

	/* shapes from unknown values are reported at the end */
	if (!shape_known(&f->g->val[f->g->node[id].out[0]].shape))
		return STEP_KEEP;
	if (fold_sink_expand(f, id, &step))
		return step;
	return simplify[op] ? simplify[op](f, id) : STEP_KEEP;
}
