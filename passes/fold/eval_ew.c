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
unary_float(const Node *n, double x)
{
	switch (n->op) {
	case OP_NEG:
		return -x;
	case OP_ABS:
		return fabs(x);
	case OP_SIGN:
		return isnan(x) ? x : (x > 0) - (x < 0);
	case OP_EXP:
		return exp(x);
	case OP_LOG:
		return log(x);
	case OP_SQRT:
		return sqrt(x);
	case OP_RECIP:
		return 1 / x;
	case OP_SIN:
		return sin(x);
	case OP_COS:
		return cos(x);
	case OP_ATAN:
		return atan(x);
	case OP_TANH:
		return tanh(x);
	case OP_SIGMOID:
		return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
	case OP_ERF:
		return erf(x);
	case OP_RELU:
		return isnan(x) ? x : x > 0 ? x : 0;
	case OP_SOFTPLUS:
		return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
	case OP_FLOOR:
		return floor(x);
	case OP_CEIL:
		return ceil(x);
	case OP_ROUND:
		return rint(x);
	case OP_GELU:
		return gelu(x, n->attr.GELU.tanh);
	case OP_SILU:
		return x >= 0 ? x / (1 + exp(-x)) : x * exp(x) / (1 + exp(x));
	case OP_ISNAN:
		return isnan(x);
	default:
		return NAN;
	}
}

static int64_t
unary_int(Op op, int64_t x)
{
	switch (op) {
	case OP_NEG:
		return (int64_t)-(uint64_t)x;
	case OP_ABS:
		return x < 0 ? (int64_t)-(uint64_t)x : x;
	case OP_SIGN:
		return (x > 0) - (x < 0);
	case OP_RELU:
		return x > 0 ? x : 0;
	case OP_NOT:
		return !x;
	case OP_BIT_NOT:
		return ~x;
	case OP_ISNAN:
		return 0;
	default:                        /* floor, ceil, round */
		return x;
	}
}

/* Which ops have an integer form; the others compute in double. */
static bool
unary_has_int(Op op)
{
	switch (op) {
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_RELU: case OP_NOT:
	case OP_BIT_NOT: case OP_ISNAN: case OP_FLOOR: case OP_CEIL:
	case OP_ROUND:
		return true;
	default:
		return false;
	}
}

enum eval_status
eval_unary(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int64_t n = val_nelem(y);
	void *data = eval_room(e, 0);
	bool ints = !dt_is_float(x->dt) && unary_has_int(e->n->op);

	if (!data)
		return EVAL_LARGE;
	for (int64_t i = 0; i < n; i++)
		if (ints)
			element_put_int(y->dt, data, i,
			                unary_int(e->n->op, val_int(x, i)));
		else
			element_put_float(y->dt, data, i,
			                  unary_float(e->n, val_float(x, i)));
	y->data = data;
	return EVAL_DONE;
}

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
binary_float(const Node *n, double a, double b)
{
	double r;

	switch (n->op) {
	case OP_ADD:
		return a + b;
	case OP_SUB:
		return a - b;
	case OP_MUL:
		return a * b;
	case OP_DIV:
		return a / b;
	case OP_POW:
		return pow(a, b);
	case OP_MOD:
		r = fmod(a, b);
		if (!n->attr.MOD.fmod && r != 0 && (r < 0) != (b < 0))
			r += b;
		return r;
	case OP_MAX:
		return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	default:
		return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	}
}

