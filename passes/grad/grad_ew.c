/* Gradient rules of element-wise ops. */
#include "passes/grad/grad_rules.h"

#include <math.h>

bool
grad_none(struct grad *c)
{
	return grad_refuse(c, NULL);
}

bool
grad_zero(struct grad *c)
{
	(void)c;
	return true;
}

/* The adjoint of operand k is d, summed where that was broadcast. */
static void
set_adjoint(struct grad *c, int k, ValId d)
{
	if (c->shield && d)
		d = adj_2(c, OP_SHIELD, c->dy[0], d);
	c->dx[k] = adj_fit(c, d, c->n.in[k]);
}

/* ---- one operand ---- */

/* a + 1 */
static ValId
plus_one(struct grad *c, ValId a)
{
	return adj_2(c, OP_ADD, a, adj_scalar(c, adj_dt(c, c->n.in[0]), 1));
}

/* 1 - a */
static ValId
one_minus(struct grad *c, ValId a)
{
	return adj_2(c, OP_SUB, adj_scalar(c, adj_dt(c, c->n.in[0]), 1), a);
}

/* The adjoint of operand x by the result y and its adjoint dy. */
#define UNARY(name, adjoint) \
	bool \
	grad_##name(struct grad *c) \
	{ \
		const ValId x = c->n.in[0], y = c->n.out[0], dy = c->dy[0]; \
 \
		(void)x; \
		(void)y; \
		set_adjoint(c, 0, adjoint); \
		return true; \
	}
#define OF(op, a) adj_1(c, OP_##op, a)
#define MUL(a, b) adj_2(c, OP_MUL, a, b)
#define DIV(a, b) adj_2(c, OP_DIV, a, b)

UNARY(neg, OF(NEG, dy))
UNARY(abs, MUL(dy, OF(SIGN, x)))
UNARY(exp, MUL(dy, y))
UNARY(log, DIV(dy, x))
UNARY(sqrt, DIV(adj_scale(c, dy, .5), y))
UNARY(recip, OF(NEG, MUL(dy, MUL(y, y))))
UNARY(sin, MUL(dy, OF(COS, x)))
UNARY(cos, OF(NEG, MUL(dy, OF(SIN, x))))
UNARY(atan, DIV(dy, plus_one(c, MUL(x, x))))
UNARY(asinh, DIV(dy, OF(SQRT, plus_one(c, MUL(x, x)))))
UNARY(tanh, MUL(dy, one_minus(c, MUL(y, y))))
UNARY(sigmoid, MUL(dy, MUL(y, one_minus(c, y))))
/* 2 / sqrt(pi) */
UNARY(erf, MUL(dy, adj_scale(c, OF(EXP, OF(NEG, MUL(x, x))),
                             1.12837916709551257390)))
UNARY(softplus, MUL(dy, OF(SIGMOID, x)))
UNARY(silu, adj_2(c, OP_SILU_GRAD, x, dy))

bool
grad_relu(struct grad *c)
{
	ValId zero = adj_scalar(c, adj_dt(c, c->n.in[0]), 0);
	ValId on = adj_2(c, OP_GT, c->n.out[0], zero);

	set_adjoint(c, 0, adj_where(c, on, c->dy[0], zero));
	return true;
}

bool
grad_gelu(struct grad *c)
{
	Attr a = attr_default(OP_GELU_GRAD);

	a.GELU_GRAD.tanh = c->n.attr.GELU.tanh;
	set_adjoint(c, 0, adj_op(c, OP_GELU_GRAD, 2,
	                         (ValId[]){ c->n.in[0], c->dy[0] }, &a));
	return true;
}

bool
grad_cast(struct grad *c)
{
	c->dx[0] = adj_cast(c, c->dy[0], adj_dt(c, c->n.in[0]));
	return true;
}

bool
grad_copy(struct grad *c)
{
	c->dx[0] = c->dy[0];
	return true;
}

/* The mask is drawn again from the same stream. */
bool
grad_dropout(struct grad *c)
{
	Attr a = c->n.attr;

	a.DROPOUT.bwd = 1;
	c->dx[0] = adj_op(c, OP_DROPOUT, 1, c->dy, &a);
	return true;
}

/* ---- two operands, which broadcast ---- */

bool
grad_add(struct grad *c)
{
	for (int k = 0; k < 2; k++)
		if (c->want[k])
			set_adjoint(c, k, c->dy[0]);
	return true;
}

bool
grad_sub(struct grad *c)
{
	if (c->want[0])
		set_adjoint(c, 0, c->dy[0]);
	if (c->want[1])         /* negate the smaller of the two */
		c->dx[1] = adj_1(c, OP_NEG,
		                 adj_fit(c, c->dy[0], c->n.in[1]));
	return true;
}

bool
grad_mul(struct grad *c)
{
	ValId a = c->n.in[0], b = c->n.in[1];

	if (a == b) {
		set_adjoint(c, 0,
		            MUL(adj_scale(c, c->dy[0], 2), a));
		return true;
	}
	if (c->want[0])
		set_adjoint(c, 0, MUL(c->dy[0], b));
	if (c->want[1])
		set_adjoint(c, 1, MUL(c->dy[0], a));
	return true;
}

