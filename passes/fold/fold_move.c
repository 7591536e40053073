/* Pass fold: rules of ops that move elements. */
#include "passes/fold/fold_rules.h"

/* ---- ops that move elements ---- */

enum step
simplify_identity(struct fold *f, NodeId id)
{
	return fold_set_broadcast(f, id, f->g->node[id].in[0]);
}

/* The permutation of axes that reads a row-major array of shape x as shape y
 * with these strides, if there is one. */
static bool
as_permutation(const Shape *x, const Shape *y, const int64_t *stride,
               IntList *perm)
{
	int64_t own[MAX_RANK];
	bool used[MAX_RANK] = { false };

	shape_strides(x, own);
	perm->n = y->rank;
	if (x->rank != y->rank)
		return false;
	for (int d = 0; d < y->rank; d++) {
		int k = 0;
		/* axes of extent 1 stay in order */
		while (k < x->rank
		       && (used[k] || x->dim[k] != y->dim[d]
		           || (y->dim[d] != 1 && own[k] != stride[d])))
			k++;
		if (k == x->rank)
			return false;
		used[k] = true;
		perm->v[d] = k;
	}
	return true;
}

/* reshape(transpose(reshape(x))) that only moves whole axes of x is
 * transpose(x).  Exporters so merge batch and heads around a transposition. */
static bool
is_transposition(const struct fold *f, const Node *n, ValId *x, IntList *perm)
{
	const Graph *g = f->g;
	const Val *t = in_val(f, n, 0);
	int64_t own[MAX_RANK], moved[MAX_RANK], stride[MAX_RANK];

	if (!t->def || g->node[t->def].op != OP_TRANSPOSE)
		return false;
	const Val *r = in_val(f, &g->node[t->def], 0);
	if (!r->def || g->node[r->def].op != OP_RESHAPE
	    || g->node[r->def].nin > 1)
		return false;
	*x = g->node[r->def].in[0];
	shape_strides(&r->shape, own);
	for (int d = 0; d < t->shape.rank; d++)
		moved[d] = own[g->node[t->def].attr.TRANSPOSE.perm.v[d]];
	return shape_nelem(&t->shape) > 0
	       && shape_view(&t->shape, moved, &out_val(f, n)->shape, stride)
	       && as_permutation(&g->val[*x].shape, &out_val(f, n)->shape,
	                         stride, perm);
}

enum step
simplify_reshape(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Val *x = in_val(f, n, 0);

	if (n->nin > 1)
		return STEP_KEEP;
	if (x->def && f->g->node[x->def].op == OP_RESHAPE
	    && f->g->node[x->def].nin == 1) {
		n->in[0] = f->g->node[x->def].in[0];
		x = in_val(f, n, 0);
	}
	if (shape_eq(&x->shape, &out_val(f, n)->shape))
		return fold_set_broadcast(f, id, n->in[0]);
	ValId whole;
	IntList perm;
	if (is_transposition(f, n, &whole, &perm)) {
		fold_set_op(f, id, OP_TRANSPOSE, whole);
		n->attr.TRANSPOSE.perm = perm;
		return simplify_transpose(f, id);
	}
	return STEP_KEEP;
}

enum step
fold_turn_reshape(struct fold *f, NodeId id, ValId x)
{
	Node *n = &f->g->node[id];

	if (!x)
		return STEP_FAIL;
	fold_set_op(f, id, OP_RESHAPE, x);
	n->attr = attr_reshape(&out_val(f, n)->shape);
	return simplify_reshape(f, id);
}

enum step
simplify_expand(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->nin == 1 && shape_eq(&in_val(f, n, 0)->shape,
	                            &out_val(f, n)->shape))
		return fold_set_broadcast(f, id, n->in[0]);
	return STEP_KEEP;
}

enum step
simplify_transpose(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const IntList *perm = &n->attr.TRANSPOSE.perm;

	for (int d = 0; d < perm->n; d++)
		if (perm->v[d] != d)
			return STEP_KEEP;
	if (in_val(f, n, 0)->shape.rank != perm->n)
		return STEP_KEEP;
	return fold_set_broadcast(f, id, n->in[0]);
}

