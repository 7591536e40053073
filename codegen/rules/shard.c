/* Steps of sharded graphs: ops without a kernel, and the part of a dim that a
 * rank has. */
#include "codegen/rules/target_emitter.h"

/* No kernel: the run time moves it.  What is added must have a type that it
 * adds. */
bool
emit_comm(struct emit *e, const Node *n)
{
	bool adds = n->op == OP_ALL_REDUCE || n->op == OP_REDUCE_SCATTER
		|| n->op == OP_SUM_ROWS;
	DType dt = adds ? emit_in(e, n, 0)->dt : DT_NONE;

	return !adds || dtype_info[dt].cls == 'f' || dt == DT_I64
		|| dt == DT_I32 || emit_unsupported(e, n, dt);
}

const char *
emit_shard_number(struct emit *e, bool rows)
{
	int64_t size = rows ? e->g->expert_group : e->g->zero_group;

	return size ? arena_printf(e->arena, "(env->replica %% %lldu)",
	                           (long long)size) : "env->replica";
}

long long
ranks_per_piece(const Val *v)
{
	return v->placement.kind == PLACEMENT_SHARD ? v->placement.replication
						    : 1;
}

void
emit_part(struct emit *e, const Val *v, int axis, int64_t whole, int64_t all)
{
	long long n = (long long)v->shape.dim[axis];

	if (whole)
		out_line(e->out, "const struct ckr_part part = ckr_part_of("
		         "%lld, %lld, %lld, env);", (long long)whole, n,
		         ranks_per_piece(v));
	else if (all)
		out_line(e->out, "const struct ckr_part part = { %lld, "
		         "%lld * (int64_t)%s, %lld };", (long long)all, n,
		         emit_shard_number(e, true), n);
	else
		out_line(e->out, "const struct ckr_part part = { %lld, 0, "
		         "%lld };", n, n);
}

void
emit_own_experts(struct emit *e, int64_t experts, int64_t all)
{
	out_line(e->out, ".all = %lld, .first = %lld * (int64_t)%s,",
	         (long long)(all ? all : experts),
	         all ? (long long)experts : 0,
	         all ? emit_shard_number(e, true) : "0");
}

bool
emit_slots(struct emit *e, const Node *n)
{
	const Val *idx = emit_in(e, n, 0);

	emit_include(e, "experts");
	emit_shapes(e, n);
	if (idx->dt != DT_I64 && idx->dt != DT_I32)
		return emit_unsupported(e, n, idx->dt);
	out_line(e->out, "const struct ckr_slots c1 = {");
	EMIT_MEMBERS(e, "n all replicas room drop idx_bytes",
	             idx->shape.dim[0], n->attr.EXPERT_SLOTS.all,
	             n->attr.EXPERT_SLOTS.replicas, n->attr.EXPERT_SLOTS.room,
	             n->attr.EXPERT_SLOTS.drop, dtype_info[idx->dt].nbytes);
	out_line(e->out, "};");
	return true;
}
