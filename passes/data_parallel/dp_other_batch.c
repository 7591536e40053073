/* Check that the graph reduces over samples in the same places as the graph
 * for another batch size.
 */
#include "passes/data_parallel/dp_partition.h"

#include <string.h>

/* Whether n adds a value up over replicas, or makes a mean a summand. */
static bool
is_replica_reduction(const Graph *g, const Node *n)
{
	if (n->op == OP_ALL_REDUCE)
		return true;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k]
		    && g->node[g->val[n->in[k]].def].op == OP_SHARE)
			return true;
	return false;
}

/* The next such node from *id on, which goes after it; NULL: none. */
static const Node *
next_reduction(const Graph *g, NodeId *id)
{
	while (*id < g->nnode) {
		const Node *n = &g->node[(*id)++];

		if (is_replica_reduction(g, n))
			return n;
	}
	return NULL;
}

static bool
same_reductions(Pass *p, const Graph *one, const Graph *two, const char **why)
{
	NodeId i = 1, j = 1;

	for (;;) {
		const Node *a = next_reduction(one, &i),
			   *b = next_reduction(two, &j);
		const Graph *g = b ? two : one;
		const Node *n = b ? b : a;

		if (!n)
			return true;
		if (a && b
		    && !strcmp(node_label(one, a), node_label(two, b)))
			continue;
		*why = arena_printf(p->keep, "node '%s' (%s) sums over "
		                    "samples at one batch size and not at "
		                    "another", node_label(g, n),
		                    node_type(g, n));
		return false;
	}
}

bool
dp_agrees(Pass *p, const Graph *g, const Graph *other_batch, const char **why)
{
	const Val *x = graph_batch_input(other_batch);
	const char *unused = NULL, *is = NULL;
	Graph *a = dp_partition_copy(p, g, g->loss, DP_SUMS, &unused),
	      *b = NULL;
	bool same;

	/* of a graph that has no partition pass replicate says why */
	if (a)
		b = dp_partition_copy(p, other_batch, other_batch->loss,
		                      DP_SUMS, &is);
	same = a && b && same_reductions(p, a, b, &is);
	if (is)
		*why = arena_printf(p->keep, "the model mixes samples at other "
		                    "batch sizes, here %lld: %s",
		                    (long long)x->shape.dim[0], is);
	graph_free(a);
	graph_free(b);
	return same;
}
