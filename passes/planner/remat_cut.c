/* Keep or recompute as a least cut: the network, see remat_cut.h. */
#include "passes/planner/remat_cut.h"

#include <string.h>

/* ---- nodes of the network ---- */

static int32_t
storage_node(int32_t s)
{
	return FLOW_NODES + s;
}

static int32_t
repeat_node(const struct cut_net *c, NodeId n)
{
	return FLOW_NODES + c->r->nstore + (int32_t)n;
}

/* ---- uses ---- */

static void
find_uses(struct cut_net *c)
{
	const struct remat *r = c->r;

	for (NodeId i = 1; i < r->nnode; i++) {
		const struct rnode *n = &r->node[i];

		for (int k = 0; k < n->nwrite && !n->backward; k++)
			c->end_forward[n->write[k]] = i;
		for (int k = 0; k < n->nread; k++) {
			int32_t s = n->read[k];

			if (!n->backward) {
				c->end_forward[s] = i;
				continue;
			}
			c->last[s] = i;
			if (!c->first[s])
				c->first[s] = i;
		}
	}
}

static bool
is_free(const struct cut_net *c, int32_t s)
{
	return c->r->store[s].candidate && c->constraint[s] != 'k';
}

/* ---- edges ---- */

static void
add_storage_edges(struct cut_net *c, int32_t s)
{
	c->of[s].read = flow_edge(c->flow, FLOW_SOURCE, storage_node(s));
	c->of[s].need = flow_edge(c->flow, storage_node(s), FLOW_SINK);
	c->of[s].keep = flow_edge(c->flow, storage_node(s),
	                          repeat_node(c, c->r->store[s].def));
}

/* A node that makes something free. */
static void
add_node_edges(struct cut_net *c, NodeId i)
{
	const struct rnode *n = &c->r->node[i];

	c->again[i] = flow_edge(c->flow, repeat_node(c, i), FLOW_SINK);
	for (int k = 0; k < n->nread; k++)
		if (is_free(c, n->read[k]))
			flow_edge(c->flow, repeat_node(c, i),
			          storage_node(n->read[k]));
}

static bool
makes_free(const struct cut_net *c, NodeId i)
{
	const struct rnode *n = &c->r->node[i];

	for (int k = 0; k < n->nwrite; k++)
		if (is_free(c, n->write[k]))
			return true;
	return false;
}

struct cut_net *
cut_net_new(const struct remat *r, const uint8_t *constraint, Arena *arena)
{
	struct cut_net *c = arena_alloc(arena, sizeof *c);
	size_t stores = (size_t)r->nstore + 1, nodes = r->nnode;
	int32_t edges = 3 * r->nstore + (int32_t)r->nnode;

	c->r = r;
	c->constraint = constraint;
	c->arena = arena;
	c->of = arena_array(arena, stores, sizeof *c->of);
	memset(c->of, -1, stores * sizeof *c->of);
	c->again = arena_array(arena, nodes, sizeof *c->again);
	memset(c->again, -1, nodes * sizeof *c->again);
	c->end_forward = arena_array(arena, stores, sizeof *c->end_forward);
	c->first = arena_array(arena, stores, sizeof *c->first);
	c->last = arena_array(arena, stores, sizeof *c->last);
	for (NodeId i = 1; i < r->nnode; i++)
		edges += r->node[i].nread;
	c->flow = flow_new(FLOW_NODES + r->nstore + (int32_t)r->nnode, edges,
	                   arena);
	find_uses(c);
	for (int32_t s = 0; s < r->nstore; s++)
		if (is_free(c, s))
			add_storage_edges(c, s);
	for (NodeId i = 1; i < r->nnode; i++)
		if (makes_free(c, i))
			add_node_edges(c, i);
	return c;
}

/* ---- prices ---- */

void
cut_price(struct cut_net *c, int32_t edge, double units)
{
	flow_capacity(c->flow, edge, units < (double)FLOW_UNBOUNDED
	              ? (int64_t)units : FLOW_UNBOUNDED);
}

void
cut_forget_prices(struct cut_net *c)
{
	const struct remat *r = c->r;

	flow_clear(c->flow);
	for (NodeId i = 1; i < r->nnode; i++) {
		if (c->again[i] < 0)
			continue;
		cut_price(c, c->again[i], cut_again_units(c, i));
		/* its operands' edges follow */
		for (int32_t k = 0, e = c->again[i] + 2;
		     k < r->node[i].nread; k++)
			if (is_free(c, r->node[i].read[k])) {
				flow_capacity(c->flow, e, FLOW_UNBOUNDED);
				e += 2;
			}
	}
}

bool
cut_solve(struct cut_net *c)
{
	return flow_run(c->flow, c->r->watch);
}

/* ---- the solution ---- */

static bool
is_needed(const struct cut_net *c, int32_t s)
{
	return c->flow->level[storage_node(s)] >= 0;
}

bool
cut_runs_again(const struct cut_net *c, NodeId n)
{
	return c->flow->level[repeat_node(c, n)] >= 0;
}

bool
cut_keeps(const struct cut_net *c, int32_t s)
{
	return is_needed(c, s) && !cut_runs_again(c, c->r->store[s].def);
}

void
cut_set(const struct cut_net *c, uint8_t *drop)
{
	remat_keep_all(c->r, c->constraint, drop);
	for (int32_t s = 0; s < c->r->nstore; s++)
		if (cut_is_free(c, s) && is_needed(c, s))
			drop[s] = !cut_keeps(c, s);
}
