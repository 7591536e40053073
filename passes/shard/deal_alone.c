/* Whether the graph of a batch of one sample adds up over samples where that of
 * a batch of two does.
 */
#include "passes/shard/deal.h"

#include <string.h>

/* Whether n adds a value up over replicas, or makes a mean a summand. */
static bool
adds_up(const Graph *g, const Node *n)
{
	if (n->op == OP_ALL_REDUCE)
		return true;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k]
		    && g->node[g->val[n->in[k]].def].op == OP_SHARE)
			return true;
	return false;
}

/* The next such node from *id on, which goes behind it; NULL: none. */
static const Node *
next_sum(const Graph *g, NodeId *id)
{
	while (*id < g->nnode) {
		const Node *n = &g->node[(*id)++];

		if (adds_up(g, n))
			return n;
	}
	return NULL;
}

static const char *
label_of(const Graph *g, const Node *n)
{
	const char *label = n ? node_label(g, n) : NULL;

	return label ? label : "";
}

static bool
agree(Pass *p, const Graph *one, const Graph *two, const char **why)
{
	NodeId i = 1, j = 1;

	for (;;) {
		const Node *a = next_sum(one, &i), *b = next_sum(two, &j);
		const Graph *g = b ? two : one;
		const Node *n = b ? b : a;

		if (!n)
			return true;
		if (a && b && !strcmp(label_of(one, a), label_of(two, b)))
			continue;
		*why = arena_printf(p->keep, "node '%s' (%s) sums over "
		                    "samples, of which a batch of one has no "
		                    "trace; use batches of two or more",
		                    *label_of(g, n) ? label_of(g, n)
		                    : g->val[n->out[0]].name,
		                    node_type(g, n));
		return false;
	}
}

bool
deal_agrees(Pass *p, const Graph *one, const Graph *two, const char **why)
{
	const char *unused = NULL;
	Graph *a = deal_copy(p, one, one->loss, DP_SUMS, &unused), *b = NULL;
	bool is;

	/* of a graph that cannot be dealt anyway pass deal says why */
	if (a)
		b = deal_copy(p, two, two->loss, DP_SUMS, why);
	is = a && b && agree(p, a, b, why);
	graph_free(a);
	graph_free(b);
	return is;
}
