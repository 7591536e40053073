/* Calls of the row kernels: softmax, normalisation, cross entropy; and of
 * determinants. */
#include "codegen/rules/target_emitter.h"

static bool
check_row_type(struct emit *e, const Node *n, unsigned text, const Val *v)
{
	e->need |= text;
	emit_shapes(e, n);
	return e->emitter->takes(v->dt) || emit_unsupported(e, n, v->dt);
}

/* ---- softmax ---- */

static void
emit_outer_inner(struct emit *e, const Shape *s, int axis, int log)
{
	out_put(e->out, "%lld, %lld, %lld, %d, env);\n",
	        (long long)emit_extent(s, 0, axis), (long long)s->dim[axis],
	        (long long)emit_extent(s, axis + 1, s->rank), log);
}

bool
emit_softmax(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);
	bool log = n->op == OP_LOG_SOFTMAX;
	int64_t axis = log ? n->attr.LOG_SOFTMAX.axis : n->attr.SOFTMAX.axis;

	if (!check_row_type(e, n, NEED_ROWS, x))
		return false;
	if (shape_nelem(&x->shape) == 0)
		return true;
	out_put(e->out, "\tckr_softmax(%s, %s, ", p_out(e, n, 0),
	        p_in(e, n, 0));
	emit_outer_inner(e, &x->shape, emit_axis(axis, x->shape.rank), log);
	return true;
}

bool
emit_softmax_grad(struct emit *e, const Node *n)
{
	const Val *y = emit_in(e, n, 1);
	bool log = n->op == OP_LOG_SOFTMAX_GRAD;
	int64_t axis = log ? n->attr.LOG_SOFTMAX_GRAD.axis
	                   : n->attr.SOFTMAX_GRAD.axis;

	if (!check_row_type(e, n, NEED_ROWS, y))
		return false;
	if (shape_nelem(&y->shape) == 0)
		return true;
	out_put(e->out, "\tckr_softmax_grad(%s, %s, %s, ", p_out(e, n, 0),
	        p_in(e, n, 0), p_in(e, n, 1));
	emit_outer_inner(e, &y->shape, emit_axis(axis, y->shape.rank), log);
	return true;
}

/* ---- normalisation ---- */

/* "norm", of x and its scale. */
static bool
emit_norm_struct(struct emit *e, const Node *n, const Val *x, const Val *scale,
                 int64_t axis, double eps, bool grad)
{
	int at = emit_axis(axis, x->shape.rank);

	e->need |= NEED_NORM;
	emit_shapes(e, n);
	if (x->dt != DT_F32 && !dtype_is_half(x->dt))
		return emit_unsupported(e, n, x->dt);
	if (scale->dt != DT_F32 && !dtype_is_half(scale->dt))
		return emit_unsupported(e, n, scale->dt);
	out_line(e->out, "const struct ckr_norm norm = { %lld, %lld, %s,",
	         (long long)emit_extent(&x->shape, 0, at),
	         (long long)emit_extent(&x->shape, at, x->shape.rank),
	         emit_double(e->arena, eps));
	out_line(e->out, "\t%s, %s,", tables_dtype(x->dt),
	         tables_dtype(scale->dt));
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
	out_line(e->out, "ckr_layernorm(%s, %s, %s,", p_out(e, n, 0),
	         p_out(e, n, 1), p_out(e, n, 2));
	out_line(e->out, "              %s, %s, %s, &norm, env);",
	         p_in(e, n, 0), p_in(e, n, 1), p_in(e, n, 2));
	return true;
}

bool
emit_rmsnorm(struct emit *e, const Node *n)
{
	if (!emit_norm_struct(e, n, emit_in(e, n, 0), emit_in(e, n, 1),
	                      n->attr.RMSNORM.axis, n->attr.RMSNORM.eps, false))
		return false;
	out_line(e->out, "ckr_rmsnorm(%s, %s, %s, %s, &norm, env);",
	         p_out(e, n, 0), p_out(e, n, 1), p_in(e, n, 0),
	         p_in(e, n, 1));
	return true;
}

