/* Calls of the kernels of images: batch normalisation, pools. */
#include "codegen/rules/target_emitter.h"
#include "ir/window.h"

void
emit_triple(struct emit *e, const char *name, const int64_t *v)
{
	out_line(e->out, ".%s = { %lld, %lld, %lld },", name,
	         (long long)v[0], (long long)v[1], (long long)v[2]);
}

void
emit_window(struct emit *e, const struct window *w)
{
	emit_triple(e, "in", w->in);
	emit_triple(e, "out", w->out);
	emit_triple(e, "kernel", w->kernel);
	emit_triple(e, "stride", w->stride);
	emit_triple(e, "dilation", w->dilation);
	emit_triple(e, "begin", w->begin);
}

/* ---- batch normalisation ---- */

/* "batch", of x; what is per channel is float32. */
static bool
emit_batch(struct emit *e, const Node *n, const Val *x, double eps)
{
	emit_include(e, "batchnorm");
	emit_shapes(e, n);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = emit_val(e, n, i);

		if (v && v->dt != DT_F32
		    && (!dtype_is_half(v->dt) || v->dt != x->dt
		        || v->shape.rank == 1))
			return emit_unsupported(e, n, v->dt);
	}
	out_line(e->out, "const struct ckr_batchnorm batch = { %s, %s, %s",
	         emit_planes(e, &x->shape), emit_double(e->arena, eps),
	         tables_dtype(x->dt));
	emit_line(e, n, "$,w };");
	return true;
}

bool
emit_batchnorm(struct emit *e, const Node *n)
{
	if (!emit_batch(e, n, emit_in(e, n, 0), n->attr.BATCHNORM.eps))
		return false;
	emit_line(e, n, "ckr_batchnorm($o0, $o1, $o2, $i0, $i1, $i2, &batch, "
	          "env);");
	return true;
}

bool
emit_batchnorm_grad(struct emit *e, const Node *n)
{
	if (!emit_batch(e, n, emit_in(e, n, 1), n->attr.BATCHNORM_GRAD.eps))
		return false;
	emit_line(e, n, "ckr_batchnorm_grad($o0, $o1, $o2, $i0, $i1, p[2], "
	          "p[3],");
	emit_line(e, n, "                   $i4, &batch, env);");
	return true;
}

bool
emit_bn_update(struct emit *e, const Node *n)
{
	if (!emit_float_operands(e, n, "batchnorm"))
		return false;
	emit_line(e, n, "ckr_bn_update($o0, $i0, $i1, %lld, %s, env);",
	          (long long)val_nelem(emit_out(e, n, 0)),
	          emit_double(e->arena, n->attr.BN_UPDATE.momentum));
	return true;
}

/* ---- pools ---- */

static void
emit_pool(struct emit *e, const Node *n, const IntList *end, int64_t include)
{
	struct window w = window_of(e->g, n);
	int64_t pad[WINDOW_DIMS] = { 0 };

	for (int i = 0; i < end->n; i++)
		pad[WINDOW_DIMS - end->n + i] = end->v[i];
	out_line(e->out, "static const struct ckr_pool pool = {");
	EMIT_MEMBERS(e, "planes include", w.images * w.cin, include != 0);
	emit_window(e, &w);
	emit_triple(e, "end", pad);
	out_line(e->out, "};");
}

bool
emit_maxpool(struct emit *e, const Node *n)
{
	if (!emit_float_operands(e, n, "pool"))
		return false;
	emit_pool(e, n, &n->attr.MAXPOOL.end, 0);
	emit_line(e, n, "ckr_maxpool(&pool, $o0, $o1, $i0, env);");
	return true;
}

bool
emit_maxpool_grad(struct emit *e, const Node *n)
{
	const Shape *dy = &emit_in(e, n, 0)->shape;
	const Shape *dx = &emit_out(e, n, 0)->shape;

	if (!emit_float_operands(e, n, "pool"))
		return false;
	if (emit_in(e, n, 1)->dt != DT_I32)
		return diag_error(e->diag, "maxpool_grad: expected positions "
		                  "in i32");
	emit_line(e, n, "ckr_maxpool_grad($o0, $i0, p[1], %lld, %lld, %lld, "
	          "env$,w);", (long long)shape_span(dx, 0, 2),
	          (long long)shape_span(dx, 2, dx->rank),
	          (long long)shape_span(dy, 2, dy->rank));
	return true;
}

bool
emit_avgpool(struct emit *e, const Node *n)
{
	if (!emit_float_operands(e, n, "pool"))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL.end, n->attr.AVGPOOL.include);
	emit_line(e, n, "ckr_avgpool(&pool, $o0, $i0, env);");
	return true;
}

bool
emit_avgpool_grad(struct emit *e, const Node *n)
{
	if (!emit_float_operands(e, n, "pool"))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL_GRAD.end,
	          n->attr.AVGPOOL_GRAD.include);
	emit_line(e, n, "ckr_avgpool_grad(&pool, $o0, $i0, env);");
	return true;
}
