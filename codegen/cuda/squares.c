/* The norm of all gradients: one launch for many of them. */
#include "codegen/cuda/cuda.h"

/* Sums the squares of operands before `sums`, and the values of the others. */
static bool
emit_gradient_norm(struct emit *e, const Node *n, int sums, bool root)
{
	int count = 0;

	emit_shapes(e, n);
	emit_include(e, "squares");
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
	emit_line(e, n, "ckr_grad_norm($o0, list, %d, %d, $w, env);", count,
	          root);
	return true;
}

bool
cuda_grad_norm(struct emit *e, const Node *n)
{
	return emit_gradient_norm(e, n, n->nin - (int)n->attr.GRAD_NORM.sums,
	                          true);
}

bool
cuda_sum_squares(struct emit *e, const Node *n)
{
	return emit_gradient_norm(e, n, n->nin, false);
}
