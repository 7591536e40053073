/* Gradient rules of indexing, scattering and running sums. */
#include "passes/grad/grad_rules.h"

#include <string.h>

bool
grad_gather(struct grad *c)
{
	Attr a = attr_default(OP_SCATTER_ADD);
	const Shape *x = adj_shape(c, c->n.in[0]);

	a.SCATTER_ADD.axis = c->n.attr.GATHER.axis;
	a.SCATTER_ADD.shape = shape_list(x);
	a.SCATTER_ADD.whole_extent = c->n.attr.GATHER.whole_extent;
	a.SCATTER_ADD.all = c->n.attr.GATHER.all;
	c->dx[0] = adj_op(c, OP_SCATTER_ADD, 2,
	                  (ValId[]){ c->n.in[1], c->dy[0] }, &a);
	return true;
}

bool
grad_scatter_add(struct grad *c)
{
	Attr a = attr_default(OP_GATHER);

	a.GATHER.axis = c->n.attr.SCATTER_ADD.axis;
	if (c->want[1])
		c->dx[1] = adj_op(c, OP_GATHER, 2,
		                  (ValId[]){ c->dy[0], c->n.in[0] }, &a);
	if (c->n.nin > 2 && c->want[2])
		c->dx[2] = c->dy[0];
	return true;
}

static ValId
adj_scatter(struct grad *c, ValId x, ValId idx, ValId upd, int64_t axis,
            int add)
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

	c->dx[0] = adj_scatter(c, adj_zeros(c, adj_dt(c, x), &s), c->n.in[1],
	                       c->dy[0], c->n.attr.GATHER_ELEMENTS.axis, 1);
	return true;
}

/* Indices of whole tuples: the batch dims' own coordinates in front. */
static ValId
without_batch(struct grad *c, ValId idx, int batch)
{
	Shape s = *adj_shape(c, idx), t = s;
	int64_t n, *at;
	Attr a = attr_default(OP_CONCAT);
	ValId in[2];

	t.dim[t.rank - 1] = batch;
	n = shape_nelem(&t);
	at = arena_array(c->g->arena, (size_t)n + 1, sizeof *at);
	for (int b = 0; b < batch; b++) {
		int64_t inner = shape_span(&t, b + 1, t.rank - 1);

		for (int64_t i = 0; i < n / batch; i++)
			at[i * batch + b] = i / inner % t.dim[b];
	}
	in[0] = adj_cast(c, val_const(c->g, NULL, DT_I64, t, at),
	                 adj_dt(c, idx));
	in[1] = idx;
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

/* ---- scattering ---- */

/* The scatter at hand, of other values and combined in another way. */
static ValId
emit_scatter_like(struct grad *c, ValId x, ValId upd, int how)
{
	Attr a = c->n.attr;

	if (c->n.op == OP_SCATTER_ND)
		a.SCATTER_ND.add = how;
	else
		a.SCATTER_ELEMENTS.add = how;
	return adj_op(c, c->n.op, 3, (ValId[]){ x, c->n.in[1], upd }, &a);
}

/* What stands in x where the updates went. */
static ValId
gather_updated(struct grad *c, ValId x)
{
	Attr a = attr_default(OP_GATHER_ELEMENTS);

	if (c->n.op == OP_SCATTER_ND)
		return adj_op(c, OP_GATHER_ND, 2,
		              (ValId[]){ x, c->n.in[1] }, NULL);
	a.GATHER_ELEMENTS.axis = c->n.attr.SCATTER_ELEMENTS.axis;
	return adj_op(c, OP_GATHER_ELEMENTS, 2,
	              (ValId[]){ x, c->n.in[1] }, &a);
}

static ValId
zeros_like(struct grad *c, ValId v)
{
	Shape s = *adj_shape(c, v);

	return adj_zeros(c, adj_dt(c, v), &s);
}

/* 1 where a equals b, as numbers of their type. */
static ValId
emit_equal(struct grad *c, ValId a, ValId b)
{
	return adj_cast(c, adj_2(c, OP_EQ, a, b), adj_dt(c, a));
}

/* Largest or smallest: those that equal the result share its gradient
 * evenly. */
static bool
scatter_extreme(struct grad *c)
{
	ValId x = c->n.in[0], upd = c->n.in[2], y = c->n.out[0];
	ValId mine = emit_equal(c, x, y),
	      theirs = emit_equal(c, upd, gather_updated(c, y));
	ValId count = emit_scatter_like(c, mine, theirs, 1);
	ValId each = adj_2(c, OP_DIV, c->dy[0], count);

	if (c->want[0])
		c->dx[0] = adj_2(c, OP_MUL, each, mine);
	if (c->want[2])
		c->dx[2] = adj_2(c, OP_MUL, gather_updated(c, each), theirs);
	return true;
}

/* The product of the other factors: of all that are not zero, divided by
 * this one; or that of all others if this one alone is zero; or zero. */
static ValId
product_of_others(struct grad *c, ValId v, ValId nonzero, ValId zeros,
                  ValId product)
{
	DType dt = adj_dt(c, v);
	ValId none = adj_scalar(c, dt, 0), one = adj_scalar(c, dt, 1);
	ValId left = adj_2(c, OP_SUB, zeros,
	                   emit_equal(c, v, none));

	return adj_where(c, adj_2(c, OP_EQ, left, none),
	                 adj_2(c, OP_DIV, product,
	                       adj_where(c, nonzero, v, one)), none);
}

static bool
scatter_product(struct grad *c)
{
	ValId x = c->n.in[0], upd = c->n.in[2];
	DType dt = adj_dt(c, x);
	ValId none = adj_scalar(c, dt, 0), one = adj_scalar(c, dt, 1);
	ValId xn = adj_1(c, OP_NOT, adj_2(c, OP_EQ, x, none));
	ValId un = adj_1(c, OP_NOT, adj_2(c, OP_EQ, upd, none));
	ValId zeros = emit_scatter_like(c, emit_equal(c, x, none),
	                                emit_equal(c, upd, none), 1);
	ValId product = emit_scatter_like(c, adj_where(c, xn, x, one),
	                                  adj_where(c, un, upd, one), 2);

	if (c->want[0])
		c->dx[0] = adj_2(c, OP_MUL, c->dy[0],
		                 product_of_others(c, x, xn, zeros, product));
	if (c->want[2])
		c->dx[2] = adj_2(c, OP_MUL, gather_updated(c, c->dy[0]),
		                 product_of_others(c, upd, un,
		                                   gather_updated(c, zeros),
		                                   gather_updated(c, product)));
	return true;
}

/* Where an element is replaced twice, each replacement is given the whole
 * gradient: which one stays is not defined. */
static bool
scatter_any(struct grad *c, int64_t how)
{
	if (how > 2)
		return scatter_extreme(c);
	if (how == 2)
		return scatter_product(c);
	if (c->want[2])
		c->dx[2] = gather_updated(c, c->dy[0]);
	if (c->want[0])
		c->dx[0] = how == 1 ? c->dy[0]
			: emit_scatter_like(c, c->dy[0],
			                    zeros_like(c, c->n.in[2]), 0);
	return true;
}

bool
grad_scatter_elements(struct grad *c)
{
	return scatter_any(c, c->n.attr.SCATTER_ELEMENTS.add);
}

bool
grad_scatter_nd(struct grad *c)
{
	return scatter_any(c, c->n.attr.SCATTER_ND.add);
}

/* ---- order and running sums ---- */

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
	c->dx[0] = adj_scatter(c, adj_zeros(c, adj_dt(c, c->n.in[0]), &s), idx,
	                       c->dy[0], axis, 0);
	return true;
}

