/* Element-wise ONNX operators.  Conveniences become compositions, written so
 * that their gradients are PyTorch's: clip passes the gradient at its edges,
 * hence `where` and not `max`.
 */
#include "frontend/import/node_import.h"

#include <math.h>

/* One IR op with the same inputs. */
bool
run_same(struct importer *m)
{
	return imp_same(m, m->n->op->ir, NULL);
}

/* The same with attributes, those of the row. */
bool
run_read(struct importer *m)
{
	Attr a = imp_attrs(m, m->n->op->ir);

	return imp_same(m, m->n->op->ir, &a);
}

/* PyTorch's exporters write Add of bool, which ONNX does not allow, for x + y,
 * the logical or. */
bool
run_add(struct importer *m)
{
	ValId x = imp_in(m, 0), y = imp_in(m, 1);

	if (m->g->val[x].dt != DT_BOOL || m->g->val[y].dt != DT_BOOL)
		return run_same(m);
	return set_output(m, binary(m, OP_OR, x, y));
}

bool
run_identity(struct importer *m)
{
	const struct flat_val *x = &m->f->val[m->n->in[0]];

	m->f->val[m->n->out[0]].seq = x->seq;
	if (x->val)
		imp_out(m, 0, x->val);
	return true;
}

/* Max, Min, Sum of any number of values. */
bool
run_fold_left(struct importer *m)
{
	ValId x = imp_in(m, 0);

	for (int i = 1; i < m->n->nin; i++)
		x = binary(m, m->n->op->ir, x, imp_in(m, i));
	return set_output(m, x);
}

bool
run_mean(struct importer *m)
{
	ValId x = imp_in(m, 0);

	for (int i = 1; i < m->n->nin; i++)
		x = binary(m, OP_ADD, x, imp_in(m, i));
	return set_output(m, EMIT_NODE(m, OP_MUL, NULL, x,
	                               imp_like(m, x, 1.0 / m->n->nin)));
}

/* An integer to a power that is no integer is computed in f64 and truncated. */
bool
run_pow(struct importer *m)
{
	ValId x = imp_in(m, 0), e = imp_in(m, 1);
	DType from = m->g->val[x].dt, to = m->g->val[e].dt;

	if (from == DT_NONE || dtype_info[from].cls == 'f'
	    || dtype_info[to].cls != 'f')
		return run_same(m);
	x = binary(m, OP_POW, imp_cast(m, x, DT_F64), imp_cast(m, e, DT_F64));
	return set_output(m, imp_cast(m, x, from));
}

/* Elements are computed in f64 and rounded once, whatever stash_type is. */
bool
run_range(struct importer *m)
{
	attr_int(&m->r, "stash_type", 1);
	return run_same(m);
}

/* Attributes of 8-bit floats, a type that ckc does not support. */
static void
read_narrow(struct importer *m)
{
	static const char *const modes[] = { "up", "down", "nearest" };

	attr_int(&m->r, "saturate", 1);
	attr_word(&m->r, "round_mode", 0, modes, 3);
}

bool
run_cast_like(struct importer *m)
{
	read_narrow(m);
	return run_same(m);
}

bool
run_cast(struct importer *m)
{
	int64_t to = attr_int(&m->r, "to", 0);
	DType dt = to < 0 || to > INT32_MAX ? DT_NONE : onnx_dtype((int)to);

	read_narrow(m);
	if (dt == DT_NONE)
		return imp_fail(m, "a cast to %s is not supported",
		                onnx_dtype_name(to > 99 ? 99 : (int)to));
	return set_output(m, imp_cast(m, imp_in(m, 0), dt));
}

/* x <= edge ? edge : x, so that no gradient passes at the edge; NaN stays. */
static ValId
not_below(struct importer *m, ValId x, ValId edge)
{
	ValId c = binary(m, OP_LE, x, edge);

	return EMIT_NODE(m, OP_WHERE, NULL, c, edge, x);
}

static ValId
not_above(struct importer *m, ValId x, ValId edge)
{
	ValId c = binary(m, OP_GE, x, edge);

	return EMIT_NODE(m, OP_WHERE, NULL, c, edge, x);
}

