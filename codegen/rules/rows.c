/* Calls of the row kernels: softmax, normalisation; and of determinants. */
#include "codegen/rules/target_emitter.h"

/* ---- softmax ---- */

/* Of x, with its operands as arguments: "NAME(OPERANDS, ...".  All of these
 * have the same attribute. */
static bool
softmax_call(struct emit *e, const Node *n, const Val *x, bool log,
             const char *call)
{
	const Shape *s = &x->shape;
	int at = emit_axis(n->attr.SOFTMAX.axis, s->rank);

	if (!emit_row_operand(e, n, "rows", x))
		return false;
	if (shape_nelem(s) == 0)
		return true;
	out_line(e->out, "%s, %lld, %lld, %lld, %d, env);", call,
	         (long long)shape_span(s, 0, at), (long long)s->dim[at],
	         (long long)shape_span(s, at + 1, s->rank), log);
	return true;
}

bool
emit_softmax(struct emit *e, const Node *n)
{
	return softmax_call(e, n, emit_in(e, n, 0), n->op == OP_LOG_SOFTMAX,
	                    emit_text(e, n, "ckr_softmax($o0, $i0"));
}

bool
emit_softmax_grad(struct emit *e, const Node *n)
{
	return softmax_call(e, n, emit_in(e, n, 1),
	                    n->op == OP_LOG_SOFTMAX_GRAD,
	                    emit_text(e, n, "ckr_softmax_grad($o0, $i0, $i1"));
}

/* ---- normalisation ---- */

/* "norm", of x and its scale. */
static bool
emit_norm_struct(struct emit *e, const Node *n, const Val *x, const Val *scale,
                 int64_t axis, double eps, bool grad)
{
	int at = emit_axis(axis, x->shape.rank);
	const DType dt[] = { x->dt, scale->dt };

	emit_include(e, "norm");
	emit_shapes(e, n);
	for (int i = 0; i < 2; i++)
		if (dt[i] != DT_F32 && !dtype_is_half(dt[i]))
			return emit_unsupported(e, n, dt[i]);
	out_line(e->out, "const struct ckr_norm norm = { %lld, %lld, %s,",
	         (long long)shape_span(&x->shape, 0, at),
	         (long long)shape_span(&x->shape, at, x->shape.rank),
	         emit_double(e->arena, eps));
	out_line(e->out, "\t%s, %s,", tables_dtype(x->dt),
	         tables_dtype(scale->dt));
	if (e->emitter->norm)
		e->emitter->norm(e, n, grad);
	out_line(e->out, "};");
	return true;
}

bool
emit_layernorm(struct emit *e, const Node *n)
{
	if (!emit_norm_struct(e, n, emit_in(e, n, 0), emit_in(e, n, 1),
	                      n->attr.LAYERNORM.axis, n->attr.LAYERNORM.eps,
	                      false))
		return false;
	emit_line(e, n, "ckr_layernorm($o0, $o1, $o2,");
	emit_line(e, n, "              $i0, $i1, $i2, &norm, env);");
	return true;
}

bool
emit_rmsnorm(struct emit *e, const Node *n)
{
	if (!emit_norm_struct(e, n, emit_in(e, n, 0), emit_in(e, n, 1),
	                      n->attr.RMSNORM.axis, n->attr.RMSNORM.eps, false))
		return false;
	emit_line(e, n, "ckr_rmsnorm($o0, $o1, $i0, $i1, &norm, env);");
	return true;
}

static bool
emit_norm_grad(struct emit *e, const Node *n, int64_t axis,
               const char *dbias, const char *mean, const char *rstd)
{
	const Val *x = emit_in(e, n, 1);
	int64_t rows = shape_span(&x->shape, 0,
	                          emit_axis(axis, x->shape.rank));

	if (!emit_norm_struct(e, n, x, emit_in(e, n, 2), axis, 0, true))
		return false;
	emit_line(e, n, "ckr_norm_grad($o0, $o1, %s,", dbias);
	emit_line(e, n, "              $i0, $i1, $i2, %s, %s, %s,", mean, rstd,
	          p_in(e, n, op_accumulator(n->op)));
	out_line(e->out, "              &norm,");
	if (e->emitter->norm_grad)
		e->emitter->norm_grad(e, n, rows);
	emit_line(e, n, "              $w, env);");
	return true;
}

bool
emit_layernorm_grad(struct emit *e, const Node *n)
{
	return emit_norm_grad(e, n, n->attr.LAYERNORM_GRAD.axis,
	                      p_out(e, n, 2), "p[3]", "p[4]");
}

bool
emit_rmsnorm_grad(struct emit *e, const Node *n)
{
	return emit_norm_grad(e, n, n->attr.RMSNORM_GRAD.axis, "NULL", "NULL",
	                      "p[3]");
}

/* ---- determinants ---- */

static bool
det_call(struct emit *e, const Node *n, const char *call)
{
	const Val *x = emit_in(e, n, n->nin - 1);
	int rank = x->shape.rank;

	if (!emit_row_operand(e, n, "det", x))
		return false;
	emit_line(e, n, "%s, $w, %lld, %lld, env);", call,
	          (long long)shape_span(&x->shape, 0, rank - 2),
	          (long long)x->shape.dim[rank - 1]);
	return true;
}

bool
emit_det(struct emit *e, const Node *n)
{
	return det_call(e, n, emit_text(e, n, "ckr_det($o0, $i0"));
}

bool
emit_det_grad(struct emit *e, const Node *n)
{
	return det_call(e, n, emit_text(e, n, "ckr_det_grad($o0, $i0, $i1"));
}