/* b is not 0 where it divides. */
static int64_t
binary_int(const Node *n, DType dt, int64_t a, int64_t b)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
	uint64_t width = 8 * (uint64_t)dtype_info[dt].nbytes;
	int64_t r;

	if (dt == DT_U64)
		switch (n->op) {
		case OP_DIV:
			return (int64_t)(ua / ub);
		case OP_MOD:
			return (int64_t)(ua % ub);
		case OP_MAX:
			return ua > ub ? a : b;
		case OP_MIN:
			return ua < ub ? a : b;
		default:
			break;
		}
	switch (n->op) {
	case OP_ADD:
		return (int64_t)(ua + ub);
	case OP_SUB:
		return (int64_t)(ua - ub);
	case OP_MUL:
		return (int64_t)(ua * ub);
	case OP_DIV:
		return b == -1 ? (int64_t)-ua : a / b;
	case OP_POW:
		return power_int(a, b);
	case OP_MOD:
		r = b == -1 ? 0 : a % b;
		return !n->attr.MOD.fmod && r && (r < 0) != (b < 0) ? r + b : r;
	case OP_MAX:
		return a > b ? a : b;
	case OP_BIT_AND:
		return a & b;
	case OP_BIT_OR:
		return a | b;
	case OP_BIT_XOR:
		return a ^ b;
	case OP_SHL:
		return ub < width ? (int64_t)(ua << ub) : 0;
	case OP_SHR:
		if (dtype_info[dt].cls == 'i')  /* of copies of the sign */
			return a >> (ub < width ? ub : width - 1);
		return ub < width ? (int64_t)(ua >> ub) : 0;
	default:
		return a < b ? a : b;
	}
}

enum eval_status
eval_binary(struct eval *e)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	Op op = e->n->op;
	int64_t n = val_nelem(y);
	void *data = eval_room(e, 0);
	struct walk w = walk_new(&y->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);
	bool floats = dt_is_float(a->dt) || dt_is_float(b->dt);

	if (!data)
		return EVAL_LARGE;
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		if (floats) {
			element_put_float(y->dt, data, i, binary_float(e->n,
			    val_float(a, w.at[ia]), val_float(b, w.at[ib])));
			continue;
		}
		int64_t d = val_int(b, w.at[ib]);
		if (d == 0 && (op == OP_DIV || op == OP_MOD))
			return eval_fail(e, "division by zero while folding a "
			                 "constant");
		element_put_int(y->dt, data, i,
		        binary_int(e->n, y->dt, val_int(a, w.at[ia]), d));
	}
	y->data = data;
	return EVAL_DONE;
}

#define RELATION(op, a, b) \
	((op) == OP_EQ ? (a) == (b) : (op) == OP_LT ? (a) < (b) \
	 : (op) == OP_LE ? (a) <= (b) : (op) == OP_GT ? (a) > (b) \
	 : (op) == OP_GE ? (a) >= (b) : (op) == OP_AND ? (a) && (b) \
	 : (op) == OP_OR ? (a) || (b) : !(a) != !(b))

enum eval_status
eval_compare(struct eval *e)
{
	const Val *a = eval_in(e, 0), *b = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	Op op = e->n->op;
	int64_t n = val_nelem(y);
	void *data = eval_room(e, 0);
	struct walk w = walk_new(&y->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);
	bool floats = dt_is_float(a->dt) || dt_is_float(b->dt);

	if (!data)
		return EVAL_LARGE;
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		bool r;
		if (floats) {
			double x = val_float(a, w.at[ia]);
			double z = val_float(b, w.at[ib]);
			r = RELATION(op, x, z);
		} else {
			int64_t x = val_int(a, w.at[ia]);
			int64_t z = val_int(b, w.at[ib]);
			r = a->dt == DT_U64
			    ? RELATION(op, (uint64_t)x, (uint64_t)z)
			    : RELATION(op, x, z);
		}
		element_put_int(y->dt, data, i, r);
	}
	y->data = data;
	return EVAL_DONE;
}

enum eval_status
eval_where(struct eval *e)
{
	const Val *c = eval_in(e, 0), *a = eval_in(e, 1), *b = eval_in(e, 2);
	Val *y = eval_out(e, 0);
	int size = dtype_info[y->dt].nbytes;
	int64_t n = val_nelem(y);
	void *data = eval_room(e, 0);
	struct walk w = walk_new(&y->shape);
	int ic = walk_add_broadcast(&w, &c->shape);
	int ia = walk_add_broadcast(&w, &a->shape);
	int ib = walk_add_broadcast(&w, &b->shape);

	if (!data)
		return EVAL_LARGE;
	for (int64_t i = 0; i < n; i++, walk_next(&w))
		if (val_int(c, w.at[ic]))
			copy_elem(data, i, a->data, w.at[ia], size);
		else
			copy_elem(data, i, b->data, w.at[ib], size);
	y->data = data;
	return EVAL_DONE;
}
