/* Calls of the classifier and of the optimizers' kernels. */
#include "codegen/emit.h"
#include "ir/tile.h"

static const char *
slot(struct emit *e, const Val *v, int i)
{
	return v ? arena_printf(e->arena, "p[%d]", i) : "NULL";
}

static bool
need_f32(struct emit *e, const Node *n, const Val *v)
{
	e->need |= NEED_UPDATE;
	emit_shapes(e, n);
	return v->dt == DT_F32 || emit_unsupported(e, n, v->dt);
}

bool
emit_classifier(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *w = emit_in(e, n, 1);
	const Val *labels = emit_in(e, n, 2), *bias = emit_in(e, n, 3);
	bool tb = n->attr.CLASSIFIER.tb;
	int64_t classes = w->shape.dim[tb ? 0 : 1], rows = x->shape.dim[0];
	int64_t ignore = n->attr.CLASSIFIER.ignore;

	if (!need_f32(e, n, x))
		return false;
	e->need |= NEED_CLASSIFIER;
	if (labels->dt != DT_I64 && labels->dt != DT_I32)
		return emit_unsupported(e, n, labels->dt);
	out_line(e->out, "const struct ckr_classifier c1 = {");
	out_line(e->out, ".rows = %lld, .classes = %lld, .dim = %lld,",
	         (long long)rows, (long long)classes,
	         (long long)x->shape.dim[1]);
	out_line(e->out, ".chunk = %lld, .tb = %d, .reduction = %d, "
	         ".seed = %s,", (long long)tile_classifier_rows(rows, classes,
	         n->attr.CLASSIFIER.chunk), tb,
	         (int)n->attr.CLASSIFIER.reduction,
	         emit_float(e->arena, n->attr.CLASSIFIER.seed));
	out_line(e->out, "};");
	out_line(e->out, "const struct ckr_labels labels = "
	         "{ p[2], %d, %s, %lld, NULL };", dtype_info[labels->dt].nbytes,
	         ignore == INT64_MIN ? "INT64_MIN"
	         : arena_printf(e->arena, "%lld", (long long)ignore),
	         (long long)classes);
	out_line(e->out, "ckr_classify(&c1, %s, %s, %s, %s,",
	         slot(e, emit_out(e, n, 0), n->nin),
	         slot(e, emit_out(e, n, 1), n->nin + 1),
	         slot(e, emit_out(e, n, 2), n->nin + 2),
	         slot(e, emit_out(e, n, 3), n->nin + 3));
	out_line(e->out, "             p[0], p[1], &labels, %s, p[%d], env);",
	         slot(e, bias, 3), emit_scratch(n));
	return true;
}

bool
emit_grad_norm(struct emit *e, const Node *n)
{
	emit_shapes(e, n);
	e->need |= NEED_UPDATE;
	out_line(e->out, "float *y = p[%d];", n->nin);
	out_line(e->out, "double s = 0;");
	out_line(e->out, "*y = 0.0f;");
	out_line(e->out, "if (!(env->clip > 0))");
	out_line(e->out, "\treturn;");
	for (int i = 0; i < n->nin; i++) {
		const Val *g = emit_in(e, n, i);

		if (!g)
			continue;
		if (g->dt != DT_F32)
			return emit_unsupported(e, n, g->dt);
		out_line(e->out, "s += ckr_norm_part(p[%d], %lld, env);", i,
		         (long long)shape_nelem(&g->shape));
	}
	out_line(e->out, "*y = (float)sqrt(s);");
	return true;
}

bool
emit_accumulate(struct emit *e, const Node *n)
{
	const Val *g = emit_in(e, n, 1);

	if (!need_f32(e, n, g))
		return false;
	out_line(e->out, "ckr_accumulate(p[2], p[0], p[1], %lld, env);",
	         (long long)shape_nelem(&g->shape));
	return true;
}

bool
emit_sgd(struct emit *e, const Node *n)
{
	const Val *g = emit_in(e, n, 1);

	if (!need_f32(e, n, g))
		return false;
	out_line(e->out, "ckr_sgd(p[%d], p[0], p[1], %s, %lld, %d, env);",
	         n->nin, slot(e, emit_in(e, n, 2), 2),
	         (long long)shape_nelem(&g->shape), n->attr.SGD.decay != 0);
	return true;
}

bool
emit_adamw(struct emit *e, const Node *n)
{
	const Val *g = emit_in(e, n, 1);

	if (!need_f32(e, n, g))
		return false;
	out_line(e->out, "ckr_adamw(p[%d], p[%d], p[%d], p[0], p[1], p[2], "
	         "p[3],", n->nin, n->nin + 1, n->nin + 2);
	out_line(e->out, "          %s, %lld, %d, env);",
	         slot(e, emit_in(e, n, 4), 4),
	         (long long)shape_nelem(&g->shape), n->attr.ADAMW.decay != 0);
	return true;
}
