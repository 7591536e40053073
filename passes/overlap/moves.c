/* Nodes that move by the work between them. */
#include "passes/overlap/moves.h"

bool
reads_owner(const Graph *g, const Node *n, ValId v)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && val_owner(g, n->in[i]) == val_owner(g, v))
			return true;
	return false;
}

struct reads
reads_of(const Graph *g, Arena *a)
{
	struct reads r = { arena_array(a, g->nval, sizeof *r.first),
		arena_array(a, g->nval, sizeof *r.count) };

	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++) {
			if (!r.first[n->in[i]])
				r.first[n->in[i]] = node_id(g, n);
			r.count[n->in[i]]++;
		}
	return r;
}

struct moves
moves_new(const Graph *g, const struct overlap_choice *c, Arena *a)
{
	struct moves m = { g,
		arena_array(a, (size_t)g->nnode + 1, sizeof *m.work),
		arena_array(a, g->nnode, sizeof *m.to) };

	FOR_NODES (n, g)
		m.work[node_id(g, n) + 1] = m.work[node_id(g, n)]
			+ (has_flag(n, F_SENDS) ? 0
			   : overlap_cost(c, g, n).sec);
	return m;
}

void
moves_apply(const struct moves *m, Graph *g, Arena *a)
{
	NodeId end = g->nnode;
	NodeId *order = arena_array(a, end, sizeof *order);
	NodeId *next = arena_array(a, end, sizeof *next);
	NodeId *first = arena_array(a, (size_t)end + 1, sizeof *first);
	uint32_t n = 0;

	for (int sends = 1; sends >= 0; sends--)
		for (NodeId id = end - 1; id > 0; id--)
			if (m->to[id]
			    && has_flag(&g->node[id], F_SENDS) == sends) {
				next[id] = first[m->to[id]];
				first[m->to[id]] = id;
			}
	for (NodeId id = 1; id <= end; id++) {
		for (NodeId k = first[id]; k; k = next[k])
			order[n++] = k;
		if (id < end && !m->to[id])
			order[n++] = id;
	}
	graph_reorder(g, order, n);
}
