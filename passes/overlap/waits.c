/* Where transfers end: behind the last node before the first that reads what
 * they receive, or overwrites what they send.
 */
#include "passes/overlap/moves.h"

struct transfer_ends {
	const Graph *g;
	const struct overlap_choice *choice;
	NodeId *read;                   /* of an owner's bytes: the first node
	                                 * that does; 0: none */
	NodeId *write;                  /* the next one that overwrites them */
	double *work;                   /* seconds of all nodes up to this one
	                                 * that send nothing */
	NodeId apply, update, backward, weight; /* as the verifier has them */
};

static struct transfer_ends
transfer_ends_new(const Graph *g, const struct overlap_choice *c, Arena *a)
{
	struct transfer_ends e = { .g = g, .choice = c, .apply = g->nnode,
		.update = g->nnode,
		.backward = g->stages ? graph_boundary(g) + 1 : 0,
		.weight = g->stages ? graph_weight_boundary(g) + 1 : 0 };

	e.read = arena_array(a, g->nval, sizeof *e.read);
	e.write = arena_array(a, g->nval, sizeof *e.write);
	e.work = arena_array(a, g->nnode, sizeof *e.work);
	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		e.work[id] = e.work[id - 1]
			+ (is_transfer(n) ? 0 : overlap_cost(c, g, n).sec);
		for (int i = 0; i < n->nin; i++) {
			ValId o = n->in[i] ? val_owner(g, n->in[i]) : 0;

			if (!e.read[o])
				e.read[o] = id;
		}
	}
	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];

		if (n->phase == PH_UPDATE && e.update == id + 1)
			e.update = id;
		if (op_info[n->op].flags & F_UPDATE)
			e.apply = id;
	}
	return e;
}

static NodeId
earlier_node(NodeId a, NodeId b)
{
	return a < b ? a : b;
}

/* The node behind which n may end, or n. */
static NodeId
latest_end(const struct transfer_ends *e, const Node *n)
{
	const Graph *g = e->g;
	NodeId id = node_id(g, n), end = g->nnode;
	ValId y = n->out[0];

	if (!y)
		return id;
	if (e->read[y])
		end = earlier_node(end, e->read[y]);
	if (e->write[val_owner(g, node_sent(n))])
		end = earlier_node(end, e->write[val_owner(g, node_sent(n))]);
	if (id < e->apply)
		end = earlier_node(end, e->apply);
	if (id < e->update && n->phase != PH_UPDATE)
		end = earlier_node(end, e->update);
	if (id < e->backward)
		end = earlier_node(end, e->backward);
	if (id < e->weight)
		end = earlier_node(end, e->weight);
	return e->work[end - 1] > e->work[id]
	       || (end - 1 > id && nodes_may_join(n, n + 1)) ? end - 1 : id;
}

/* Lets n end as late as it may; the seconds that this saves. */
static double
let_wait(const struct transfer_ends *e, Node *n)
{
	NodeId id = node_id(e->g, n), end = latest_end(e, n);
	double work = e->work[end] - e->work[id];
	double all = overlap_cost(e->choice, e->g, n).sec;

	n->wait = end > id ? end : 0;
	return work < all ? work : all;
}

/* Lets the chosen ones end as late as they may; sec: by value, what each then
 * saves, if it is asked for. */
static void
wait_late(struct transfer_ends *e, Graph *g, double *sec)
{
	for (NodeId id = g->nnode - 1; id > 0; id--) {
		Node *n = &g->node[id];

		if (is_transfer(n) && e->choice->chosen[n->out[0]]) {
			double saved = let_wait(e, n);

			if (sec)
				sec[n->out[0]] = saved;
		}
		if (op_info[n->op].flags & F_WRITES)
			for (int i = 0; i < n->nin; i++)
				if (n->in[i])
					e->write[val_owner(g, n->in[i])] = id;
	}
}

/* What is sent stays where it is until the end, so that a transfer that is not
 * over what it sends ends when enough has been done for its message. */
static void
wait_no_longer(const struct transfer_ends *e, Graph *g)
{
	const double TIMES = 2;         /* predictions are not exact */
	double message = 0;

	FOR_NODES (n, g) {
		NodeId id = node_id(g, n), end = id;
		NodeId last = message_last(g, id);

		if (!n->wait)
			continue;
		if (!node_joins(g, id))
			message = node_lane_seconds(g, n,
				overlap_cost(e->choice, g, n));
		while (end < n->wait
		       && e->work[end] < e->work[id] + TIMES * message)
			end++;
		if (n->wait < last)
			n->wait = 0;    /* one of them reads it */
		else if (!(op_info[n->op].flags & F_OVER))
			n->wait = e->work[end] > e->work[id] ? end
				: last > id ? last : 0;
	}
}

/* Sets where the chosen ones end; sec: see wait_late. */
static void
set_waits(Graph *g, const struct overlap_choice *c, double *sec, Arena *a)
{
	struct transfer_ends e = transfer_ends_new(g, c, a);

	wait_late(&e, g, sec);
	wait_no_longer(&e, g);
}

void
overlap_apply(Graph *g, const struct overlap_choice *c, double *sec, Arena *a)
{
	overlap_order(g, c, a);
	set_waits(g, c, sec, a);
}
