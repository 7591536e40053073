/* Pass fold: arithmetic without effect.
 *
 * Rules that drop it preserve every bit: x * 1, x / 1, x - 0 and x + (-0) are x
 * for all x; x + 0 is not (-0 + 0 is +0).
 */
#include "passes/fold/fold_rules.h"

#include <math.h>

/* The other operand of a binary node if all elements of operand k equal x (-0
 * and 0 differ). */
static ValId
other_operand(const struct fold *f, const Node *n, int k, double x)
{
	double found;

	if (!fold_splat(f, n->in[k], &found) || found != x
	    || signbit(found) != signbit(x))
		return 0;
	return f->g->val[n->in[1 - k]].dt == f->g->val[n->out[0]].dt
	       ? n->in[1 - k] : 0;
}

static enum step
become_if(struct fold *f, NodeId id, ValId x)
{
	return x ? fold_set_broadcast(f, id, x) : STEP_KEEP;
}

/* x is neutral on either side. */
static enum step
drop_neutral(struct fold *f, NodeId id, double x)
{
	const Node *n = &f->g->node[id];
	ValId other = other_operand(f, n, 0, x);

	return become_if(f, id, other ? other : other_operand(f, n, 1, x));
}

enum step
simplify_add(struct fold *f, NodeId id)
{
	const Val *y = out_val(f, &f->g->node[id]);

	return drop_neutral(f, id, dtype_info[y->dt].cls == 'f' ? -0.0 : 0);
}

enum step
simplify_sub(struct fold *f, NodeId id)
{
	return become_if(f, id, other_operand(f, &f->g->node[id], 1, 0));
}

enum step
simplify_mul(struct fold *f, NodeId id)
{
	return drop_neutral(f, id, 1);
}

/* div and pow */
enum step
simplify_by_one(struct fold *f, NodeId id)
{
	return become_if(f, id, other_operand(f, &f->g->node[id], 1, 1));
}

/* and, or: a constant operand decides or drops out. */
enum step
simplify_logic(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	bool is_and = n->op == OP_AND;
	double x;

	if (n->in[0] == n->in[1])
		return fold_set_broadcast(f, id, n->in[0]);
	for (int k = 0; k < 2; k++) {
		if (!fold_splat(f, n->in[k], &x))
			continue;
		if ((x != 0) == is_and)
			return fold_set_broadcast(f, id, n->in[1 - k]);
		/* constant result: false & x, true | x */
		return fold_set_broadcast(f, id, n->in[k]);
	}
	return STEP_KEEP;
}

enum step
simplify_xor(struct fold *f, NodeId id)
{
	return drop_neutral(f, id, 0);
}

enum step
simplify_not(struct fold *f, NodeId id)
{
	const Val *x = in_val(f, &f->g->node[id], 0);

	if (x->def && f->g->node[x->def].op == OP_NOT)
		return fold_set_broadcast(f, id, f->g->node[x->def].in[0]);
	return STEP_KEEP;
}

enum step
simplify_where(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	double c;

	if (n->in[1] == n->in[2])
		return fold_set_broadcast(f, id, n->in[1]);
	if (fold_splat(f, n->in[0], &c))
		return fold_set_broadcast(f, id, n->in[c != 0 ? 1 : 2]);
	return STEP_KEEP;
}

enum step
simplify_cast(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (in_val(f, n, 0)->dt == (DType)n->attr.CAST.to)
		return fold_set_broadcast(f, id, n->in[0]);
	return STEP_KEEP;
}

enum step
simplify_dropout(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->attr.DROPOUT.ratio == 0 && n->nin == 1)
		return fold_set_broadcast(f, id, n->in[0]);
	return STEP_KEEP;
}

enum step
simplify_isnan(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (dtype_info[in_val(f, n, 0)->dt].cls == 'f')
		return STEP_KEEP;
	return fold_set_broadcast(f, id, val_scalar(f->g, DT_BOOL, 0));
}

/* A reduction over axes of one element each moves nothing. */
enum step
simplify_reduce(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Shape *x = &in_val(f, n, 0)->shape;
	const IntList *axes = &n->attr.REDUCE_SUM.axes;

	if (n->nin > 1 || !shape_known(x))
		return STEP_KEEP;
	for (int i = 0; i < axes->n; i++)
		if (x->dim[axes->v[i]] != 1)
			return STEP_KEEP;
	return fold_turn_reshape(f, id, n->in[0]);
}

/* A constant column times a constant row, too large to compute, as for angles
 * of positions: should be no product, which --dtype would narrow. */
static bool
is_outer(const struct fold *f, const Node *n, const Shape *a, const Shape *b)
{
	return n->nin == 2 && are_const(f, n, 0) && a->rank > 1 && b->rank > 1
		&& a->dim[a->rank - 1] == 1 && b->dim[b->rank - 2] == 1
		&& !n->attr.MATMUL.ta && !n->attr.MATMUL.tb
		&& n->attr.MATMUL.alpha == 1;
}

/* numpy's rule for vectors: a row on the left, a column on the right. */
enum step
simplify_matmul(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Shape a = in_val(f, n, 0)->shape, b = in_val(f, n, 1)->shape;
	ValId v[2] = { n->in[0], n->in[1] };

	if (is_outer(f, n, &a, &b)) {
		n->op = OP_MUL;
		n->attr = attr_default(OP_MUL);
		return STEP_KEEP;
	}
	if ((a.rank != 1 && b.rank != 1) || n->nin > 2)
		return STEP_KEEP;
	Attr attr = n->attr;
	if (a.rank == 1) {
		a = SHAPE(1, a.dim[0]);
		attr.MATMUL.ta = 0;
		v[0] = fold_reshape(f, v[0], &a, id);
	}
	if (b.rank == 1) {
		b = SHAPE(b.dim[0], 1);
		attr.MATMUL.tb = 0;
		v[1] = fold_reshape(f, v[1], &b, id);
	}
	return fold_turn_reshape(f, id, fold_emit(f, OP_MATMUL, 2, v, &attr,
	                                          id));
}
