/* Gradient rules of layout ops and of indexing. */
#include "passes/grad.h"

#include <string.h>

/* ---- layout ---- */

bool
grad_reshape(struct grad *c)
{
	c->dx[0] = adj_reshape(c, c->dy[0], adj_shape(c, c->n.in[0]));
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
pad_source(int64_t i, int64_t n, int64_t mode)
{
	if (mode == 2)
		return i < 0 ? 0 : i < n ? i : n - 1;
	if (mode == 3)
		return (i % n + n) % n;
	while (i < 0 || i >= n)
		i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
	return i;
}

/* An axis padded with copies of its own elements: they add up. */
static ValId
fold_axis(struct grad *c, ValId dy, int axis, int64_t n, int64_t begin)
{
	Attr a = attr_default(OP_SCATTER_ADD);
	Shape s = *adj_shape(c, dy);
	int64_t count = s.dim[axis];
	int64_t *at = arena_array(c->g->arena, (size_t)count + 1, sizeof *at);
	ValId idx;

	for (int64_t i = 0; i < count; i++)
		at[i] = pad_source(i - begin, n, c->n.attr.PAD.mode);
	idx = val_const(c->g, NULL, DT_I64, SHAPE(count), at);
	a.SCATTER_ADD.axis = axis;
	a.SCATTER_ADD.shape.n = s.rank;
	memcpy(a.SCATTER_ADD.shape.v, s.dim, sizeof s.dim);
	a.SCATTER_ADD.shape.v[axis] = n;
	return adj_op(c, OP_SCATTER_ADD, 2, (ValId[]){ idx, dy }, &a);
}

/* Cut off what was added, put zeros where a negative pad had cut. */
static ValId
unpad(struct grad *c, ValId dy)
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
		c->dx[0] = unpad(c, dy);
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

/* ---- indexing ---- */

bool
grad_gather(struct grad *c)
{
	Attr a = attr_default(OP_SCATTER_ADD);
	const Shape *x = adj_shape(c, c->n.in[0]);

	a.SCATTER_ADD.axis = c->n.attr.GATHER.axis;
	a.SCATTER_ADD.shape.n = x->rank;
	memcpy(a.SCATTER_ADD.shape.v, x->dim, sizeof x->dim);
	c->dx[0] = adj_op(c, OP_SCATTER_ADD, 2,
	                  (ValId[]){ c->n.in[1], c->dy[0] }, &a);
	return true;
}

static ValId
scatter(struct grad *c, ValId x, ValId idx, ValId upd, int64_t axis, int add)
{
	Attr a = attr_default(OP_SCATTER_ELEMENTS);

	a.SCATTER_ELEMENTS.axis = axis;
	a.SCATTER_ELEMENTS.add = add;
	return adj_op(c, OP_SCATTER_ELEMENTS, 3, (ValId[]){ x, idx, upd }, &a);
}

bool
grad_gather_elements(struct grad *c)
{
	ValId x = c->n.in[0];
	Shape s = *adj_shape(c, x);

	c->dx[0] = scatter(c, adj_zeros(c, adj_dt(c, x), &s), c->n.in[1],
	                   c->dy[0], c->n.attr.GATHER_ELEMENTS.axis, 1);
	return true;
}

#define REDUCTIONS "only reductions none and add have a gradient"

/* Where an element is replaced twice, each replacement is given the whole
 * gradient: which one stays is not defined. */
bool
grad_scatter_elements(struct grad *c)
{
	ValId idx = c->n.in[1], upd = c->n.in[2];
	int64_t axis = c->n.attr.SCATTER_ELEMENTS.axis;

	if (c->n.attr.SCATTER_ELEMENTS.add > 1)
		return grad_refuse(c, REDUCTIONS);
	if (c->want[2]) {
		Attr a = attr_default(OP_GATHER_ELEMENTS);

		a.GATHER_ELEMENTS.axis = axis;
		c->dx[2] = adj_op(c, OP_GATHER_ELEMENTS, 2,
		                  (ValId[]){ c->dy[0], idx }, &a);
	}
	if (c->want[0] && c->n.attr.SCATTER_ELEMENTS.add) {
		c->dx[0] = c->dy[0];
	} else if (c->want[0]) {
		Shape s = *adj_shape(c, upd);

		c->dx[0] = scatter(c, c->dy[0], idx,
		                   adj_zeros(c, adj_dt(c, upd), &s), axis, 0);
	}
	return true;
}

/* Indices of whole tuples: the batch dims' own coordinates in front. */
static ValId
without_batch(struct grad *c, ValId idx, int batch)
{
	Shape s = *adj_shape(c, idx), t = s;
	DType dt = adj_dt(c, idx);
	int64_t n, *at;
	Attr a = attr_default(OP_CAST);
	ValId in[2];

	t.dim[t.rank - 1] = batch;
	n = shape_nelem(&t);
	at = arena_array(c->g->arena, (size_t)n + 1, sizeof *at);
	for (int b = 0; b < batch; b++) {
		int64_t inner = 1;

		for (int d = b + 1; d < t.rank - 1; d++)
			inner *= t.dim[d];
		for (int64_t i = 0; i < n / batch; i++)
			at[i * batch + b] = i / inner % t.dim[b];
	}
	in[0] = val_const(c->g, NULL, DT_I64, t, at);
	a.CAST.to = dt;
	if (dt != DT_I64)
		in[0] = adj_op(c, OP_CAST, 1, in, &a);
	in[1] = idx;
	a = attr_default(OP_CONCAT);
	a.CONCAT.axis = s.rank - 1;
	return adj_op(c, OP_CONCAT, 2, in, &a);
}

bool
grad_gather_nd(struct grad *c)
{
	Shape s = *adj_shape(c, c->n.in[0]);
	int batch = (int)c->n.attr.GATHER_ND.batch;
	Attr a = attr_default(OP_SCATTER_ND);
	ValId in[3] = { adj_zeros(c, adj_dt(c, c->n.in[0]), &s), c->n.in[1],
		c->dy[0] };

	a.SCATTER_ND.add = 1;
	if (batch > 0)
		in[1] = without_batch(c, in[1], batch);
	c->dx[0] = adj_op(c, OP_SCATTER_ND, 3, in, &a);
	return true;
}

bool
grad_scatter_nd(struct grad *c)
{
	ValId idx = c->n.in[1], upd = c->n.in[2];

	if (c->n.attr.SCATTER_ND.add > 1)
		return grad_refuse(c, REDUCTIONS);
	if (c->want[2])
		c->dx[2] = adj_op(c, OP_GATHER_ND, 2,
		                  (ValId[]){ c->dy[0], idx }, NULL);
	if (c->want[0] && c->n.attr.SCATTER_ND.add) {
		c->dx[0] = c->dy[0];
	} else if (c->want[0]) {
		Shape s = *adj_shape(c, upd);
		ValId zeros = adj_zeros(c, adj_dt(c, upd), &s);

		c->dx[0] = adj_op(c, OP_SCATTER_ND, 3,
		                  (ValId[]){ c->dy[0], idx, zeros }, NULL);
	}
	return true;
}

/* The places of the values are all different. */
bool
grad_topk(struct grad *c)
{
	Shape s = *adj_shape(c, c->n.in[0]), y = s;
	int64_t axis = c->n.attr.TOPK.axis;
	ValId idx;

	if (axis < 0)
		axis += s.rank;
	y.dim[axis] = c->n.attr.TOPK.k;
	idx = adj_out(c, 1, DT_I64, y);
	c->dx[0] = scatter(c, adj_zeros(c, adj_dt(c, c->n.in[0]), &s), idx,
	                   c->dy[0], axis, 0);
	return true;
}

/* The other way round. */
bool
grad_cumsum(struct grad *c)
{
	Attr a = c->n.attr;

	if (a.CUMSUM.product)
		return grad_refuse(c, "a running product has no gradient here");
	a.CUMSUM.reverse = !a.CUMSUM.reverse;
	c->dx[0] = adj_op(c, OP_CUMSUM, 1, c->dy, &a);
	return true;
}
