/* Element-wise ops as C expressions.
 *
 * Values of 16-bit types are computed as float and rounded after every op,
 * as if each result had been stored: fusing then does not change bits.
 * Integers wrap (-fwrapv) and divide without traps.
 */
#include "codegen/rules/emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool
is_float_class(DType dt)
{
	return dtype_info[dt].cls == 'f';
}

const char *
ew_type(DType dt)
{
	return dtype_is_half(dt) ? "float" : emit_ctype(dt);
}

const char *
ew_load(struct emit *e, DType dt, const char *expr)
{
	return dtype_is_half(dt) ? arena_printf(e->arena, "ckr_from_%s(%s)",
	                                  dtype_info[dt].text, expr) : expr;
}

const char *
ew_store(struct emit *e, DType dt, const char *expr)
{
	return dtype_is_half(dt) ? arena_printf(e->arena, "ckr_to_%s(%s)",
	                                  dtype_info[dt].text, expr) : expr;
}

/* Patterns: # is replaced by the first operand, @ by the second, ~ by the
 * third.  NULL: not for this class of types. */
struct ew_pattern {
	const char *f, *d, *i;          /* float, double, integer and bool */
};

static const struct ew_pattern form[OP_COUNT] = {
	[OP_NEG] = { "-#", "-#", "-#" },
	[OP_ABS] = { "__builtin_fabsf(#)", "fabs(#)", "# < 0 ? -# : #" },
	[OP_SIGN] = { "ckr_sign(#)", "# > 0 ? 1.0 : # < 0 ? -1.0 : #",
	              "(# > 0) - (# < 0)" },
	[OP_EXP] = { "ckr_exp(#)", "exp(#)", NULL },
	[OP_LOG] = { "ckr_log(#)", "log(#)", NULL },
	[OP_SQRT] = { "__builtin_sqrtf(#)", "sqrt(#)", NULL },
	[OP_RECIP] = { "1.0f / #", "1.0 / #", NULL },
	[OP_SIN] = { "ckr_sin(#)", "sin(#)", NULL },
	[OP_COS] = { "ckr_cos(#)", "cos(#)", NULL },
	[OP_ATAN] = { "ckr_atan(#)", "atan(#)", NULL },
	[OP_ASINH] = { "ckr_asinh(#)", "asinh(#)", NULL },
	[OP_TANH] = { "ckr_tanh(#)", "tanh(#)", NULL },
	[OP_SIGMOID] = { "ckr_sigmoid(#)", "1.0 / (1.0 + exp(-#))", NULL },
	[OP_ERF] = { "ckr_erf(#)", "erf(#)", NULL },
	[OP_RELU] = { "ckr_relu(#)", "# < 0 ? 0 : #", "# < 0 ? 0 : #" },
	[OP_SOFTPLUS] = { "ckr_softplus(#)",
	                  "fmax(#, 0.0) + log1p(exp(-fabs(#)))", NULL },
	[OP_FLOOR] = { "__builtin_floorf(#)", "floor(#)", "#" },
	[OP_CEIL] = { "__builtin_ceilf(#)", "ceil(#)", "#" },
	[OP_ROUND] = { "__builtin_rintf(#)", "rint(#)", "#" },
	[OP_SILU] = { "ckr_silu(#)", "# / (1.0 + exp(-#))", NULL },
	[OP_SILU_GRAD] = { "ckr_silu_grad(#, @)",
	                   "@ * (1.0 + # * (1.0 - 1.0 / (1.0 + exp(-#)))) / "
	                   "(1.0 + exp(-#))", NULL },
	[OP_SHIELD] = { "# == 0 ? 0 : @", "# == 0 ? 0 : @", NULL },
	[OP_NOT] = { "# == 0", "# == 0", "# == 0" },
	[OP_ISNAN] = { "# != #", "# != #", "0 * #" },
	[OP_ADD] = { "# + @", "# + @", "# + @" },
	[OP_SUB] = { "# - @", "# - @", "# - @" },
	[OP_MUL] = { "# * @", "# * @", "# * @" },
	[OP_DIV] = { "# / @", "# / @", "ckr_idiv(#, @)" },
	[OP_POW] = { "ckr_pow(#, @)", "pow(#, @)", "ckr_ipow(#, @)" },
	[OP_MAX] = { "ckr_max(#, @)", "# > @ || # != # ? # : @",
	             "# > @ ? # : @" },
	[OP_MIN] = { "ckr_min(#, @)", "# < @ || # != # ? # : @",
	             "# < @ ? # : @" },
	[OP_EQ] = { "# == @", "# == @", "# == @" },
	[OP_LT] = { "# < @", "# < @", "# < @" },
	[OP_LE] = { "# <= @", "# <= @", "# <= @" },
	[OP_GT] = { "# > @", "# > @", "# > @" },
	[OP_GE] = { "# >= @", "# >= @", "# >= @" },
	[OP_AND] = { NULL, NULL, "# & @" },
	[OP_OR] = { NULL, NULL, "# | @" },
	[OP_XOR] = { NULL, NULL, "# ^ @" },
	[OP_BIT_NOT] = { NULL, NULL, "-1 - #" },
	[OP_BIT_AND] = { NULL, NULL, "# & @" },
	[OP_BIT_OR] = { NULL, NULL, "# | @" },
	[OP_BIT_XOR] = { NULL, NULL, "# ^ @" },
	[OP_SHL] = { NULL, NULL, "(uint64_t)@ < 8 * sizeof(#) ? # << @ : 0" },
	[OP_SHR] = { NULL, NULL, "(uint64_t)@ < 8 * sizeof(#) ? # >> @ : 0" },
	[OP_WHERE] = { "# ? @ : ~", "# ? @ : ~", "# ? @ : ~" },
	[OP_IDENTITY] = { "#", "#", "#" },
	[OP_COPY] = { "#", "#", "#" },
};

