/* Rewrite a graph as a candidate plan says: insert the copies.
 *
 * what    copies of nodes in phase recompute just before their first use,
 *         backward nodes read the copies, the node array is the schedule
 * needs   the problem read off this very graph, nothing changed since
 * gives   P_PLANNED; Node.of, Val.of
 */
#include "passes/remat.h"

#include <string.h>

/* The copy of value v; what it lies in was copied before. */
static ValId
copy_val(Graph *g, ValId v, ValId *copy)
{
	const char *name = arena_printf(g->arena, "%s.again", g->val[v].name);
	ValId c = val_new(g, V_TEMP, name, g->val[v].dt, g->val[v].shape);
	const Val *from = &g->val[v];
	Val *to = &g->val[c];

	to->onnx = from->onnx;
	to->of = v;
	to->slot = from->slot;
	to->split = from->split;
	to->laid_out = from->laid_out;
	to->start = from->start;
	memcpy(to->stride, from->stride, sizeof to->stride);
	to->nbytes = from->nbytes;
	to->base = from->base ? copy[from->base] : 0;
	copy[v] = c;
	return c;
}

static NodeId
copy_node(struct remat *r, const uint8_t *drop, Graph *g, NodeId id,
          ValId *copy)
{
	ValId *in = arena_array(g->arena, (size_t)g->node[id].nin + 1,
	                        sizeof *in);
	Node *n;
	NodeId c;

	for (int i = 0; i < g->node[id].nin; i++) {
		in[i] = g->node[id].in[i];
		if (copy[in[i]])
			in[i] = copy[in[i]];
	}
	n = node_new(g, g->node[id].op, g->node[id].nin, in,
	             g->node[id].nout, id);
	c = node_id(g, n);
	n->phase = PH_RECOMPUTE;
	n->of = id;
	n->attr = g->node[id].attr;
	n->body = g->node[id].body;
	n->workspace = g->node[id].workspace;
	for (int i = 0; i < g->node[id].nout; i++) {
		ValId v = g->node[id].out[i];
		int32_t s = v ? r->of_val[v] : -1;
		bool view = v && g->val[v].base;

		g->node[c].out[i] = s >= 0 && drop[s]
			&& (view || r->last[s + r->nstore] >= 0)
			? copy_val(g, v, copy) : 0;
	}
	return c;
}

/* A node of backward reads copies, and its views lie in them. */
static void
redirect(Graph *g, Node *n, const ValId *copy)
{
	for (int i = 0; i < n->nin; i++)
		if (copy[n->in[i]])
			n->in[i] = copy[n->in[i]];
	for (int i = 0; i < n->nout; i++) {
		Val *v = &g->val[n->out[i]];

		if (n->out[i] && v->base && copy[v->base])
			v->base = copy[v->base];
	}
}

void
remat_apply(struct remat *r, const uint8_t *drop, Graph *g)
{
	ValId *copy = arena_array(r->arena, g->nval, sizeof *copy);
	NodeId *order;

	remat_eval(r, drop);
	order = arena_array(r->arena, (size_t)r->nstep + 1, sizeof *order);
	for (int32_t k = 0; k < r->nstep; k++)
		order[k] = r->step[k].clone
			? copy_node(r, drop, g, r->step[k].node, copy)
			: r->step[k].node;
	for (int32_t k = 0; k < r->nstep; k++)
		if (!r->step[k].clone && r->node[order[k]].backward)
			redirect(g, &g->node[order[k]], copy);
	graph_reorder(g, order, (uint32_t)r->nstep);
}
