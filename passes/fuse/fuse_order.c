/* The order of nodes once units have slots: views, which had none, come right
 * before their first reader. */
#include "passes/fuse/fuse.h"

struct order {
	Graph *g;
	const NodeId *unit;
	bool *placed;
	NodeId *order;
	uint32_t norder;
};

ValId
fuse_root(const Graph *g, ValId v)
{
	NodeId id = g->val[v].def;

	while (id && fuse_is_view(&g->node[id])) {
		v = g->node[id].in[0];
		id = g->val[v].def;
	}
	return v;
}

NodeId
fuse_producer(const Graph *g, ValId v)
{
	return g->val[fuse_root(g, v)].def;
}

static void place_view(struct order *f, NodeId id);

static void
place_node(struct order *f, NodeId id)
{
	Graph *g = f->g;

	for (int k = 0; k < g->node[id].nout; k++)
		if (g->node[id].out[k])
			g->val[g->node[id].out[k]].result_index = k;
	f->placed[id] = true;
	f->order[f->norder++] = id;
}

/* Views that node id reads come right before it. */
static void
place_operands(struct order *f, NodeId id)
{
	const Node *n = &f->g->node[id];

	for (int k = 0; k < n->nin; k++) {
		NodeId from = n->in[k] ? f->g->val[n->in[k]].def : 0;
		if (from && fuse_is_view(&f->g->node[from]))
			place_view(f, from);
	}
}

static void
place_view(struct order *f, NodeId id)
{
	if (f->placed[id])
		return;
	place_operands(f, id);
	place_node(f, id);
}

/* Views whose readers come in a later phase, or that have none. */
static void
flush_views(struct order *f, Phase before)
{
	const Graph *g = f->g;

	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];
		if (f->placed[id] || !fuse_is_view(n) || n->phase >= before)
			continue;
		NodeId from = fuse_producer(g, n->in[0]);
		if (!from || f->placed[f->unit[from]])
			place_view(f, id);
	}
}

NodeId *
fuse_writers(const Graph *g, Arena *scratch)
{
	NodeId *writer = arena_array(scratch, g->nval, sizeof *writer);

	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++)
			if (op_info[n->op].flags & F_WRITES && n->out[k])
				writer[n->in[op_overwrites(n->op, k)]] =
					node_id(g, n);
	return writer;
}

void
fuse_order(Graph *g, const NodeId *unit, const NodeId *slot, Arena *scratch)
{
	size_t n = g->nnode;
	struct order f = { .g = g, .unit = unit,
		.placed = arena_array(scratch, n, sizeof *f.placed),
		.order = arena_array(scratch, n, sizeof *f.order) };
	NodeId *at = arena_array(scratch, n, sizeof *at);
	Phase phase = PH_FORWARD;

	for (NodeId id = 1; id < n; id++)
		if (unit[id] == id && !fuse_is_view(&g->node[id]))
			at[slot[id]] = id;
	for (NodeId i = 1; i < n; i++) {
		if (!at[i])
			continue;
		if (g->node[at[i]].phase > phase) {
			phase = g->node[at[i]].phase;
			flush_views(&f, phase);
		}
		place_operands(&f, at[i]);
		place_node(&f, at[i]);
	}
	flush_views(&f, PH_COUNT);
	graph_reorder(g, f.order, f.norder);
}
