/* Calls of the kernels that sample at the positions of a grid. */
#include "codegen/rules/target_emitter.h"

/* The kernel's geometry; x: extents of the data, y: of the samples. */
static void
emit_sample_struct(struct emit *e, const Shape *x, const Shape *y, int64_t mode,
                   int64_t padding, int64_t align)
{
	const char *in = "";

	for (int d = 2; d < x->rank; d++)
		in = arena_printf(e->arena, "%s%s%lld", in, d > 2 ? ", " : "",
		                  (long long)x->dim[d]);
	out_line(e->out, "static const struct ckr_sample s = {");
	EMIT_MEMBERS(e, "images channels plane points", x->dim[0], x->dim[1],
	             shape_span(x, 2, x->rank), shape_span(y, 2, y->rank));
	out_line(e->out, ".in = { %s }, .dims = %d, .mode = %d, "
	         ".padding = %d, .align = %d", in, x->rank - 2, (int)mode,
	         (int)padding, align != 0);
	out_line(e->out, "};");
}

bool
emit_grid_sample(struct emit *e, const Node *n)
{
	if (!emit_float_operands(e, n, "sample"))
		return false;
	emit_sample_struct(e, &emit_in(e, n, 0)->shape,
	                   &emit_out(e, n, 0)->shape, n->attr.GRID_SAMPLE.mode,
	                   n->attr.GRID_SAMPLE.padding,
	                   n->attr.GRID_SAMPLE.align);
	emit_line(e, n, "ckr_grid_sample(&s, $o0, $i0, $i1, env);");
	return true;
}

bool
emit_grid_sample_grad(struct emit *e, const Node *n)
{
	const Shape *dy = &emit_in(e, n, 0)->shape;
	const IntList *out = &n->attr.GRID_SAMPLE_GRAD.out;
	Shape x = *dy;

	if (!emit_float_operands(e, n, "sample"))
		return false;
	if (emit_out(e, n, 1) && (n->nin < 3 || !emit_in(e, n, 2)))
		return diag_error(e->diag, "grid_sample_grad: the gradient of "
		                  "the grid requires operand 2");
	for (int i = 0; i < out->n; i++)
		x.dim[2 + i] = out->v[i];
	emit_sample_struct(e, &x, dy, n->attr.GRID_SAMPLE_GRAD.mode,
	                   n->attr.GRID_SAMPLE_GRAD.padding,
	                   n->attr.GRID_SAMPLE_GRAD.align);
	if (emit_out(e, n, 0))
		emit_line(e, n, "ckr_grid_sample_dx(&s, $o0, $i0, $i1, "
		          "env$,w);");
	if (emit_out(e, n, 1))
		emit_line(e, n, "ckr_grid_sample_dgrid(&s, $o1, $i0, $i2, $i1, "
		          "env);");
	return true;
}
