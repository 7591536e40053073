/* Calls of the kernels of experts. */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"

static bool
emit_experts(struct emit *e, const Node *n, struct expert_tile t, int64_t all,
             bool tb, const char *call)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 2);

	emit_include(e, "experts");
	emit_shapes(e, n);
	if (x->dt != DT_F32 && !dtype_is_half(x->dt))
		return emit_unsupported(e, n, x->dt);
	if (idx->dt != DT_I64 && idx->dt != DT_I32)
		return emit_unsupported(e, n, idx->dt);
	out_line(e->out, "const struct ckr_experts c1 = {");
	EMIT_MEMBERS(e, "n experts inner width", x->shape.dim[0], t.experts,
	             t.inner, t.width);
	emit_own_experts(e, t.experts, all);
	out_line(e->out, ".tb = %d, .type = %s, .idx_bytes = %d,", tb,
	         tables_dtype(x->dt), dtype_info[idx->dt].nbytes);
	EMIT_MEMBERS(e, "rows cols depth", t.tile.rows, t.tile.cols,
	             t.tile.depth);
	EMIT_MEMBERS(e, "tiles thread", t.tiles, t.thread);
	out_line(e->out, "};");
	emit_line(e, n, "%s(&c1, $o0, p[0], p[1], p[2], $w, env);", call);
	return true;
}

bool
cpu_expert_matmul(struct emit *e, const Node *n)
{
	return emit_experts(e, n, tile_expert_matmul(e->g, n, e->threads),
	                    n->attr.EXPERT_MATMUL.all,
	                    n->attr.EXPERT_MATMUL.tb, "ckr_expert_matmul");
}

bool
cpu_expert_dw(struct emit *e, const Node *n)
{
	return emit_experts(e, n, tile_expert_dw(e->g, n, e->threads),
	                    n->attr.EXPERT_DW.all, false, "ckr_expert_dw");
}

bool
cpu_expert_slots(struct emit *e, const Node *n)
{
	if (!emit_slots(e, n))
		return false;
	emit_line(e, n, "ckr_expert_slots(&c1, p[1], p[2], p[3], p[0], "
	          "(int64_t *)$w, env);");
	return true;
}
