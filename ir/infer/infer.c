/* Shape inference: element types and shapes of a node's outputs, one rule per
 * name in the shape column of ops.h.  This file has the table and the entries;
 * the rules are in infer_*.c by family, what they share is in rules.c.
 */
#include "ir/infer/rules.h"

static ShapeRule *const infer_rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) infer_##shape
#include "ir/ops.h"
};

/* What the row says of operand i. */
static bool
check_classes(struct infer *c, int i)
{
	uint64_t flags = op_info[c->n->op].flags;

	if (dtype_is_blocks(in(c, i)->dt)
	    && !(flags & (i == 0 ? F_BLOCKS_0 : i == 1 ? F_BLOCKS_1 : 0)))
		return rule_fail(c, "operand %d holds blocks of quantised "
				 "weights, which the op does not read", i);
	return (!(flags & F_FLOATS) || rule_want_class(c, i, "f", "floats"))
	       && (!(flags & F_INTS)
	           || rule_want_class(c, i, "iu", "integers"))
	       && (!(flags & F_BOOLS) || rule_want_class(c, i, "b", "bool"));
}

bool
shape_infer(Graph *g, Diag *d, Node *n)
{
	struct infer c = {g, d, n};
	const struct op_info *info = &op_info[n->op];

	if (n->nin < info->min || (info->max != VARIADIC && n->nin > info->max))
		return rule_fail(&c, "expected %d%s operands, found %d",
				 info->min,
				 info->max > info->min ? " or more" : "",
				 n->nin);
	for (int i = 0; i < info->min; i++)
		if (!n->in[i])
			return rule_fail(&c, "operand %d is missing", i);
	for (int i = info->min; i < n->nin && n->op != OP_MATMUL; i++)
		if (!n->in[i] && info->max == VARIADIC)
			return rule_fail(&c, "operand %d is missing", i);
	for (int i = 0; i < n->nin && i < info->nstat; i++)
		if (n->in[i] && !check_classes(&c, i))
			return false;
	return infer_rule[n->op](&c);
}

ValId
emit_op(Graph *g, Diag *d, Op op, int nin, const ValId *in, const Attr *attr,
        NodeId like)
{
	Node *n = node_new(g, op, nin, in, 0, like);

	if (attr)
		n->attr = *attr;
	return shape_infer(g, d, n) ? n->out[0] : 0;
}

ValId
emit_slice(Graph *g, Diag *d, ValId v, const int64_t *start,
           const int64_t *extent, NodeId like)
{
	Node *n = node_new(g, OP_SLICE, 1, &v, 1, like);
	Val *y = &g->val[n->out[0]];

	y->dt = g->val[v].dt;
	y->shape = g->val[v].shape;
	n->attr.SLICE.start.n = y->shape.rank;
	n->attr.SLICE.step = list_filled(y->shape.rank, 1);
	for (int i = 0; i < y->shape.rank; i++) {
		n->attr.SLICE.start.v[i] = start[i];
		y->shape.dim[i] = extent[i];
	}
	return shape_infer(g, d, n) ? n->out[0] : 0;
}

ValId
emit_cast(Graph *g, Diag *d, ValId v, DType to, NodeId like)
{
	Attr a = attr_cast(to);

	return !v || g->val[v].dt == to ? v
	       : emit_op(g, d, OP_CAST, 1, &v, &a, like);
}
