/* Calls of the kernels of images: batch normalisation, pools. */
#include "codegen/rules/target_emitter.h"
#include "ir/window.h"

/* Whether the target's kernels take all floating-point operands. */
static bool
takes_all(struct emit *e, const Node *n, unsigned need)
{
	e->need |= need;
	emit_shapes(e, n);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = i < n->nin ? emit_in(e, n, i)
		                          : emit_out(e, n, i - n->nin);

		if (v && dtype_info[v->dt].cls == 'f'
		    && !e->emitter->takes(v->dt))
			return emit_unsupported(e, n, v->dt);
	}
	return true;
}

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
	e->need |= NEED_BATCHNORM;
	emit_shapes(e, n);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = i < n->nin ? emit_in(e, n, i)
		                          : emit_out(e, n, i - n->nin);

		if (v && v->dt != DT_F32
		    && (!dtype_is_half(v->dt) || v->dt != x->dt
		        || v->shape.rank == 1))
			return emit_unsupported(e, n, v->dt);
	}
	out_line(e->out, "const struct ckr_batchnorm batch = { %s, %s, %s",
	         emit_planes(e, &x->shape), emit_double(e->arena, eps),
	         tables_dtype(x->dt));
	out_line(e->out, "%s };", emit_workspace_arg(e, n));
	return true;
}

bool
emit_batchnorm(struct emit *e, const Node *n)
{
	if (!emit_batch(e, n, emit_in(e, n, 0), n->attr.BATCHNORM.eps))
		return false;
	out_line(e->out, "ckr_batchnorm(%s, %s, %s, %s, %s, %s, &batch, env);",
	         p_out(e, n, 0), p_out(e, n, 1), p_out(e, n, 2),
	         p_in(e, n, 0), p_in(e, n, 1), p_in(e, n, 2));
	return true;
}

bool
emit_batchnorm_grad(struct emit *e, const Node *n)
{
	if (!emit_batch(e, n, emit_in(e, n, 1), n->attr.BATCHNORM_GRAD.eps))
		return false;
	out_line(e->out, "ckr_batchnorm_grad(%s, %s, %s, %s, %s, p[2], p[3],",
	         p_out(e, n, 0), p_out(e, n, 1), p_out(e, n, 2),
	         p_in(e, n, 0), p_in(e, n, 1));
	out_line(e->out, "                   %s, &batch, env);",
	         p_in(e, n, 4));
	return true;
}

bool
emit_bn_update(struct emit *e, const Node *n)
{
	if (!takes_all(e, n, NEED_BATCHNORM))
		return false;
	out_line(e->out, "ckr_bn_update(%s, %s, %s, %lld, %s, env);",
	         p_out(e, n, 0), p_in(e, n, 0), p_in(e, n, 1),
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
	out_line(e->out, ".planes = %lld, .include = %d,",
	         (long long)(w.images * w.cin), include != 0);
	emit_window(e, &w);
	emit_triple(e, "end", pad);
	out_line(e->out, "};");
}

bool
emit_maxpool(struct emit *e, const Node *n)
{
	if (!takes_all(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.MAXPOOL.end, 0);
	out_line(e->out, "ckr_maxpool(&pool, %s, %s, %s, env);",
	         p_out(e, n, 0), p_out(e, n, 1), p_in(e, n, 0));
	return true;
}

bool
emit_maxpool_grad(struct emit *e, const Node *n)
{
	const Shape *dy = &emit_in(e, n, 0)->shape;
	const Shape *dx = &emit_out(e, n, 0)->shape;

	if (!takes_all(e, n, NEED_POOL))
		return false;
	if (emit_in(e, n, 1)->dt != DT_I32)
		return diag_error(e->diag, "maxpool_grad: expected positions "
		                  "in i32");
	out_line(e->out,
	         "ckr_maxpool_grad(%s, %s, p[1], %lld, %lld, %lld, "
	         "env%s);",
	         p_out(e, n, 0), p_in(e, n, 0),
	         (long long)emit_extent(dx, 0, 2),
	         (long long)emit_extent(dx, 2, dx->rank),
	         (long long)emit_extent(dy, 2, dy->rank),
	         emit_workspace_arg(e, n));
	return true;
}

bool
emit_avgpool(struct emit *e, const Node *n)
{
	if (!takes_all(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL.end, n->attr.AVGPOOL.include);
	out_line(e->out, "ckr_avgpool(&pool, %s, %s, env);", p_out(e, n, 0),
	         p_in(e, n, 0));
	return true;
}

bool
emit_avgpool_grad(struct emit *e, const Node *n)
{
	if (!takes_all(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL_GRAD.end,
	          n->attr.AVGPOOL_GRAD.include);
	out_line(e->out, "ckr_avgpool_grad(&pool, %s, %s, env);",
	         p_out(e, n, 0), p_in(e, n, 0));
	return true;
}
