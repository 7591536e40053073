/* Folding rules of element-wise ops. */
#include "passes/fold/eval_rules.h"

#include <math.h>

/* ---- one operand ---- */

static double
gelu(double x, bool tanh_form)
{
	if (tanh_form)
		return 0.5 * x * (1 + tanh(0.7978845608028654
		                           * (x + 0.044715 * x * x * x)));
	return 0.5 * x * (1 + erf(x * 0.7071067811865476));
}

static double
sigmoid(double x)
{
	return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

typedef double FloatOf(const Node *, double x);
typedef int64_t IntOf(int64_t x);

/* ints: NULL if integers are computed in double, too. */
static enum eval_status
unary(struct eval *e, FloatOf *floats, IntOf *ints)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = e->data;

	if (dt_is_float(x->dt))
		ints = NULL;
	for (int64_t i = 0; i < n; i++)
		if (ints)
			element_put_int(y->dt, data, i, ints(val_int(x, i)));
		else
			element_put_float(y->dt, data, i,
			                  floats(e->n, val_float(x, i)));
	return EVAL_DONE;
}

#define RULE(name, call) \
	enum eval_status \
	eval_##name(struct eval *e) \
	{ \
		return call; \
	}
#define OF_FLOATS(name, value) \
	static double \
	float_##name(const Node *n, double x) \
	{ \
		(void)n; \
		return value; \
	}
#define OF_INTS(name, value) \
	static int64_t \
	int_##name(int64_t x) \
	{ \
		(void)x; \
		return value; \
	}
