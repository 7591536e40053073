/* Calls of the convolution, batch normalisation and pooling kernels. */
#include "codegen/emit.h"
#include "ir/window.h"

#include <string.h>

/* "p[3]", or "NULL" for an absent operand. */
static const char *
slot(struct emit *e, const Val *v, int i)
{
	return v ? arena_printf(e->arena, "p[%d]", i) : "NULL";
}

static const char *
in(struct emit *e, const Node *n, int i)
{
	return slot(e, emit_in(e, n, i), i);
}

static const char *
out(struct emit *e, const Node *n, int i)
{
	return slot(e, emit_out(e, n, i), n->nin + i);
}

/* All floats among the operands are f32. */
static bool
need_f32(struct emit *e, const Node *n, unsigned need)
{
	e->need |= need;
	emit_shapes(e, n);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Val *v = i < n->nin ? emit_in(e, n, i)
		                          : emit_out(e, n, i - n->nin);

		if (v && dtype_info[v->dt].cls == 'f' && v->dt != DT_F32)
			return emit_unsupported(e, n, v->dt);
	}
	return true;
}

static void
emit_triple(struct emit *e, const char *name, const int64_t *v)
{
	out_line(e->out, ".%s = { %lld, %lld, %lld },", name,
	         (long long)v[0], (long long)v[1], (long long)v[2]);
}

static void
emit_window(struct emit *e, const struct window *w)
{
	emit_triple(e, "in", w->in);
	emit_triple(e, "out", w->out);
	emit_triple(e, "kernel", w->kernel);
	emit_triple(e, "stride", w->stride);
	emit_triple(e, "dilation", w->dilation);
	emit_triple(e, "begin", w->begin);
}

static long long
volume(const int64_t *v)
{
	return (long long)(v[0] * v[1] * v[2]);
}

/* ---- convolutions ---- */

/* True if there is something to compute; otherwise the result is zero. */
static bool
has_work(struct emit *e, const Node *n)
{
	const Val *y = emit_out(e, n, 0);

	if (shape_nelem(&emit_in(e, n, 0)->shape) > 0
	    && shape_nelem(&emit_in(e, n, 1)->shape) > 0)
		return true;
	out_line(e->out, "memset(p[%d], 0, %lld);", n->nin,
	         (long long)val_data_bytes(y));
	return false;
}

static void
emit_geometry(struct emit *e, const Node *n)
{
	struct window w = window_of(e->g, n);
	struct conv_tile t = conv_tile(e->g, n);

	out_line(e->out, "static const struct ckr_conv c1 = {");
	out_line(e->out, ".images = %lld, .group = %lld, .cin = %lld, "
	         ".cout = %lld,", (long long)w.images, (long long)w.group,
	         (long long)w.cin, (long long)w.cout);
	emit_window(e, &w);
	out_line(e->out, ".taps = %lld, .in_size = %lld, .out_size = %lld,",
	         volume(w.kernel), volume(w.in), volume(w.out));
	out_line(e->out, ".direct = %d, .lines = %lld, .channels = %lld,",
	         t.direct, (long long)t.lines, (long long)t.channels);
	out_line(e->out, ".parts = %lld, .each = %lld, .scratch = %lld,",
	         (long long)t.parts, (long long)t.each,
	         (long long)t.scratch);
	out_line(e->out, "};");
}

static const char *
scratch(struct emit *e, const Node *n)
{
	return conv_scratch(e->g, n, 1) > 0
		? arena_printf(e->arena, "p[%d]", emit_scratch(n)) : "NULL";
}

bool
emit_conv(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_CONV))
		return false;
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0 || !has_work(e, n))
		return true;
	emit_geometry(e, n);
	out_line(e->out, "ckr_conv(&c1, p[%d], p[0], p[1], %s, %s, env);",
	         n->nin, in(e, n, 2), scratch(e, n));
	return true;
}

bool
emit_conv_dx(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_CONV))
		return false;
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0 || !has_work(e, n))
		return true;
	emit_geometry(e, n);
	out_line(e->out, "ckr_conv_dx(&c1, p[%d], p[0], p[1], %s, %s, env);",
	         n->nin, in(e, n, 2), scratch(e, n));
	return true;
}

bool
emit_conv_dw(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_CONV))
		return false;
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0 || !has_work(e, n))
		return true;
	emit_geometry(e, n);
	out_line(e->out, "ckr_conv_dw(&c1, p[2], p[0], p[1], %s, env);",
	         scratch(e, n));
	return true;
}

/* ---- batch normalisation ---- */

static const char *
planes(struct emit *e, const Shape *s)
{
	return arena_printf(e->arena, "%lld, %lld, %lld",
	                    (long long)s->dim[0], (long long)s->dim[1],
	                    (long long)emit_extent(s, 2, s->rank));
}

bool
emit_batchnorm(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_BATCHNORM))
		return false;
	out_line(e->out, "ckr_batchnorm(%s, %s, %s, p[0], %s, %s, %s, %s, "
	         "env);", out(e, n, 0), out(e, n, 1), out(e, n, 2),
	         in(e, n, 1), in(e, n, 2),
	         planes(e, &emit_in(e, n, 0)->shape),
	         emit_double(e->arena, n->attr.BATCHNORM.eps));
	return true;
}

bool
emit_batchnorm_grad(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_BATCHNORM))
		return false;
	out_line(e->out, "ckr_batchnorm_grad(%s, %s, %s, p[0], p[1], p[2], "
	         "p[3],", out(e, n, 0), out(e, n, 1), out(e, n, 2));
	out_line(e->out, "                   %s, %s, %s, env);",
	         in(e, n, 4), planes(e, &emit_in(e, n, 1)->shape),
	         emit_double(e->arena, n->attr.BATCHNORM_GRAD.eps));
	return true;
}

bool
emit_bn_update(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_BATCHNORM))
		return false;
	out_line(e->out, "ckr_bn_update(p[2], p[0], p[1], %lld, %s, env);",
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
	if (!need_f32(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.MAXPOOL.end, 0);
	out_line(e->out, "ckr_maxpool(&pool, %s, %s, p[0], env);",
	         out(e, n, 0), out(e, n, 1));
	return true;
}

bool
emit_maxpool_grad(struct emit *e, const Node *n)
{
	const Shape *dy = &emit_in(e, n, 0)->shape;
	const Shape *dx = &emit_out(e, n, 0)->shape;

	if (!need_f32(e, n, NEED_POOL))
		return false;
	if (emit_in(e, n, 1)->dt != DT_I32)
		return diag_error(e->diag, "maxpool_grad wants positions of "
		                  "type i32");
	out_line(e->out, "ckr_maxpool_grad(p[2], p[0], p[1], %lld, %lld, "
	         "%lld, env);", (long long)emit_extent(dx, 0, 2),
	         (long long)emit_extent(dx, 2, dx->rank),
	         (long long)emit_extent(dy, 2, dy->rank));
	return true;
}

bool
emit_avgpool(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL.end, n->attr.AVGPOOL.include);
	out_line(e->out, "ckr_avgpool(&pool, p[1], p[0], env);");
	return true;
}

bool
emit_avgpool_grad(struct emit *e, const Node *n)
{
	if (!need_f32(e, n, NEED_POOL))
		return false;
	emit_pool(e, n, &n->attr.AVGPOOL_GRAD.end,
	          n->attr.AVGPOOL_GRAD.include);
	out_line(e->out, "ckr_avgpool_grad(&pool, p[1], p[0], env);");
	return true;
}
