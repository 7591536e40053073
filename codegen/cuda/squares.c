/* The norm of all gradients: one launch for many of them. */
#include "codegen/cuda/cuda.h"

/* Operands of grad_norm whose sums others have taken come last. */
bool
cuda_grad_norm(struct emit *e, const Node *n)
{
	bool root = n->op == OP_GRAD_NORM;
	int sums = n->nin - (root ? (int)n->attr.GRAD_NORM.sums : 0), count = 0;

	emit_shapes(e, n);
	e->need |= NEED_UPDATE;
	out_line(e->out, "const struct ckr_square list[] = {");
	for (int i = 0; i < n->nin; i++) {
		const Val *v = emit_in(e, n, i);

		if (!v)
			continue;
		if (v->dt != DT_F32 && !dtype_is_half(v->dt))
			return emit_unsupported(e, n, v->dt);
		out_line(e->out, "{ %s, %lld },", p_in(e, n, i), i < sums
		         ? (long long)shape_nelem(&v->shape) : -1LL);
		count++;
	}
	out_line(e->out, "};");
	out_line(e->out, "ckr_grad_norm(%s, list, %d, %d, %s, env);",
	         p_out(e, n, 0), count, root, p_scratch(e, n));
	return true;
}
