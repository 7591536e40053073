/* Folding rules of element-wise ops: strip by strip, as numbers of 64 bits, in
 * loops that compilers vectorise. */
#include "passes/eval/eval_rules.h"

#include <math.h>

enum { STRIP = 512 };

union strip {
	double f[STRIP];
	int64_t i[STRIP];
};

/* n elements of v from number `at` on, or one of them n times. */
static void
load_strip(const Val *v, bool floats, int64_t at, int64_t step, int n,
           union strip *to)
{
	int some = step ? n : 1;

	if (floats)
		element_get_floats(v->dt, v->data, at, some, to->f);
	else
		element_get_ints(v->dt, v->data, at, some, to->i);
	for (int i = some; i < n; i++)
		to->i[i] = to->i[0];
}

static void
store_strip(const Val *y, void *data, bool floats, int64_t at, int n,
            const union strip *from)
{
	if (floats)
		element_set_floats(y->dt, data, at, n, from->f);
	else
		element_set_ints(y->dt, data, at, n, from->i);
}

/* The rows of a result, with the operands that broadcast to it. */
static struct element_rows
rows_under(const struct eval *e)
{
	struct element_walk w = walk_new(&eval_out(e, 0)->shape);

	for (int k = 0; k < e->n->nin; k++)
		walk_add_broadcast(&w, &eval_in(e, k)->shape);
	return rows_of_walk(&w);
}

/* Runs `body` for `some` elements of the result from number `at` on, which
 * begin at number `in` of row r. */
#define FOR_STRIPS(r, body) \
	for (int64_t row = 0, at = 0; row < (r).count; \
	     row++, walk_next(&(r).walk)) \
		for (int64_t in = 0; in < (r).len; in += STRIP) { \
			int some = (int)((r).len - in < STRIP \
			                 ? (r).len - in : STRIP); \
			body \
			at += some; \
		}
/* Where operand k of such a strip begins. */
#define STRIP_AT(r, k) ((r).walk.at[k] + in * (r).step[k])

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

typedef void FloatsOf(const Node *, int n, const double *, double *);
typedef void IntsOf(int n, const int64_t *, int64_t *);

/* ints: NULL if integers are computed in double, too. */
static enum eval_status
apply_unary(struct eval *e, FloatsOf *of_floats, IntsOf *of_ints)
{
	const Val *x = eval_in(e, 0), *y = eval_out(e, 0);
	bool floats = dt_is_float(x->dt) || !of_ints;
	struct element_rows r = rows_under(e);
	union strip a, b;

	FOR_STRIPS(r, {
		load_strip(x, floats, at, 1, some, &a);
		if (floats)
			of_floats(e->n, some, a.f, b.f);
		else
			of_ints(some, a.i, b.i);
		store_strip(y, e->data, floats, at, some, &b);
	})
	return EVAL_DONE;
}

#define RULE(name, call) \
	enum eval_status \
	eval_##name(struct eval *e) \
	{ \
		return call; \
	}
#define OF_FLOATS(name, value) \
	static void \
	float_##name(const Node *n, int count, const double *in, double *out) \
	{ \
		(void)n; \
		for (int i = 0; i < count; i++) { \
			double x = in[i]; \
			out[i] = value; \
		} \
	}
#define OF_INTS(name, value) \
	static void \
	int_##name(int count, const int64_t *in, int64_t *out) \
	{ \
		for (int i = 0; i < count; i++) { \
			int64_t x = in[i]; \
			(void)x; \
			out[i] = value; \
		} \
	}
