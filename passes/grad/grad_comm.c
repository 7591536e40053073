/* Gradient rules of collectives: each is the dual of its op, by the placements
 * on both sides (Replicate and Replicate, Shard and Shard, ReplicatePartial
 * and Partial).
 */
#include "passes/grad/grad_rules.h"
#include "ir/placement.h"

/* The collective `op` with the cut side of this node's. */
static ValId
emit_dual(struct grad *c, Op op)
{
	Placement s = placement_of_attr(&c->n);
	Attr a;

	placement_to_attr(&s, op, &a);
	*attr_int_of(op, &a, "group") = node_group(&c->n);
	return adj_op(c, op, 1, c->dy, &a);
}

/* Partial -> Replicate: both adjoints are whole.  Partial -> ReplicatePartial:
 * that of the latter is a sum over ranks. */
bool
grad_all_reduce(struct grad *c)
{
	if (c->n.attr.ALL_REDUCE.reduction != 0)
		return grad_refuse(c, "the op is a maximum over ranks");
	c->dx[0] = c->n.attr.ALL_REDUCE.side == 0 ? c->dy[0]
		: adj_op(c, OP_ALL_REDUCE, 1, c->dy, &c->n.attr);
	return true;
}

/* The adjoint is the part of it that comes of one micro-batch. */
bool
grad_batch_total(struct grad *c)
{
	Attr a = attr_default(OP_SHARE);
	ValId share;

	a.SHARE.micro = 1;
	share = adj_op(c, OP_SHARE, 0, NULL, &a);
	share = adj_cast(c, share, adj_dt(c, c->dy[0]));
	c->dx[0] = adj_2(c, OP_DIV, c->dy[0], share);
	return true;
}

/* Backward of Shard -> ReplicatePartial is Partial -> Shard; of Shard ->
 * Replicate, Replicate -> Shard. */
bool
grad_all_gather(struct grad *c)
{
	c->dx[0] = emit_dual(c, c->n.attr.ALL_GATHER.side ? OP_REDUCE_SCATTER
	                                             : OP_OWN);
	return true;
}

/* Backward of Partial -> Shard is Shard -> ReplicatePartial, which in backward
 * is whole as Replicate is. */
bool
grad_reduce_scatter(struct grad *c)
{
	c->dx[0] = adj_reshape(c, emit_dual(c, OP_ALL_GATHER),
	                       adj_shape(c, c->n.in[0]));
	return true;
}

bool
grad_all_to_all(struct grad *c)
{
	const Attr from = c->n.attr;
	Attr a = from;

	a.ALL_TO_ALL.axis = from.ALL_TO_ALL.to_axis;
	a.ALL_TO_ALL.first_axis = from.ALL_TO_ALL.to_first_axis;
	a.ALL_TO_ALL.replication = from.ALL_TO_ALL.to_replication;
	a.ALL_TO_ALL.segment = from.ALL_TO_ALL.to_segment;
	a.ALL_TO_ALL.to_axis = from.ALL_TO_ALL.axis;
	a.ALL_TO_ALL.to_first_axis = from.ALL_TO_ALL.first_axis;
	a.ALL_TO_ALL.to_replication = from.ALL_TO_ALL.replication;
	a.ALL_TO_ALL.to_segment = from.ALL_TO_ALL.segment;
	c->dx[0] = adj_op(c, OP_ALL_TO_ALL, 1, c->dy, &a);
	return true;
}

/* On every replica the adjoint of all rows is a summand. */
bool
grad_gather_rows(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_SUM_ROWS, 1, c->dy, &c->n.attr);
	return true;
}

bool
grad_sum_rows(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_GATHER_ROWS, 1, c->dy, &c->n.attr);
	return true;
}

/* Blocks go back where they came from. */
bool
grad_exchange_rows(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_EXCHANGE_ROWS, 1, c->dy, &c->n.attr);
	return true;
}

/* Backward of Replicate -> ReplicatePartial is Partial -> Replicate. */
bool
grad_replicate(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_ALL_REDUCE, 1, c->dy, NULL);
	return true;
}

/* Backward of Replicate -> Shard is Shard -> Replicate; of ReplicatePartial ->
 * Shard, Shard -> Partial. */
bool
grad_own(struct grad *c)
{
	c->dx[0] = adj_reshape(c, emit_dual(c, c->n.attr.OWN.from ? OP_OWN_GRAD
	                                                     : OP_ALL_GATHER),
	                       adj_shape(c, c->n.in[0]));
	return true;
}