static bool
emit_norm_grad(struct emit *e, const Node *n, int64_t axis,
               const char *dbias, const char *mean, const char *rstd)
{
	const Val *x = emit_in(e, n, 1);
	int64_t rows = emit_extent(&x->shape, 0,
	                           emit_axis(axis, x->shape.rank));

	if (!emit_norm_struct(e, n, x, emit_in(e, n, 2), axis, 0, true))
		return false;
	out_line(e->out, "ckr_norm_grad(%s, %s, %s,", p_out(e, n, 0),
	         p_out(e, n, 1), dbias);
	out_line(e->out, "              %s, %s, %s, %s, %s, %s,",
	         p_in(e, n, 0), p_in(e, n, 1), p_in(e, n, 2), mean, rstd,
	         p_in(e, n, op_accumulator(n->op)));
	out_line(e->out, "              &norm,");
	e->emitter->norm_grad(e, n, rows);
	out_line(e->out, "              %s, env);", p_workspace(e, n));
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

/* ---- cross entropy ---- */

static const char *
int_min_text(struct emit *e, int64_t v)
{
	return v == INT64_MIN ? "INT64_MIN"
	                      : arena_printf(e->arena, "%lld", (long long)v);
}

bool
emit_labels(struct emit *e, const Node *n, int labels, int weights,
            int64_t ignore, int64_t classes)
{
	const Val *v = emit_in(e, n, labels);

	if (v->dt != DT_I64 && v->dt != DT_I32)
		return emit_unsupported(e, n, v->dt);
	out_line(e->out, "const struct ckr_labels labels = "
	         "{ p[%d], %d, %s, %lld, %s };", labels,
	         dtype_info[v->dt].nbytes, int_min_text(e, ignore),
	         (long long)classes, p_in(e, n, weights));
	return true;
}

bool
emit_sce(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (n->attr.SCE.whole_extent)
		return emit_sce_part(e, n);
	if (!check_row_type(e, n, NEED_ROWS, x) ||
	    !emit_labels(e, n, 1, 2, n->attr.SCE.ignore, x->shape.dim[1]))
		return false;
	out_line(e->out, "ckr_sce(%s, %s, %s, %s, &labels,", p_out(e, n, 0),
	         p_out(e, n, 1), p_out(e, n, 2), p_in(e, n, 0));
	out_line(e->out, "        %s, %lld, 0%s, env);",
	         emit_planes(e, &x->shape), (long long)n->attr.SCE.reduction,
	         emit_workspace_arg(e, n));
	return true;
}

bool
emit_sce_grad(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 1);

	if (n->attr.SCE_GRAD.whole_extent)
		return emit_sce_grad_part(e, n);
	if (!check_row_type(e, n, NEED_ROWS, x) ||
	    !emit_labels(e, n, 2, 5, n->attr.SCE_GRAD.ignore, x->shape.dim[1]))
		return false;
	out_line(e->out, "ckr_sce_grad(%s, %s, %s, &labels,", p_out(e, n, 0),
	         p_in(e, n, 0), p_in(e, n, 1));
	out_line(e->out, "             %s, %s, %s, %lld, env);",
	         p_in(e, n, 3), p_in(e, n, 4), emit_planes(e, &x->shape),
	         (long long)n->attr.SCE_GRAD.reduction);
	return true;
}

bool
emit_nll(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (!check_row_type(e, n, NEED_ROWS, x) ||
	    !emit_labels(e, n, 1, 2, n->attr.NLL.ignore, x->shape.dim[1]))
		return false;
	out_line(e->out, "ckr_sce(%s, NULL, %s, %s, &labels,", p_out(e, n, 0),
	         p_out(e, n, 1), p_in(e, n, 0));
	out_line(e->out, "        %s, %lld, 1%s, env);",
	         emit_planes(e, &x->shape), (long long)n->attr.NLL.reduction,
	         emit_workspace_arg(e, n));
	return true;
}

bool
emit_nll_grad(struct emit *e, const Node *n)
{
	const Val *dx = emit_out(e, n, 0);

	if (!check_row_type(e, n, NEED_ROWS, dx) ||
	    !emit_labels(e, n, 1, 3, n->attr.NLL_GRAD.ignore,
	                 dx->shape.dim[1]))
		return false;
	out_line(e->out, "ckr_nll_grad(%s, %s, &labels, %s, %s, %lld, env);",
	         p_out(e, n, 0), p_in(e, n, 0), p_in(e, n, 2),
	         emit_planes(e, &dx->shape),
	         (long long)n->attr.NLL_GRAD.reduction);
	return true;
}

/* ---- determinants ---- */

static bool
det_call(struct emit *e, const Node *n, const char *call)
{
	const Val *x = emit_in(e, n, n->nin - 1);
	int rank = x->shape.rank;

	if (!check_row_type(e, n, NEED_DET, x))
		return false;
	out_line(e->out, "%s, %s, %lld, %lld, env);", call, p_workspace(e, n),
	         (long long)emit_extent(&x->shape, 0, rank - 2),
	         (long long)x->shape.dim[rank - 1]);
	return true;
}

bool
emit_det(struct emit *e, const Node *n)
{
	return det_call(e, n, arena_printf(e->arena, "ckr_det(%s, %s",
	                                   p_out(e, n, 0), p_in(e, n, 0)));
}

bool
emit_det_grad(struct emit *e, const Node *n)
{
	return det_call(e, n, arena_printf(e->arena,
		"ckr_det_grad(%s, %s, %s", p_out(e, n, 0), p_in(e, n, 0),
		p_in(e, n, 1)));
}
