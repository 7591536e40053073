/* Settle: move updates after the last reader of the values that they
 * overwrite, because recomputation runs forward nodes again.
 */
#include "passes/grad/grad.h"

/* By value: the last node that reads it, or a forward value that takes
 * running its readers again, updates aside; before that node is done a
 * parameter may not be overwritten: see optim.c. */
static NodeId *
last_needs(const Graph *g, Arena *scratch)
{
	NodeId *last = arena_array(scratch, g->nval, sizeof *last);

	for (NodeId i = g->nnode - 1; i > 0; i--) {
		const Node *n = &g->node[i];
		NodeId to = i;

		if (n->phase == PH_UPDATE)
			continue;
		for (int k = 0; k < n->nout && n->phase == PH_FORWARD; k++)
			if (n->out[k] && last[n->out[k]] > to)
				to = last[n->out[k]];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && last[n->in[k]] < to)
				last[n->in[k]] = to;
	}
	return last;
}

/* The update that node i goes with: what makes a state of an update's result,
 * as an average, follows that update. */
static const Node *
update_of(const Graph *g, NodeId i)
{
	const Node *n = &g->node[i];
	const Node *made = n->nin > 1 ? &g->node[g->val[n->in[1]].def] : n;

	return op_info[made->op].flags & F_UPDATE
	       && g->val[n->in[0]].kind == V_STATE ? made : n;
}

void
settle_updates(Graph *g, Arena *scratch)
{
	NodeId *last = last_needs(g, scratch);
	NodeId *order = arena_array(scratch, g->nnode, sizeof *order);
	/* lists of updates by the node that they go behind; who is in one */
	NodeId *first = arena_array(scratch, g->nnode, sizeof *first);
	NodeId *next = arena_array(scratch, g->nnode, sizeof *next);
	bool *moves = arena_array(scratch, g->nnode, sizeof *moves);
	uint32_t n = 0;

	for (NodeId i = g->nnode - 1; i > 0; i--) {
		const Node *u = update_of(g, i);
		NodeId need;

		if (!(op_info[u->op].flags & F_WRITES)
		    || g->val[u->in[0]].kind != V_PARAM)
			continue;
		need = last[u->in[0]];
		if (op_info[u->op].flags & F_COPY
		    && u->nin == op_info[u->op].max
		    && last[u->in[u->nin - 1]] > need)
			need = last[u->in[u->nin - 1]];
		moves[i] = need > i;
		if (!moves[i])
			continue;
		next[i] = first[need];
		first[need] = i;
	}
	for (NodeId i = 1; i < g->nnode; i++) {
		if (!moves[i])
			order[n++] = i;
		for (NodeId j = first[i]; j; j = next[j])
			order[n++] = j;
	}
	graph_reorder(g, order, n);
}

bool
pass_settle(Pass *p, Graph *g)
{
	settle_updates(g, p->scratch);
	return true;
}
