/* Gradient rules of layout ops. */
#include "passes/grad/grad_rules.h"
#include "ir/placement.h"

#include <string.h>

/* ---- layout ---- */

/* A rank's pieces may have one shape and be cut along different dims. */
bool
grad_reshape(struct grad *c)
{
	const Val *x = &c->g->val[c->n.in[0]], *y = &c->g->val[c->n.out[0]];
	Attr a = attr_reshape(&x->shape);

	c->dx[0] = placement_alike(&x->placement, &y->placement)
		? adj_reshape(c, c->dy[0], &x->shape)
		: adj_op(c, OP_RESHAPE, 1, c->dy, &a);
	return true;
}

bool
grad_expand(struct grad *c)
{
	c->dx[0] = adj_fit(c, c->dy[0], c->n.in[0]);
	return true;
}

bool
grad_transpose(struct grad *c)
{
	const IntList *perm = &c->n.attr.TRANSPOSE.perm;
	Attr a = attr_default(OP_TRANSPOSE);

	a.TRANSPOSE.perm.n = perm->n;
	for (int i = 0; i < perm->n; i++)
		a.TRANSPOSE.perm.v[perm->v[i]] = i;
	c->dx[0] = adj_op(c, OP_TRANSPOSE, 1, c->dy, &a);
	return true;
}

/* Slices of one value that do not overlap never come here: the pass joins
 * their adjoints. */
bool
grad_slice(struct grad *c)
{
	c->dx[0] = adj_unslice(c, c->dy[0], adj_shape(c, c->n.in[0]),
	                       &c->n.attr.SLICE.start, &c->n.attr.SLICE.step);
	return true;
}

bool
grad_concat(struct grad *c)
{
	int64_t start[MAX_RANK] = { 0 };
	int rank = adj_shape(c, c->dy[0])->rank;
	int64_t axis = c->n.attr.CONCAT.axis;

	if (axis < 0)
		axis += rank;
	for (int k = 0; k < c->n.nin; k++) {
		Shape s = *adj_shape(c, c->n.in[k]);

		if (c->want[k])
			c->dx[k] = adj_slice(c, c->dy[0], start, s.dim);
		start[axis] += s.dim[axis];
	}
	return true;
}

/* Where element i of a padded axis was read from. */
static int64_t
padded_from(int64_t i, int64_t n, int64_t mode)
{
	int64_t period = 2 * (n - 1);   /* of reflections */

	if (mode == 2)
		return i < 0 ? 0 : i < n ? i : n - 1;
	if (mode == 3)
		return (i % n + n) % n;
	if (n == 1)
		return 0;
	i = (i % period + period) % period;
	return i < n ? i : period - i;
}

/* An axis padded with copies of its own elements: they add up. */
static ValId
fold_axis(struct grad *c, ValId dy, int axis, int64_t n, int64_t begin)
{
	int64_t count = adj_shape(c, dy)->dim[axis];
	int64_t *at = adj_indices(c, count);

	if (!at)
		return 0;
	for (int64_t i = 0; i < count; i++)
		at[i] = padded_from(i - begin, n, c->n.attr.PAD.mode);
	return adj_spread(c, dy, axis, n, at);
}

/* Cut off what was added, put zeros where a negative pad had cut. */
static ValId
undo_pad(struct grad *c, ValId dy)
{
	const IntList *begin = &c->n.attr.PAD.begin, *end = &c->n.attr.PAD.end;
	Shape s = *adj_shape(c, dy);
	Attr a = attr_default(OP_PAD);
	int64_t start[MAX_RANK];
	bool cuts = false, pads = false;

	a.PAD.begin.n = a.PAD.end.n = s.rank;
	for (int i = 0; i < s.rank; i++) {
		int64_t b = begin->v[i], e = end->v[i];

		start[i] = b > 0 ? b : 0;
		s.dim[i] -= start[i] + (e > 0 ? e : 0);
		a.PAD.begin.v[i] = b < 0 ? -b : 0;
		a.PAD.end.v[i] = e < 0 ? -e : 0;
		cuts |= b > 0 || e > 0;
		pads |= b < 0 || e < 0;
	}
	if (cuts)
		dy = adj_slice(c, dy, start, s.dim);
	return pads ? adj_op(c, OP_PAD, 1, &dy, &a) : dy;
}

bool
grad_pad(struct grad *c)
{
	Shape x = *adj_shape(c, c->n.in[0]);
	ValId dy = c->dy[0];

	if (c->n.attr.PAD.mode == 0) {
		c->dx[0] = undo_pad(c, dy);
		return true;
	}
	for (int i = 0; i < x.rank && dy != 0; i++)
		if (c->n.attr.PAD.begin.v[i] != 0
		    || c->n.attr.PAD.end.v[i] != 0)
			dy = fold_axis(c, dy, i, x.dim[i],
			               c->n.attr.PAD.begin.v[i]);
	c->dx[0] = dy;
	return true;
}

bool
grad_trilu(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_TRILU, 1, c->dy, &c->n.attr);
	return true;
}
