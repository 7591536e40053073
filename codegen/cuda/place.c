/* Kernels whose work items are elements of the result. */
#include "codegen/cuda/cuda.h"

bool
cuda_resize(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	const Attr *a = &n->attr;
	int axis = (int)a->RESIZE.axis;
	long long inner = shape_span(&x->shape, axis + 1, x->shape.rank);
	long long from = x->shape.dim[axis], to = y->shape.dim[axis];

	emit_shapes(e, n);
	if (shape_nelem(&y->shape) == 0)
		return true;
	if (!resize_tables(e, n))
		return false;
	emit_pointer(e, "x", x, 0, true);
	emit_pointer(e, "y", y, n->nin, false);
	emit_work_items(e, shape_nelem(&y->shape), true);
	out_line(e->out, "const int64_t line = t / %lld, i = t - line * %lld;",
	         inner, inner);
	out_line(e->out, "const int64_t o = line / %lld, q = line - o * %lld;",
	         to, to);
	out_line(e->out, "float s = first[q] == first[q + 1] ? %s : 0.0f;",
	         emit_float(e->arena, a->RESIZE.bwd ? 0 : a->RESIZE.fill));
	out_line(e->out, "for (int k = first[q]; k < first[q + 1]; k++)");
	out_line(e->out, "\ts += weight[k] * %s;", ew_load(e, x->dt,
	         arena_printf(e->arena, "x[(o * %lld + at[k]) * %lld + i]",
	                      from, inner)));
	out_line(e->out, "y[t] = %s;", ew_store(e, y->dt, "s"));
	out_line(e->out, "}");
	return true;
}

/* Coordinates of element t, and whether they are within x: its offset there,
 * or -1. */
static void
emit_padded(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);

	out_line(e->out, "int64_t rest = t, at = 0, i;");
	out_line(e->out, "bool in = true;");
	for (int d = y->shape.rank - 1; d >= 0; d--) {
		out_line(e->out, "i = rest %% %lld - %lld;",
		         (long long)y->shape.dim[d],
		         (long long)n->attr.PAD.begin.v[d]);
		out_line(e->out, "rest /= %lld;", (long long)y->shape.dim[d]);
		out_line(e->out, "in = in && i >= 0 && i < %lld;",
		         (long long)x->shape.dim[d]);
		out_line(e->out, "at += i * %lld;", (long long)x->stride[d]);
	}
}

/* Tasks of two loops have no order: every element is written once. */
bool
cuda_pad(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	struct nest_operand value = { .dt = y->dt, .scalar = true,
	                              .value = n->attr.PAD.value };

	if (n->attr.PAD.mode != 0)
		return emit_pad(e, n);
	emit_shapes(e, n);
	if (shape_nelem(&y->shape) == 0)
		return true;
	emit_pointer(e, "x", x, 0, true);
	emit_pointer(e, "y", y, n->nin, false);
	emit_work_items(e, shape_nelem(&y->shape), true);
	emit_padded(e, n);
	out_line(e->out, "y[t] = in ? x[at] : %s;",
	         ew_store(e, y->dt, nest_literal(e, &value)));
	out_line(e->out, "}");
	return true;
}