bool
emit_dequantize(struct emit *e, const Node *n)
{
	const Val *q = emit_in(e, n, 0), *y = emit_out(e, n, 0);

	emit_include(e, "dequantize");
	emit_shapes(e, n);
	emit_line(e, n, "ckr_dequantize($o0, %s, $i0, %s, %lld, env);",
	          tables_dtype(y->dt), tables_dtype(q->dt),
	          (long long)val_nelem(q));
	return true;
}

static const char *
fill_in(struct emit *e, const char *pattern, const char *const *arg)
{
	struct out o = { .arena = e->arena };

	for (; *pattern; pattern++) {
		const char *at = strchr("#@~", *pattern);

		if (at)
			out_put(&o, "%s", arg[at - "#@~"]);
		else
			out_bytes(&o, pattern, 1);
	}
	return o.s;
}

/* Powers that exporters write for what is really a product or a root. */
static const char *
power_pattern(double x, bool f64)
{
	if (x == 2)
		return "# * #";
	if (x == 3)
		return "# * # * #";
	if (x == 1)
		return "#";
	if (x == -1)
		return "1 / #";
	if (x == 0.5)
		return f64 ? "sqrt(#)" : "__builtin_sqrtf(#)";
	if (x == -0.5)
		return f64 ? "1 / sqrt(#)" : "1 / __builtin_sqrtf(#)";
	return NULL;
}

static const char *
cast_expression(struct emit *e, DType from, DType to, const char *arg)
{
	if (dtype_info[to].cls == 'b')
		return arena_printf(e->arena, "%s != 0", arg);
	if (is_float_class(to))
		return arg;
	/* a float out of an unsigned type's range goes through int64 */
	if (is_float_class(from) && to != DT_U64)
		return arena_printf(e->arena, "(int64_t)%s", arg);
	return arg;
}

static const char *
special_form(const struct scalar_op *m, const DType *from,
             const double *exponent)
{
	bool f64 = from[0] == DT_F64, fp = is_float_class(from[0]);

	if (dtype_info[from[0]].cls == 'u' || dtype_info[from[0]].cls == 'b') {
		/* "< 0" would draw a warning */
		if (m->op == OP_ABS || m->op == OP_RELU)
			return "#";
		if (m->op == OP_SIGN)
			return "# != 0";
	}
	if (dtype_info[from[0]].cls == 'i') {
		if (m->op == OP_SHL)
			return "(uint64_t)@ < 8 * sizeof(#) ? "
			       "(int64_t)((uint64_t)# << @) : 0";
		if (m->op == OP_SHR)    /* copies of the sign come in */
			return "# >> ((uint64_t)@ < 8 * sizeof(#) ? "
			       "(uint64_t)@ : 8 * sizeof(#) - 1)";
	}
	switch (m->op) {
	case OP_POW:
		return exponent && fp ? power_pattern(*exponent, f64) : NULL;
	case OP_GELU:
		if (f64)
			return m->attr.GELU.tanh
			     ? "0.5 * # * (1.0 + tanh(0.79788456080286536 * "
			       "(# + 0.044715 * # * # * #)))"
			     : "0.5 * # * (1.0 + erf(# * 0.70710678118654752))";
		return m->attr.GELU.tanh ? "ckr_gelu_tanh(#)" : "ckr_gelu(#)";
	case OP_GELU_GRAD:
		return m->attr.GELU_GRAD.tanh ? "ckr_gelu_tanh_grad(#, @)"
		                              : "ckr_gelu_grad(#, @)";
	case OP_MOD:
		if (!fp)
			return m->attr.MOD.fmod ? "ckr_irem(#, @)"
			                        : "ckr_imod(#, @)";
		if (m->attr.MOD.fmod)
			return f64 ? "fmod(#, @)" : "fmodf(#, @)";
		return f64 ? "ckr_mod_d(#, @)" : "ckr_mod(#, @)";
	default:
		return NULL;
	}
}

const char *
ew_expression(struct emit *e, const struct scalar_op *m, const char *const *arg,
              const DType *from, const double *exponent)
{
	const struct ew_pattern *f = &form[m->op];
	DType kind = m->op == OP_WHERE ? from[1] : from[0];
	const char *pattern = special_form(m, from, exponent), *text;

	if (m->op == OP_CAST) {
		text = cast_expression(e, from[0], m->dt, arg[0]);
	} else {
		if (!pattern)
			pattern = kind == DT_F64 ? f->d
			        : is_float_class(kind) ? f->f : f->i;
		if (!pattern) {
			emit_unsupported_op(e, &e->g->node[e->gnode], m->op,
			                    kind);
			return NULL;
		}
		text = fill_in(e, pattern, arg);
	}
	if (dtype_is_half(m->dt))
		return arena_printf(e->arena, "ckr_from_%s(ckr_to_%s(%s))",
		                    dtype_info[m->dt].text,
		                    dtype_info[m->dt].text, text);
	if (m->dt != DT_F32 && m->dt != DT_F64)
		return arena_printf(e->arena, "(%s)(%s)", emit_ctype(m->dt),
		                    text);
	if (m->op == OP_CAST)
		return arena_printf(e->arena, "(%s)%s", emit_ctype(m->dt),
		                    text);
	return text;
}
