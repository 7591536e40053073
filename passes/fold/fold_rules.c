/* Pass fold: the table of rules for nodes that could not be computed, and
 * those of windows. */
#include "ir/window.h"
#include "passes/fold/fold_rules.h"

#include <math.h>

/* ---- convolutions and resampling ---- */

/* Exporters give convolutions without a bias one of zeros. */
static enum step
simplify_conv(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	double x;

	if (has_operand(n, 2) && val_splat(f->g, n->in[2], &x) && x == 0)
		n->nin = 2;
	return STEP_KEEP;
}

/* One resize for every axis that changes. */
static enum step
simplify_interpolate(struct fold *f, NodeId id)
{
	Attr from = f->g->node[id].attr, a = attr_default(OP_RESIZE);
	ValId x = f->g->node[id].in[0];
	Shape s = f->g->val[x].shape;
	struct resized r[MAX_RANK];

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

		/* nearest of a half pixel further is another pixel */
		if (r[d].to == s.dim[d] && !cropped && a.RESIZE.coord != 6
		    && (r[d].scale == 0 || r[d].scale == 1))
			continue;
		a.RESIZE.axis = d;
		a.RESIZE.extent_in = s.dim[d];
		a.RESIZE.extent_out = r[d].to;
		a.RESIZE.scale = r[d].scale;
		a.RESIZE.first = r[d].first;
		a.RESIZE.last = r[d].last;
		x = fold_emit(f, OP_RESIZE, 1, &x, &a, id);
		TRY(x);
	}
	return fold_become(f, id, x);
}

static Simplify *const simplify[OP_COUNT] = {
	[OP_IDENTITY] = simplify_identity,
	[OP_RESHAPE] = simplify_reshape,
	[OP_EXPAND] = simplify_expand,
	[OP_TRANSPOSE] = simplify_transpose,
	[OP_SLICE] = simplify_slice,
	[OP_PART] = simplify_part,
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
	[OP_RNN] = fold_rnn,
	[OP_CONV] = simplify_conv,
	[OP_CONV_DX] = simplify_conv,
	[OP_INTERPOLATE] = simplify_interpolate,
};

enum step
fold_simplify(struct fold *f, NodeId id)
{
	Op op = f->g->node[id].op;

	/* what is shaped by an unknown value is reported at the end */
	if (!simplify[op]
	    || !shape_known(&f->g->val[f->g->node[id].out[0]].shape))
		return STEP_KEEP;
	return simplify[op](f, id);
}