bool
run_clip(struct importer *m)
{
	ValId x = imp_in(m, 0), lo = imp_in(m, 1), hi = imp_in(m, 2);

	if (m->n->opset < 11) {
		if (attr_has(&m->r, "min"))
			lo = imp_like(m, x, attr_float(&m->r, "min", 0));
		if (attr_has(&m->r, "max"))
			hi = imp_like(m, x, attr_float(&m->r, "max", 0));
	}
	if (lo)
		x = not_below(m, x, lo);
	if (hi)
		x = not_above(m, x, hi);
	return set_output(m, x);
}

bool
run_gelu(struct importer *m)
{
	static const char *const words[] = { "none", "tanh" };
	Attr a = attr_default(OP_GELU);

	a.GELU.tanh = attr_word(&m->r, "approximate", 0, words, 2);
	return set_output(m, EMIT_NODE(m, OP_GELU, &a, imp_in(m, 0)));
}

/* com.microsoft: Gelu(x), BiasGelu(x, bias), FastGelu(x, bias?). */
bool
run_ms_gelu(struct importer *m)
{
	Attr a = attr_default(OP_GELU);
	ValId x = imp_in(m, 0);

	a.GELU.tanh = m->n->type[0] == 'F';
	if (imp_has(m, 1))
		x = binary(m, OP_ADD, x, imp_in(m, 1));
	return set_output(m, EMIT_NODE(m, OP_GELU, &a, x));
}

/* x * sigmoid(alpha x) */
static bool
swish(struct importer *m, double alpha)
{
	ValId x = imp_in(m, 0), s = x;

	if (alpha == 1)
		return set_output(m, unary(m, OP_SILU, x));
	s = with(m, OP_MUL, x, alpha);
	s = unary(m, OP_SIGMOID, s);
	return set_output(m, binary(m, OP_MUL, x, s));
}

bool
run_quick_gelu(struct importer *m)
{
	return swish(m, attr_float(&m->r, "alpha", 1.702));
}

bool
run_swish(struct importer *m)
{
	return swish(m, attr_float(&m->r, "alpha", 1));
}

/* x <= 0 ? negative : x */
static bool
below_zero(struct importer *m, ValId x, ValId negative)
{
	ValId c = with(m, OP_LE, x, 0);

	return set_output(m, EMIT_NODE(m, OP_WHERE, NULL, c, negative, x));
}

bool
run_leaky_relu(struct importer *m)
{
	ValId x = imp_in(m, 0);
	ValId slope = imp_like(m, x, attr_float(&m->r, "alpha", 0.01));

	return below_zero(m, x, binary(m, OP_MUL, x, slope));
}

bool
run_prelu(struct importer *m)
{
	ValId x = imp_in(m, 0);

	return below_zero(m, x, binary(m, OP_MUL, x, imp_in(m, 1)));
}

/* scale * (exp(min(x, 0) / width) - 1): the exponential never overflows, so
 * its gradient is finite even where it is not selected, and exact at 0. */
static ValId
exp_part(struct importer *m, ValId x, double width, double scale)
{
	ValId zero = imp_like(m, x, 0);
	ValId c = binary(m, OP_LE, x, zero);
	ValId y = EMIT_NODE(m, OP_WHERE, NULL, c, x, zero);

	if (width != 1)
		y = binary(m, OP_DIV, y, imp_like(m, x, width));
	y = unary(m, OP_EXP, y);
	y = binary(m, OP_SUB, y, imp_like(m, x, 1));
	return binary(m, OP_MUL, y, imp_like(m, x, scale));
}

bool
run_elu(struct importer *m)
{
	ValId x = imp_in(m, 0);

	return below_zero(m, x, exp_part(m, x, 1,
	                                 attr_float(&m->r, "alpha", 1)));
}

bool
run_celu(struct importer *m)
{
	ValId x = imp_in(m, 0);
	double alpha = attr_float(&m->r, "alpha", 1);

	if (alpha == 0)
		return imp_fail(m, "alpha must not be 0");
	return below_zero(m, x, exp_part(m, x, alpha, alpha));
}

bool
run_selu(struct importer *m)
{
	ValId x = imp_in(m, 0), pos, c;
	double alpha = attr_float(&m->r, "alpha", 1.67326319217681884765625);
	double gamma = attr_float(&m->r, "gamma", 1.05070102214813232421875);

	pos = with(m, OP_MUL, x, gamma);
	c = with(m, OP_LE, x, 0);
	return set_output(m, EMIT_NODE(m, OP_WHERE, NULL, c,
	                               exp_part(m, x, 1, alpha * gamma), pos));
}