enum step
simplify_slice(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->nin == 1 && shape_known(&out_val(f, n)->shape)
	    && fold_is_whole(&n->attr.SLICE.start, &n->attr.SLICE.step,
	                     &in_val(f, n, 0)->shape, &out_val(f, n)->shape))
		return fold_set_broadcast(f, id, n->in[0]);
	return STEP_KEEP;
}

enum step
simplify_split(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Shape *x = &in_val(f, n, 0)->shape;
	int axis = (int)n->attr.SPLIT.axis;

	if (!are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(&out_val(f, n)->shape))
		return STEP_KEEP;
	return fold_turn_reshape(f, id, fold_slice_axis(f, n->in[0], axis,
		fold_part_start(f, n, x->dim[axis]), 1, id));
}

/* Negative widths become a slice; the pad then only adds. */
enum step
simplify_pad(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	IntList *begin = &n->attr.PAD.begin, *end = &n->attr.PAD.end;
	ValId x = n->in[0];
	Shape s = f->g->val[x].shape;
	IntList start = { .n = s.rank }, step = list_filled(s.rank, 1);
	bool cuts = false, adds = false;

	if (n->nin > 1 || !shape_known(&s))
		return STEP_KEEP;
	for (int d = 0; d < s.rank; d++) {
		cuts |= begin->v[d] < 0 || end->v[d] < 0;
		adds |= begin->v[d] > 0 || end->v[d] > 0;
		start.v[d] = begin->v[d] < 0 ? -begin->v[d] : 0;
		s.dim[d] += (begin->v[d] < 0 ? begin->v[d] : 0)
		            + (end->v[d] < 0 ? end->v[d] : 0);
		if (s.dim[d] < 0) {
			complain(f, n, "negative padding removes more elements "
			         "than the dim has");
			return STEP_FAIL;
		}
	}
	if (cuts) {
		x = fold_slice(f, x, &start, &step, &s, id);
		n = &f->g->node[id];
		n->in[0] = x;
		begin = &n->attr.PAD.begin;
		end = &n->attr.PAD.end;
		for (int d = 0; d < s.rank; d++) {
			begin->v[d] = begin->v[d] < 0 ? 0 : begin->v[d];
			end->v[d] = end->v[d] < 0 ? 0 : end->v[d];
		}
	}
	return adds && x ? STEP_KEEP : fold_set_broadcast(f, id, x);
}

/* tile = reshape, expand, reshape: [a, b] -> [ra, a, rb, b] */
enum step
simplify_tile(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const IntList *repeats = &n->attr.TILE.repeats;
	ValId x = n->in[0], v;
	const Shape *s = &f->g->val[x].shape;
	Shape apart = { .rank = 0 }, wide = { .rank = 0 };

	if (n->nin > 1 || !shape_known(s))
		return STEP_KEEP;
	for (int d = 0; d < s->rank; d++) {
		bool split = repeats->v[d] != 1 && s->dim[d] != 1;
		if (apart.rank + 1 + split > MAX_RANK) {
			complain(f, n, "too many repeated axes");
			return STEP_FAIL;
		}
		if (split) {
			wide.dim[wide.rank++] = repeats->v[d];
			apart.dim[apart.rank++] = 1;
		}
		wide.dim[wide.rank++] = s->dim[d] == 1 ? repeats->v[d]
		                                       : s->dim[d];
		apart.dim[apart.rank++] = s->dim[d];
	}
	v = fold_reshape(f, x, &apart, id);
	return fold_turn_reshape(f, id, fold_expand(f, v, &wide, id));
}

enum step
simplify_concat(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	int kept = 0;

	for (int i = 0; i < n->nin; i++)
		if (val_nelem(in_val(f, n, i)) != 0)
			n->in[kept++] = n->in[i];
	if (kept > 0)
		n->nin = kept;
	return n->nin == 1 ? fold_set_broadcast(f, id, n->in[0]) : STEP_KEEP;
}

enum step
simplify_constant_of_shape(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Val *y = out_val(f, n);

	/* too large to compute: expand one element */
	if (!val_is_const(in_val(f, n, 0)) || !shape_known(&y->shape))
		return STEP_KEEP;
	return fold_set_broadcast(f, id, val_scalar(f->g, y->dt,
		n->attr.CONSTANT_OF_SHAPE.value));
}
