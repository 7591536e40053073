/* Rewrite a graph as a candidate plan says: insert the clones.
 *
 * what    clones of nodes in phase recompute where the plan has them; every
 *         reader takes the clone made last before it; loops take in those that
 *         the plan inlines; the node array is the schedule
 * needs   the graph that the schedule's problem was read off, or a clone of it
 * gives   P_PLANNED; Node.of, Val.of
 */
#include "ir/loop.h"
#include "passes/remat_model/remat_model.h"

#include <string.h>

struct graph_rewrite {
	const struct schedule *w;
	Graph *g;
	ValId *copy;                    /* the latest, by value; 0: none */
	int32_t inst;                   /* written so far */
};

/* A first run that comes late reads clones already. */
static ValId
original_value(const struct graph_rewrite *a, ValId v)
{
	return a->g->val[v].of ? a->g->val[v].of : v;
}

/* What stands for the value now. */
static ValId
latest_value(const struct graph_rewrite *a, ValId v)
{
	ValId o = original_value(a, v);

	return a->copy[o] ? a->copy[o] : o;
}

static ValId
copy_val(struct graph_rewrite *a, ValId v)
{
	Graph *g = a->g;
	const char *name = arena_printf(g->arena, "%s.again", g->val[v].name);
	ValId c = val_new(g, V_TEMP, name, g->val[v].dt, g->val[v].shape);
	const Val *from = &g->val[v];
	Val *to = &g->val[c];

	to->onnx = from->onnx;
	to->of = v;
	to->result_index = from->result_index;
	to->placement = from->placement;
	to->shard = from->shard;
	to->laid_out = from->laid_out;
	to->start = from->start;
	memcpy(to->stride, from->stride, sizeof to->stride);
	to->nbytes = from->nbytes;
	to->base = from->base ? latest_value(a, from->base) : 0;
	return c;
}

/* Whether this clone of a node writes value v. */
static bool
copy_writes(const struct graph_rewrite *a, const struct rstep *t, ValId v)
{
	const struct rnode *n = &a->w->r->node[t->node];
	int32_t s = v ? a->w->r->of_val[v] : -1, inst = a->inst;

	if (s < 0 || a->g->val[v].base)
		return s >= 0;
	for (int i = 0; i < n->nwrite; i++) {
		if (!(t->makes >> i & 1))
			continue;
		if (n->write[i] == s)
			return a->w->first[inst] >= 0;
		inst++;
	}
	return false;
}

static NodeId
copy_node(struct graph_rewrite *a, const struct rstep *t)
{
	Graph *g = a->g;
	NodeId id = t->node, c;
	int32_t passing = remat_in_passing(a->w->r, t);
	ValId *in = arena_array(g->arena, (size_t)g->node[id].nin + 1,
	                        sizeof *in);
	Node *n;

	for (int i = 0; i < g->node[id].nin; i++)
		in[i] = latest_value(a, g->node[id].in[i]);
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

		if (copy_writes(a, t, v))
			g->node[c].out[i] = a->copy[v] = copy_val(a, v);
		else if (passing >= 0 && v && !g->val[v].base
		         && a->w->r->of_val[v] == passing)
			g->node[c].out[i] = copy_val(a, v);
		else
			g->node[c].out[i] = 0;
	}
	return c;
}

/* A first run reads the clones, and its views lie in them. */
static void
redirect_reads(struct graph_rewrite *a, Node *n)
{
	for (int i = 0; i < n->nin; i++)
		n->in[i] = latest_value(a, n->in[i]);
	for (int i = 0; i < n->nout; i++) {
		Val *v = &a->g->val[n->out[i]];

		if (n->out[i] && v->base)
			v->base = latest_value(a, v->base);
	}
}

void
schedule_apply(const struct schedule *w, Graph *g)
{
	struct graph_rewrite a = { w, g, NULL, 0 };
	NodeId *order;
	uint32_t n = 0;

	a.copy = arena_array(w->arena, g->nval, sizeof *a.copy);
	order = arena_array(w->arena, (size_t)w->nstep + 1, sizeof *order);
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rstep *t = &w->step[k];

		if (t->inlined)
			continue;
		if (t->clone) {
			order[n++] = copy_node(&a, t);
		} else {
			for (int32_t i = k; i > 0 && w->step[i - 1].inlined;
			     i--)
				inline_loop(g, t->node, w->step[i - 1].node);
			redirect_reads(&a, &g->node[t->node]);
			order[n++] = t->node;
		}
		for (int i = 0; i < w->r->node[t->node].nwrite; i++)
			a.inst += !t->clone || t->makes >> i & 1;
	}
	graph_reorder(g, order, n);
}