#define UNARY(name, floats, ints) \
	OF_FLOATS(name, floats) OF_INTS(name, ints) \
	RULE(name, apply_unary(e, float_##name, int_##name))
#define FLOATS(name, floats) \
	OF_FLOATS(name, floats) RULE(name, apply_unary(e, float_##name, NULL))
#define INTS(name, ints) \
	OF_INTS(name, ints) RULE(name, apply_unary(e, NULL, int_##name))

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

/* A 64-bit unsigned number reaches a float through a double; one that becomes
 * an integer must not lose digits on the way. */
enum eval_status
eval_cast(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	bool floats = dt_is_float(x->dt)
		|| (x->dt == DT_U64 && dt_is_float(y->dt));
	struct element_rows r = rows_under(e);
	union strip a;
	void *data;

	if (x->dt == y->dt) {
		y->data = x->data;
		return EVAL_DONE;
	}
	data = eval_room(e, 0);
	if (!data)
		return EVAL_LARGE;
	FOR_STRIPS(r, {
		load_strip(x, floats, at, 1, some, &a);
		store_strip(y, data, floats, at, some, &a);
	})
	y->data = data;
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
shift_int(DType dt, int64_t a, uint64_t by, bool left)
{
	uint64_t width = 8 * (uint64_t)dtype_info[dt].nbytes;

	if (!left && dtype_info[dt].cls == 'i')
		return a >> (by < width ? by : width - 1);
	return by >= width ? 0
	     : (int64_t)(left ? (uint64_t)a << by : (uint64_t)a >> by);
}

typedef void FloatsOf2(const Node *, int n, const double *, const double *,
                       double *);
typedef void IntsOf2(const Node *, DType, int n, const int64_t *,
                     const int64_t *, int64_t *);

static bool
any_zero(const int64_t *x, int n)
{
	for (int i = 0; i < n; i++)
		if (x[i] == 0)
			return true;
	return false;
}

/* Integers in the type dt. */
static enum eval_status
apply_binary(struct eval *e, FloatsOf2 *of_floats, IntsOf2 *of_ints, DType dt,
             bool divides)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1), *y = eval_out(e, 0);
	bool floats = dt_is_float(a->dt) || dt_is_float(b->dt);
	struct element_rows r = rows_under(e);
	union strip sa, sb, sy;

	FOR_STRIPS(r, {
		load_strip(a, floats, STRIP_AT(r, 0), r.step[0], some, &sa);
		load_strip(b, floats, STRIP_AT(r, 1), r.step[1], some, &sb);
		if (divides && !floats && any_zero(sb.i, some))
			return eval_fail(e, "division by zero while folding a "
			                 "constant");
		if (floats)
			of_floats(e->n, some, sa.f, sb.f, sy.f);
		else
			of_ints(e->n, dt, some, sa.i, sb.i, sy.i);
		store_strip(y, e->data, floats, at, some, &sy);
	})
	return EVAL_DONE;
}

/* In `ints`, b is not 0 where it divides; A and B are unsigned. */
#define A ((uint64_t)a)
#define B ((uint64_t)b)
#define OF_INTS_2(name, value) \
	static void \
	int_##name(const Node *n, DType dt, int count, const int64_t *in, \
	           const int64_t *by, int64_t *out) \
	{ \
		(void)n; \
		(void)dt; \
		for (int i = 0; i < count; i++) { \
			int64_t a = in[i], b = by[i]; \
			out[i] = (int64_t)(value); \
		} \
	}
#define OF_FLOATS_2(name, value) \
	static void \
	float_##name(const Node *n, int count, const double *in, \
	             const double *by, double *out) \
	{ \
		(void)n; \
		for (int i = 0; i < count; i++) { \
			double a = in[i], b = by[i]; \
			out[i] = value; \
		} \
	}
#define BINARY(name, floats, ints, divides) \
	OF_FLOATS_2(name, floats) OF_INTS_2(name, ints) \
	RULE(name, apply_binary(e, float_##name, int_##name, \
	                        eval_out(e, 0)->dt, \
	                        divides))
#define BITS(name, ints) \
	OF_INTS_2(name, ints) \
	RULE(name, apply_binary(e, NULL, int_##name, eval_out(e, 0)->dt, false))
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
BITS(shl, shift_int(dt, a, B, true))
BITS(shr, shift_int(dt, a, B, false))

/* Of operands' type; a truth is 0 or 1 in any. */
#define COMPARE(name, floats, ints) \
	OF_FLOATS_2(name, floats) OF_INTS_2(name, ints) \
	RULE(name, apply_binary(e, float_##name, int_##name, \
	                        eval_in(e, 0)->dt, \
	                        false))
#define ORDERED(name, op) \
	COMPARE(name, a op b, dt == DT_U64 ? A op B : a op b)

COMPARE(eq, a == b, a == b)
ORDERED(lt, <)
ORDERED(le, <=)
ORDERED(gt, >)
ORDERED(ge, >=)
COMPARE(and, a != 0 && b != 0, a && b)
COMPARE(or, a != 0 || b != 0, a || b)
COMPARE(xor, (a != 0) != (b != 0), !a != !b)

/* ---- more ---- */

#define CHOOSE(type) \
	for (int i = 0; i < n; i++) \
		copy_elem(y, i, c[i] ? a : b, i * (c[i] ? sa : sb), \
		          (int)sizeof(type)); \
	return

static void
select_elements(void *y, int n, const int64_t *c, const char *a, int64_t sa,
                const char *b, int64_t sb, int size)
{
	switch (size) {
	case 1: CHOOSE(uint8_t);
	case 2: CHOOSE(uint16_t);
	case 4: CHOOSE(uint32_t);
	case 8: CHOOSE(uint64_t);
	}
}

enum eval_status
eval_where(struct eval *e)
{
	const Val *c = eval_in(e, 0);
	const char *a = eval_in(e, 1)->data, *b = eval_in(e, 2)->data;
	int size = dtype_info[eval_out(e, 0)->dt].nbytes;
	struct element_rows r = rows_under(e);
	char *data = e->data;
	union strip sc;

	FOR_STRIPS(r, {
		load_strip(c, false, STRIP_AT(r, 0), r.step[0], some, &sc);
		select_elements(data + at * size, some, sc.i,
		                a + STRIP_AT(r, 1) * size, r.step[1],
		                b + STRIP_AT(r, 2) * size, r.step[2], size);
	})
	return EVAL_DONE;
}
