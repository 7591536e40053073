/* Losses over labels, of rows that are positions.  What a mean divides by is
 * counted from all labels, which every replica has.
 */
#include "passes/context_parallel/cp_partition.h"

/* Which labels count, as booleans; 0: all. */
static ValId
emit_counted(struct cp_partition *c, ValId labels, int64_t ignore,
                NodeId like)
{
	ValId in[2] = { labels }, v;

	if (ignore == INT64_MIN)
		return cp_emit(c, OP_EQ, 2, (ValId[]){ labels, labels }, NULL,
		               like);
	in[1] = val_scalar(c->g, c->g->val[labels].dt, (double)ignore);
	v = cp_emit(c, OP_EQ, 2, in, NULL, like);
	return cp_emit(c, OP_NOT, 1, &v, NULL, like);
}

static ValId
emit_f32(struct cp_partition *c, ValId v, NodeId like)
{
	Attr a = attr_cast(DT_F32);

	return v && c->g->val[v].dt == DT_F32 ? v
	       : cp_emit(c, OP_CAST, 1, &v, &a, like);
}

/* The number of labels that count, or the sum of the weights of their
 * classes. */
static ValId
emit_count(struct cp_partition *c, NodeId id)
{
	const Placement whole = cp_whole();
	Node n = c->g->node[id];
	ValId labels = cp_version(c, n.in[1], &whole, id), mask, v, w;
	Attr a = attr_default(OP_REDUCE_SUM);

	mask = labels ? emit_counted(c, labels, *attr_int_of(n.op, &n.attr,
	                                                        "ignore"), id)
		      : 0;
	v = mask ? emit_f32(c, mask, id) : 0;
	if (v && n.nin > 2 && n.in[2]) {
		ValId zero = val_scalar(c->g, c->g->val[labels].dt, 0);

		w = cp_emit(c, OP_WHERE, 3, (ValId[]){ mask, labels, zero },
		            NULL, id);
		w = cp_emit(c, OP_GATHER, 2, (ValId[]){
			cp_version(c, n.in[2], &whole, id), w }, NULL, id);
		w = w ? emit_f32(c, w, id) : 0;
		v = cp_emit(c, OP_MUL, 2, (ValId[]){ v, w }, NULL, id);
	}
	a.REDUCE_SUM.keepdims = 0;
	return v ? cp_emit(c, OP_REDUCE_SUM, 1, &v, &a, id) : 0;
}

/* The loss of a replica's labels, divided by the number of all. */
static bool
divide_by_count(struct cp_partition *c, NodeId id, ValId count)
{
	ValId loss = c->version[c->g->node[id].out[0]]->v, y;
	Attr a = attr_cast(c->g->val[loss].dt);
	ValId n = c->g->val[count].dt == c->g->val[loss].dt ? count
		: cp_emit(c, OP_CAST, 1, &count, &a, id);

	y = cp_emit(c, OP_DIV, 2, (ValId[]){ loss, n }, NULL, id);
	if (y)
		cp_redefine(c, id, y);
	return y != 0;
}

bool
cp_partition_loss(struct cp_partition *c, NodeId id, bool *is)
{
	Node *n = &c->g->node[id];
	const Placement x = c->placement[n->in[0]];
	Placement rows = x, at[8];
	int64_t reduction;
	ValId count = 0;

	*is = (n->op == OP_SCE || n->op == OP_NLL)
		&& x.kind == PLACEMENT_SHARD && x.first_axis == x.axis
		&& x.axis != 1;
	if (!*is)
		return true;
	reduction = *attr_int_of(n->op, &n->attr, "reduction");
	rows.axis = rows.first_axis = x.axis - (x.axis > 1);
	for (int k = 0; k < n->nin + n->nout; k++)
		at[k] = k < n->nin ? cp_whole() : rows;
	at[0] = x;
	at[1] = rows;
	/* the divisor, 1 */
	at[n->nin + n->nout - 1] = cp_whole();
	if (reduction)
		at[n->nin].kind = PLACEMENT_PARTIAL;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			cp_place(c, n->out[k], &at[n->nin + k]);
	if (reduction == 1) {
		count = emit_count(c, id);
		if (!count)
			return false;
		n = &c->g->node[id];
		*attr_int_of(n->op, &n->attr, "reduction") = 2;
	}
	return cp_emit_node(c, id, at)
		&& (reduction != 1 || divide_by_count(c, id, count));
}
