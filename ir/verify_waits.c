/* The verifier: collectives that begin at one node and end behind a later one.
 *
 * in      a graph without faults of structure
 * out     faults: what is sent stays as it is, and alive, until the end; what
 *         is received nobody touches before that, a view of it neither
 *
 * Nor does the end of a transfer come behind the first update if its beginning
 * does not: whether a step counts is decided there, over all gradients.  The
 * same holds for the end of a micro-batch.
 */
#include "ir/verify.h"

/* The first node that applies a gradient, and the one that ends what runs once
 * for every micro-batch: nothing but updates follows. */
struct borders {
	NodeId apply, update;
};

static struct borders
find_borders(const Graph *g)
{
	struct borders b = { g->nnode, g->nnode };

	for (NodeId i = g->nnode - 1; i > 0; i--) {
		const Node *n = &g->node[i];

		if (n->phase == PH_UPDATE && b.update == i + 1)
			b.update = i;
		if (op_info[n->op].flags & F_UPDATE)
			b.apply = i;
	}
	return b;
}

static bool
crosses(NodeId id, const Node *n, NodeId border)
{
	return id < border && n->wait >= border;
}

static bool
shares(const Graph *g, ValId v, ValId with)
{
	return v && val_owner(g, v) == val_owner(g, with);
}

/* Node n works between a transfer's beginning and its end. */
static void
check_between(struct verify *c, const Node *n, const Node *from)
{
	const Graph *g = c->g;
	ValId x = from->in[0], y = from->out[0];
	bool view = op_info[n->op].flags & F_VIEW;

	for (int i = 0; i < n->nin + n->nout; i++) {
		bool out = i >= n->nin;
		ValId v = out ? n->out[i - n->nin] : n->in[i];

		if (shares(g, v, y))
			bad(c, n, &g->val[v], "touches what node %u receives "
			    "until node %u has run", node_id(g, from),
			    from->wait);
		else if (out && !view && shares(g, v, x))
			bad(c, n, &g->val[v], "overwrites what node %u sends "
			    "until node %u has run", node_id(g, from),
			    from->wait);
	}
}

void
verify_waits(struct verify *c)
{
	const Graph *g = c->g;
	struct borders b = find_borders(g);

	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		if (!n->wait)
			continue;
		if (!(op_info[n->op].flags & F_SENDS) || n->wait <= id || n->wait >= g->nnode) {
			bad(c, n, NULL, "cannot end behind node %u", n->wait);
			continue;
		}
		if (crosses(id, n, b.apply)
		    || (n->phase != PH_UPDATE && crosses(id, n, b.update)))
			bad(c, n, NULL, "ends behind node %u, after updates "
			    "have begun", n->wait);
		for (NodeId k = id + 1; k <= n->wait; k++)
			check_between(c, &g->node[k], n);
	}
}
