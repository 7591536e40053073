/* Products of experts on a GPU: their calls, and the workspace of the order of
 * rows. */
#include "codegen/cuda/cuda.h"

/* 64-bit numbers: of each expert where its rows begin, of each row its place.
 * ORDER WORK: ckr_expert_rows(). */
static int64_t
expert_bytes(int64_t rows, int64_t experts)
{
	return cuda_bytes(rows + experts + 2, 8);
}

int64_t
cuda_work_expert_matmul(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return expert_bytes(g->val[n->in[0]].shape.dim[0],
	                    g->val[n->in[1]].shape.dim[0]);
}

int64_t
cuda_work_expert_dw(const Graph *g, const Node *n, int threads)
{
	(void)threads;
	return expert_bytes(g->val[n->in[0]].shape.dim[0],
	                    n->attr.EXPERT_DW.experts);
}

static bool
emit_expert_product(struct emit *e, const Node *n, int64_t experts,
                    int64_t all, int64_t width, bool tb, const char *call)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 2);

	emit_include(e, "experts");
	emit_shapes(e, n);
	if (!e->emitter->takes(x->dt))
		return emit_unsupported(e, n, x->dt);
	if (idx->dt != DT_I64 && idx->dt != DT_I32)
		return emit_unsupported(e, n, idx->dt);
	out_line(e->out, "const struct ckr_experts c1 = {");
	EMIT_MEMBERS(e, "n experts inner width", x->shape.dim[0], experts,
	             x->shape.dim[1], width);
	emit_own_experts(e, experts, all);
	EMIT_MEMBERS(e, "tb idx_bytes", tb, dtype_info[idx->dt].nbytes);
	out_line(e->out, "};");
	emit_line(e, n, "%s(&c1, $o0, $i0, $i1, p[2], $w, env);", call);
	return true;
}

bool
cuda_expert_matmul(struct emit *e, const Node *n)
{
	const Shape *w = &emit_in(e, n, 1)->shape;
	bool tb = n->attr.EXPERT_MATMUL.tb;

	return emit_expert_product(e, n, w->dim[0], n->attr.EXPERT_MATMUL.all,
	                           w->dim[tb ? 1 : 2], tb,
	                           "ckr_expert_matmul");
}

bool
cuda_expert_dw(struct emit *e, const Node *n)
{
	return emit_expert_product(e, n, n->attr.EXPERT_DW.experts,
	                           n->attr.EXPERT_DW.all,
	                           emit_in(e, n, 1)->shape.dim[1], false,
	                           "ckr_expert_dw");
}

bool
cuda_expert_slots(struct emit *e, const Node *n)
{
	if (!emit_slots(e, n))
		return false;
	emit_line(e, n, "ckr_expert_slots(&c1, (int64_t *)p[1], "
	          "(int64_t *)p[2], p[3], p[0], env);");
	return true;
}