static ValId
hard_sigmoid(struct importer *m, ValId x, double alpha, double beta)
{
	ValId y = with(m, OP_MUL, x, alpha);

	y = binary(m, OP_ADD, y, imp_like(m, x, beta));
	y = not_below(m, y, imp_like(m, x, 0));
	return not_above(m, y, imp_like(m, x, 1));
}

bool
run_hard_sigmoid(struct importer *m)
{
	double alpha = attr_float(&m->r, "alpha", 0.2);
	double beta = attr_float(&m->r, "beta", 0.5);

	return set_output(m, hard_sigmoid(m, imp_in(m, 0), alpha, beta));
}

bool
run_hard_swish(struct importer *m)
{
	ValId x = imp_in(m, 0);

	return set_output(m, EMIT_NODE(m, OP_MUL, NULL, x,
	                               hard_sigmoid(m, x, 1.0 / 6, 0.5)));
}

bool
run_softsign(struct importer *m)
{
	ValId x = imp_in(m, 0), y = unary(m, OP_ABS, x);

	y = binary(m, OP_ADD, y, imp_like(m, x, 1));
	return set_output(m, binary(m, OP_DIV, x, y));
}

bool
run_mish(struct importer *m)
{
	ValId x = imp_in(m, 0), y = unary(m, OP_SOFTPLUS, x);

	y = unary(m, OP_TANH, y);
	return set_output(m, binary(m, OP_MUL, x, y));
}

bool
run_thresholded_relu(struct importer *m)
{
	ValId x = imp_in(m, 0), c;
	double alpha = attr_float(&m->r, "alpha", 1);

	c = with(m, OP_GT, x, alpha);
	return set_output(m, EMIT_NODE(m, OP_WHERE, NULL, c, x,
	                               imp_like(m, x, 0)));
}

bool
run_tan(struct importer *m)
{
	ValId x = imp_in(m, 0);
	ValId s = unary(m, OP_SIN, x);
	ValId c = unary(m, OP_COS, x);

	return set_output(m, binary(m, OP_DIV, s, c));
}

bool
run_isinf(struct importer *m)
{
	ValId x = imp_in(m, 0), inf;
	bool neg = attr_int(&m->r, "detect_negative", 1) != 0;
	bool pos = attr_int(&m->r, "detect_positive", 1) != 0;

	if (neg && pos)
		x = unary(m, OP_ABS, x);
	else if (neg)
		x = unary(m, OP_NEG, x);
	else if (!pos)
		return imp_fail(m, "detect_negative and detect_positive are "
		                "both 0");
	inf = imp_like(m, x, INFINITY);
	return set_output(m, binary(m, OP_EQ, x, inf));
}

/* An inactive dropout adds no node; its mask is all true. */
static bool
inactive(struct importer *m)
{
	imp_out(m, 0, imp_in(m, 0));
	if (imp_is_used(m, 1))
		imp_out(m, 1, imp_ones(m, unary(m, OP_SHAPE, imp_in(m, 0)),
		                       DT_BOOL));
	return true;
}

/* Dropout is active only by input training_mode, which opset 12 introduced. */
bool
run_dropout(struct importer *m)
{
	Attr a = attr_default(OP_DROPOUT);
	int64_t training = 0;
	double ratio;
	bool known;

	attr_has(&m->r, "seed");
	if (m->n->opset < 12) {
		attr_float(&m->r, "ratio", 0.5);
		return inactive(m);
	}
	if (!imp_has(m, 2) || (imp_const(m, 2, &training) && !training))
		return inactive(m);
	ratio = a.DROPOUT.ratio;
	known = !imp_has(m, 1) || imp_const_float(m, 1, &ratio);
	if (known && ratio == 0)
		return inactive(m);
	if (known && !(ratio > 0 && ratio < 1))
		return imp_fail(m, "ratio: expected a number in [0, 1), found "
		                "%g", ratio);
	if (imp_is_used(m, 1))
		return imp_fail(m, "the mask output of Dropout is not "
		                "supported");
	a.DROPOUT.ratio = ratio;
	if (known && training)
		imp_out(m, 0, EMIT_NODE(m, OP_DROPOUT, &a, imp_in(m, 0)));
	else
		imp_out(m, 0, EMIT_NODE(m, OP_DROPOUT, &a, imp_in(m, 0),
		                        imp_in(m, 1), imp_in(m, 2)));
	return true;
}