static ValId
adj_cumulate(struct grad *c, ValId x, bool product, bool backwards)
{
	Attr a = c->n.attr;

	a.CUMSUM.product = product;
	a.CUMSUM.reverse ^= backwards;
	return adj_op(c, OP_CUMSUM, 1, &x, &a);
}

/* A running product is zero from the first zero on.  Before it, an element's
 * gradient is that of the products behind it over the element; of the first
 * zero, the same with a 1 in its place; after it, zero. */
static ValId
running_product(struct grad *c)
{
	ValId x = c->n.in[0], dy = c->dy[0];
	DType dt = adj_dt(c, x);
	ValId none = adj_scalar(c, dt, 0), one = adj_scalar(c, dt, 1);
	ValId is_zero = adj_2(c, OP_EQ, x, none);
	ValId seen = emit_equal(c, x, none), first, behind, at;
	Attr inclusive = c->n.attr;

	inclusive.CUMSUM.product = inclusive.CUMSUM.exclusive = 0;
	seen = adj_op(c, OP_CUMSUM, 1, &seen, &inclusive);
	first = adj_2(c, OP_AND, is_zero, adj_2(c, OP_EQ, seen, one));
	behind =
		adj_cumulate(c, adj_2(c, OP_MUL, dy, c->n.out[0]), false, true);
	behind = adj_2(c, OP_DIV, behind, adj_where(c, is_zero, one, x));
	at = adj_cumulate(c, adj_where(c, first, one, x), true, false);
	at = adj_cumulate(c, adj_2(c, OP_MUL, dy, at), false, true);
	return adj_where(c, adj_2(c, OP_EQ, seen, none), behind,
	                 adj_where(c, first, at, none));
}

/* The other way round. */
bool
grad_cumsum(struct grad *c)
{
	c->dx[0] = c->n.attr.CUMSUM.product ? running_product(c)
		: adj_cumulate(c, c->dy[0], false, true);
	return true;
}