bool
grad_div(struct grad *c)
{
	ValId b = c->n.in[1];

	if (c->want[0])
		set_adjoint(c, 0, DIV(c->dy[0], b));
	if (c->want[1]) {
		ValId t = MUL(c->dy[0], c->n.out[0]);

		set_adjoint(c, 1, adj_1(c, OP_NEG, DIV(t, b)));
	}
	return true;
}

/* mod(a, b) = a - k b, where the whole number k moves only at jumps.  k comes
 * from the result: a division of a by b could round to the next number. */
bool
grad_mod(struct grad *c)
{
	ValId a = c->n.in[0], b = c->n.in[1], k;

	if (c->want[0])
		set_adjoint(c, 0, c->dy[0]);
	if (c->want[1]) {
		k = DIV(adj_2(c, OP_SUB, a, c->n.out[0]), b);
		k = adj_1(c, OP_ROUND, k);
		set_adjoint(c, 1,
		            adj_1(c, OP_NEG, MUL(c->dy[0], k)));
	}
	return true;
}

/* dy * e * x^(e-1) for a number e. */
static ValId
power_slope(struct grad *c, double e)
{
	ValId dy = c->dy[0], x = c->n.in[0], y = c->n.out[0], t;

	if (e == 0)
		return 0;
	if (e == 1)
		return dy;
	if (e == 2)
		return MUL(adj_scale(c, dy, 2), x);
	if (e == 3)
		return MUL(adj_scale(c, dy, 3),
		             MUL(x, x));
	if (e == .5)
		return DIV(adj_scale(c, dy, .5), y);
	if (e == -1)
		return adj_1(c, OP_NEG,
		             MUL(dy, MUL(y, y)));
	t = adj_2(c, OP_POW, x, adj_scalar(c, adj_dt(c, x), e - 1));
	return MUL(adj_scale(c, dy, e), t);
}

/* x^0 has slope 0 also where x^-1 is infinite. */
static ValId
power_slope_any(struct grad *c, ValId e)
{
	DType dt = adj_dt(c, c->n.in[0]);
	ValId zero = adj_scalar(c, dt, 0), t;

	t = adj_2(c, OP_POW, c->n.in[0],
	          adj_2(c, OP_SUB, e, adj_scalar(c, dt, 1)));
	t = MUL(MUL(c->dy[0], e), t);
	return adj_where(c, adj_2(c, OP_EQ, e, zero), zero, t);
}

bool
grad_pow(struct grad *c)
{
	ValId x = c->n.in[0], e = c->n.in[1];
	DType dt = adj_dt(c, x);
	double number;

	if (c->want[0] && val_splat(c->g, e, &number)) {
		set_adjoint(c, 0, power_slope(c, number));
	} else if (c->want[0]) {
		set_adjoint(c, 0, power_slope_any(c, adj_cast(c, e, dt)));
	}
	if (c->want[1]) {
		ValId zero = adj_scalar(c, dt, 0), t;

		if (adj_dt(c, c->n.in[1]) != dt)
			return grad_refuse(c, "the exponent and the base have "
			                   "different dtypes");
		t = MUL(c->n.out[0], adj_1(c, OP_LOG, x));
		t = MUL(c->dy[0], t);
		set_adjoint(c, 1,
		            adj_where(c, adj_2(c, OP_EQ, x, zero), zero, t));
	}
	return true;
}

/* A number of the model: then this is a clamp. */
static bool
is_clamp_bound(const struct grad *c, int k)
{
	const Val *v = &c->g->val[c->n.in[k]];

	return v->kind == V_CONST && shape_nelem(&v->shape) == 1;
}

/* Ties give half to either side, and nothing at the bound of a clamp. */
static bool
grad_pick(struct grad *c, Op wins)
{
	ValId zero = adj_scalar(c, adj_dt(c, c->n.in[0]), 0);

	for (int k = 0; k < 2; k++) {
		ValId won, rest = zero;

		if (!c->want[k])
			continue;
		if (!is_clamp_bound(c, 1 - k))
			rest = adj_where(c, adj_2(c, OP_EQ, c->n.in[0],
			                           c->n.in[1]),
			                  adj_scale(c, c->dy[0], .5), zero);
		won = adj_2(c, wins, c->n.in[k], c->n.in[1 - k]);
		set_adjoint(c, k, adj_where(c, won, c->dy[0], rest));
	}
	return true;
}

bool
grad_max(struct grad *c)
{
	return grad_pick(c, OP_GT);
}

bool
grad_min(struct grad *c)
{
	return grad_pick(c, OP_LT);
}

bool
grad_where(struct grad *c)
{
	ValId cond = c->n.in[0], zero = adj_scalar(c, adj_dt(c, c->dy[0]), 0);

	if (c->want[1])
		set_adjoint(c, 1, adj_where(c, cond, c->dy[0], zero));
	if (c->want[2])
		set_adjoint(c, 2, adj_where(c, cond, zero, c->dy[0]));
	return true;
}
