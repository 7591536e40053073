/* Numbers that depend on the batch size (op extent): in pass replicate a
 * partial sum of each replica, after it a constant.
 */
#include "passes/data_parallel/dp_partition.h"
#include "passes/eval/eval.h"
#include "ir/element.h"

bool
dp_partition_extent(struct dp_partition *d, NodeId id)
{
	const Node *n = &d->g->node[id];

	if (!n->attr.EXTENT.known)
		return dp_refuse(d, id, "its value depends on the batch "
		                 "size, but ckc cannot derive how: some "
		                 "shapes in the file allow no other batch "
		                 "size");
	d->g->val[n->out[0]].placement =
		(Placement){ .kind = PLACEMENT_PARTIAL };
	dp_order_node(d, id);
	return true;
}

/* ---- constants ---- */

/* The value in memory of the graph. */
static void
set_const_data(Graph *g, ValId v, double x)
{
	void *data = arena_alloc(g->arena, 8);

	element_set_float(g->val[v].dt, data, 0, x);
	g->val[v].data = data;
	g->val[v].kind = V_CONST;
	g->val[v].def = 0;
}

/* A constant in the node's place, or outside of it: outputs have a node that
 * writes them.  Whether the node stays. */
static bool
replace_by_const(Graph *g, NodeId id)
{
	double x = g->node[id].attr.EXTENT.value;
	ValId y = g->node[id].out[0], c;
	Node *n;

	if (!g->val[y].output) {
		set_const_data(g, y, x);
		return false;
	}
	c = val_new(g, V_CONST, NULL, g->val[y].dt, g->val[y].shape);
	set_const_data(g, c, x);
	n = &g->node[id];
	n->op = OP_COPY;
	n->attr = attr_default(OP_COPY);
	n->nin = 1;
	n->in = arena_copy(g->arena, &c, sizeof c);
	return true;
}

/* A node of one element that constants decide. */
static bool
is_foldable_node(const Graph *g, const Node *n, const bool *follows)
{
	bool any = false;

	for (int k = 0; k < n->nin; k++) {
		if (!n->in[k] || !val_is_const(&g->val[n->in[k]]))
			return false;
		any |= follows[n->in[k]];
	}
	return any && n->nout == 1 && eval_knows(n->op)
		&& !g->val[n->out[0]].output
		&& val_nelem(&g->val[n->out[0]]) == 1;
}

bool
dp_fold_extents(Pass *p, Graph *g)
{
	NodeId *order = arena_array(p->scratch, g->nnode, sizeof *order);
	/* by value that there is: it follows from an extent */
	bool *follows = arena_array(p->scratch, g->nval, sizeof *follows);
	uint32_t n = 0;

	if (!graph_has_op(g, OP_EXTENT))
		return true;
	for (NodeId id = 1; id < g->nnode; id++) {
		ValId y = g->node[id].out[0];
		enum eval_status is = EVAL_SKIP;

		if (g->node[id].op == OP_EXTENT)
			is = replace_by_const(g, id) ? EVAL_SKIP : EVAL_DONE;
		else if (is_foldable_node(g, &g->node[id], follows))
			is = eval_node(p, g, &g->node[id], g->arena);
		if (is == EVAL_FAIL)
			return false;
		follows[y] |= is == EVAL_DONE;
		if (is != EVAL_DONE)
			order[n++] = id;
	}
	graph_reorder(g, order, n);
	return true;
}
