/* Steps of sharded graphs: ops without a kernel, and calls of the kernels that
 * work on a rank's shard.
 */
#include "codegen/rules/target_emitter.h"

/* No kernel: the run time moves it.  What is added must have a type that it
 * adds. */
bool
emit_comm(struct emit *e, const Node *n)
{
	DType dt = emit_in(e, n, 0)->dt;
	bool adds = n->op == OP_ALL_REDUCE || n->op == OP_REDUCE_SCATTER;

	return !adds || dtype_info[dt].cls == 'f' || dt == DT_I64
		|| dt == DT_I32 || emit_unsupported(e, n, dt);
}

/* Number of ranks that hold the same shard. */
static long long
ranks_per_piece(const Val *v)
{
	return v->placement.kind == PLACEMENT_SHARD ? v->placement.replication
						    : 1;
}

void
emit_part(struct emit *e, const Val *v, int axis, int64_t whole)
{
	long long n = (long long)v->shape.dim[axis];

	if (whole)
		out_line(e->out, "const struct ckr_part part = ckr_part_of("
		         "%lld, %lld, %lld, env);", (long long)whole, n,
		         ranks_per_piece(v));
	else
		out_line(e->out, "const struct ckr_part part = { %lld, 0, "
		         "%lld };", n, n);
}

/* ---- cross entropy ---- */

static bool
part_of_classes(struct emit *e, const Node *n, const Val *x, int labels,
                int64_t ignore, int64_t classes)
{
	emit_shapes(e, n);
	if (!e->emitter->takes(x->dt))
		return emit_unsupported(e, n, x->dt);
	e->need |= NEED_SHARD;
	emit_part(e, x, 1, classes);
	return emit_labels(e, n, labels, n->nin, ignore, classes);
}

/* Labels that are to be ignored or bad are nobody's; sce tells them apart. */
bool
emit_vocab_stats(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	if (!part_of_classes(e, n, x, 1, INT64_MIN,
	                     n->attr.VOCAB_STATS.whole_extent))
		return false;
	out_line(e->out, "ckr_vocab_stats(%s, %s, &labels, %lld, %lld, part, "
	         "env);", p_out(e, n, 0), p_in(e, n, 0),
	         (long long)x->shape.dim[0], (long long)x->shape.dim[1]);
	return true;
}

bool
emit_sce_part(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);

	emit_shapes(e, n);
	e->need |= NEED_SHARD;
	if (!emit_labels(e, n, 1, n->nin, n->attr.SCE.ignore,
	                 n->attr.SCE.whole_extent))
		return false;
	out_line(e->out,
	         "ckr_sce_part(%s, %s, %s, p[3], &labels, %lld, %lld, "
	         "%lld%s, env);",
	         p_out(e, n, 0), p_out(e, n, 1), p_out(e, n, 2),
	         (long long)x->shape.dim[0], ranks_per_piece(x),
	         (long long)n->attr.SCE.reduction, emit_workspace_arg(e, n));
	return true;
}

bool
emit_sce_grad_part(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 1);

	if (!part_of_classes(e, n, x, 2, n->attr.SCE_GRAD.ignore,
	                     n->attr.SCE_GRAD.whole_extent))
		return false;
	out_line(e->out, "ckr_sce_grad_part(%s, %s, %s, &labels, %s, %s,",
	         p_out(e, n, 0), p_in(e, n, 0), p_in(e, n, 1), p_in(e, n, 3),
	         p_in(e, n, 4));
	out_line(e->out, "                  %lld, %lld, part, %lld, env);",
	         (long long)x->shape.dim[0], (long long)x->shape.dim[1],
	         (long long)n->attr.SCE_GRAD.reduction);
	return true;
}