#define UNARY(name, floats, ints) \
	OF_FLOATS(name, floats) OF_INTS(name, ints) \
	RULE(name, unary(e, float_##name, int_##name))
#define FLOATS(name, floats) \
	OF_FLOATS(name, floats) RULE(name, unary(e, float_##name, NULL))
#define INTS(name, ints) \
	OF_INTS(name, ints) RULE(name, unary(e, NULL, int_##name))

UNARY(neg, -x, (int64_t)-(uint64_t)x)
UNARY(abs, fabs(x), x < 0 ? (int64_t)-(uint64_t)x : x)
UNARY(sign, isnan(x) ? x : (x > 0) - (x < 0), (x > 0) - (x < 0))
UNARY(relu, isnan(x) ? x : x > 0 ? x : 0, x > 0 ? x : 0)
UNARY(floor, floor(x), x)
UNARY(ceil, ceil(x), x)
UNARY(round, rint(x), x)
UNARY(isnan, isnan(x), 0)
INTS(not, !x)
INTS(bit_not, ~x)
FLOATS(exp, exp(x))
FLOATS(log, log(x))
FLOATS(sqrt, sqrt(x))
FLOATS(recip, 1 / x)
FLOATS(sin, sin(x))
FLOATS(cos, cos(x))
FLOATS(atan, atan(x))
FLOATS(asinh, asinh(x))
FLOATS(tanh, tanh(x))
FLOATS(sigmoid, sigmoid(x))
FLOATS(erf, erf(x))
FLOATS(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
FLOATS(gelu, gelu(x, n->attr.GELU.tanh))
FLOATS(silu, x >= 0 ? x / (1 + exp(-x)) : x * exp(x) / (1 + exp(x)))

enum eval_status
eval_cast(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);

	if (x->dt == y->dt) {
		y->data = x->data;
		return EVAL_DONE;
	}
	void *data = eval_room(e, 0);
	if (!data)
		return EVAL_LARGE;
	y->data = data;
	for (int64_t i = 0; i < n; i++)
		if (dt_is_float(x->dt) || x->dt == DT_U64)
			element_put_float(y->dt, data, i, val_float(x, i));
		else
			element_put_int(y->dt, data, i, val_int(x, i));
	/* a 64-bit unsigned number reaches a float through val_float, but an
	 * integer must not lose digits on the way */
	if (x->dt == DT_U64 && !dt_is_float(y->dt))
		for (int64_t i = 0; i < n; i++)
			element_put_int(y->dt, data, i, val_int(x, i));
	return EVAL_DONE;
}

/* ---- two operands ---- */

static int64_t
power_int(int64_t base, int64_t exponent)
{
	uint64_t b = (uint64_t)base, y = 1;

	if (exponent < 0)
		return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
	for (; exponent; exponent >>= 1, b *= b)
		if (exponent & 1)
			y *= b;
	return (int64_t)y;
}

static double
mod_float(const Node *n, double a, double b)
{
	double r = fmod(a, b);

	return !n->attr.MOD.fmod && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t
mod_int(const Node *n, int64_t a, int64_t b)
{
	int64_t r = b == -1 ? 0 : a % b;

	return !n->attr.MOD.fmod && r && (r < 0) != (b < 0) ? r + b : r;
}

/* A right shift of signed numbers brings in copies of the sign. */
static int64_t
shift(DType dt, int64_t a, uint64_t by, bool left)
{
	uint64_t width = 8 * (uint64_t)dtype_info[dt].nbytes;

	if (!left && dtype_info[dt].cls == 'i')
		return a >> (by < width ? by : width - 1);
	return by >= width ? 0
	     : (int64_t)(left ? (uint64_t)a << by : (uint64_t)a >> by);
}

typedef double FloatOf2(const Node *, double a, double b);
typedef int64_t IntOf2(const Node *, DType, int64_t a, int64_t b);

static enum eval_status
binary(struct eval *e, FloatOf2 *of_floats, IntOf2 *of_ints, bool divides)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = e->data;
	struct walk w = walk_new(&y->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);
	bool floats = dt_is_float(a->dt) || dt_is_float(b->dt);

	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		if (floats) {
			element_put_float(y->dt, data, i, of_floats(e->n,
			    val_float(a, w.at[ia]), val_float(b, w.at[ib])));
			continue;
		}
		int64_t d = val_int(b, w.at[ib]);
		if (d == 0 && divides)
			return eval_fail(e, "division by zero while folding a "
			                 "constant");
		element_put_int(y->dt, data, i,
		        of_ints(e->n, y->dt, val_int(a, w.at[ia]), d));
	}
	return EVAL_DONE;
}

/* In `ints`, b is not 0 where it divides; A and B are unsigned. */
#define A ((uint64_t)a)
#define B ((uint64_t)b)
#define OF_INTS_2(name, value) \
	static int64_t \
	int_##name(const Node *n, DType dt, int64_t a, int64_t b) \
	{ \
		(void)n; \
		(void)dt; \
		return (int64_t)(value); \
	}
#define OF_FLOATS_2(name, value) \
	static double \
	float_##name(const Node *n, double a, double b) \
	{ \
		(void)n; \
		return value; \
	}
#define BINARY(name, floats, ints, divides) \
	OF_FLOATS_2(name, floats) OF_INTS_2(name, ints) \
	RULE(name, binary(e, float_##name, int_##name, divides))
#define BITS(name, ints) \
	OF_INTS_2(name, ints) RULE(name, binary(e, NULL, int_##name, false))
#define NAN_OR(value) (isnan(a) || isnan(b) ? (double)NAN : (value))

BINARY(add, a + b, A + B, false)
BINARY(sub, a - b, A - B, false)
BINARY(mul, a * b, A * B, false)
BINARY(div, a / b, dt == DT_U64 ? (int64_t)(A / B)
       : b == -1 ? (int64_t)-A : a / b, true)
BINARY(mod, mod_float(n, a, b), dt == DT_U64 ? (int64_t)(A % B)
       : mod_int(n, a, b), true)
BINARY(pow, pow(a, b), power_int(a, b), false)
BINARY(max, NAN_OR(a > b ? a : b), (dt == DT_U64 ? A > B : a > b) ? a : b,
       false)
BINARY(min, NAN_OR(a < b ? a : b), (dt == DT_U64 ? A < B : a < b) ? a : b,
       false)
BITS(bit_and, a & b)
BITS(bit_or, a | b)
BITS(bit_xor, a ^ b)
BITS(shl, shift(dt, a, B, true))
BITS(shr, shift(dt, a, B, false))

struct relation {
	bool (*floats)(double, double);
	bool (*ints)(int64_t, int64_t);
	bool (*words)(uint64_t, uint64_t);
};

static enum eval_status
compare(struct eval *e, struct relation is)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = e->data;
	struct walk w = walk_new(&y->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);
	bool floats = dt_is_float(a->dt) || dt_is_float(b->dt);

	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		int64_t p = w.at[ia], q = w.at[ib];

		element_put_int(y->dt, data, i,
		    floats ? is.floats(val_float(a, p), val_float(b, q))
		    : a->dt == DT_U64
		    ? is.words((uint64_t)val_int(a, p), (uint64_t)val_int(b, q))
		    : is.ints(val_int(a, p), val_int(b, q)));
	}
	return EVAL_DONE;
}

#define RELATION(name, of, type, value) \
	static bool \
	of##_##name(type a, type b) \
	{ \
		return value; \
	}
#define COMPARE(name, value) \
	RELATION(name, float, double, value) \
	RELATION(name, int, int64_t, value) \
	RELATION(name, word, uint64_t, value) \
	RULE(name, compare(e, (struct relation){ float_##name, int_##name, \
	                                         word_##name }))

COMPARE(eq, a == b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(and, a && b)
COMPARE(or, a || b)
COMPARE(xor, !a != !b)

/* ---- more ---- */

enum eval_status
eval_where(struct eval *e)
{
	const Val *c = eval_in(e, 0), *a = eval_in(e, 1), *b = eval_in(e, 2);
	Val *y = eval_out(e, 0);
	int size = dtype_info[y->dt].nbytes;
	int64_t n = val_nelem(y);
	void *data = e->data;
	struct walk w = walk_new(&y->shape);
	int ic = walk_add_broadcast(&w, &c->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);

	for (int64_t i = 0; i < n; i++, walk_next(&w))
		if (val_int(c, w.at[ic]))
			copy_elem(data, i, a->data, w.at[ia], size);
		else
			copy_elem(data, i, b->data, w.at[ib], size);
	return EVAL_DONE;
}
