/* Transfers to and from host memory run beside computation, as far as the arena
 * has room.
 *
 * At first each stands where it is needed: a fetch before the reader of its
 * result, an offload behind the last reader of its operand.  The step is then
 * simulated on two lanes, forward for offloads and backward for fetches:
 *
 * - An offload keeps its bytes until its lane has carried it and those before
 *   it.  If the arena has no room for that, the step waits.
 * - Backward in time, a fetch takes its bytes from its reader to where it
 *   begins: where the lane has time for it and for those after it.  If the
 *   arena has no room so early, it begins later, and its reader waits.
 *
 * So the order on a lane is that of the offloads, and that of the readers of
 * what is fetched.
 *
 * needs   the final order of all other nodes
 * gives   begin and end (Node.wait) of F_HOST nodes
 * cost    linear in nodes and transfers in flight
 */
#include "passes/overlap/moves.h"
#include "passes/cost/cost.h"
#include "passes/place/place.h"

struct host_transfer {
	NodeId node;                    /* where it stands at first */
	int64_t bytes;                  /* of device memory */
	double sec;                     /* on its lane */
	double over;                    /* when its lane has carried it */
	NodeId earliest;                /* a fetch begins before this node at
	                                 * the earliest */
};

struct host_lanes {
	const Graph *g;
	int64_t room;                   /* of the arena */
	double margin;                  /* of the lanes' seconds */
	double *sec;                    /* by node: of computation */
	int64_t *live;                  /* by node: bytes of the arena */
	NodeId *phase;                  /* by node: the first of its phase */
	NodeId *begin, *end;            /* by transfer: it begins before this
	                                 * node, and ends behind this one */
	/* transfers in flight, the first one first */
	struct host_transfer *in_flight; /* [first .. last - 1] */
	uint32_t first, last;
	int64_t bytes;                  /* of these */
};

static bool
is_host_transfer(const Node *n)
{
	return has_flag(n, F_HOST);
}

static bool
is_fetch(const Node *n)
{
	return has_flag(n, F_FETCH);
}

static bool
same_phase(const Node *a, const Node *b)
{
	return (a->phase == PH_FORWARD) == (b->phase == PH_FORWARD)
		&& a->count_pass == b->count_pass;
}

static struct host_lanes
host_lanes_new(const Graph *g, Arena *a)
{
	Graph *placed = graph_trial(g);
	struct host_lanes h = { .g = g,
		.sec = arena_array(a, g->nnode, sizeof *h.sec),
		.phase = arena_array(a, g->nnode, sizeof *h.phase),
		.begin = arena_array(a, g->nnode, sizeof *h.begin),
		.end = arena_array(a, g->nnode, sizeof *h.end),
		.in_flight = arena_array(a, g->nnode, sizeof *h.in_flight) };

	inplace_graph(placed, a);
	h.live = place_live_bytes(placed, a);
	graph_free(placed);
	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];

		h.phase[id] = id > 1 && same_phase(n, n - 1)
			? h.phase[id - 1] : id;
		if (!is_host_transfer(n) && !n->wait)
			h.sec[id] = first_cost(g, n).sec;
	}
	return h;
}

/* ---- transfers in flight ---- */

static void
begin_transfer(struct host_lanes *h, NodeId id, double now, ValId device)
{
	const Graph *g = h->g;
	struct host_transfer t = { .node = id,
		.bytes = g->val[val_owner(g, device)].nbytes,
		.sec = h->margin * node_cost(g, &g->node[id]).sec };

	if (h->first < h->last && h->in_flight[h->last - 1].over > now)
		now = h->in_flight[h->last - 1].over;
	t.over = now + t.sec;
	h->bytes += t.bytes;
	h->in_flight[h->last++] = t;
}

static const struct host_transfer *
end_transfer(struct host_lanes *h)
{
	h->bytes -= h->in_flight[h->first].bytes;
	return &h->in_flight[h->first++];
}

static bool
has_no_room(const struct host_lanes *h, NodeId id)
{
	return h->live[id] + h->bytes > h->room;
}

/* ---- forward: offloads ---- */

/* The last node before `id` but for fetches, which move; 0: there is none
 * behind `from`. */
static NodeId
still_node_before(const Graph *g, NodeId id, NodeId from)
{
	while (--id > from)
		if (!is_fetch(&g->node[id]))
			return id;
	return 0;
}

/* The next one in flight ends before node id runs. */
static void
end_offload(struct host_lanes *h, NodeId id, double *now)
{
	const struct host_transfer *t = end_transfer(h);

	h->end[t->node] = still_node_before(h->g, id, t->node);
	if (*now < t->over)
		*now = t->over;
}

/* Whether node id needs the next offload in flight to be over. */
static bool
needs_offload(const struct host_lanes *h, NodeId id)
{
	const Graph *g = h->g;
	const Node *n = &g->node[id];

	if (!is_fetch(n))
		return false;
	for (uint32_t i = h->first; i < h->last; i++)
		if (val_owner(g, g->node[h->in_flight[i].node].out[0])
		    == val_owner(g, n->in[0]))
			return true;
	return false;
}

static void
time_offloads(struct host_lanes *h)
{
	const Graph *g = h->g;
	double now = 0;

	h->first = h->last = 0;
	h->bytes = 0;
	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];

		while (h->first < h->last
		       && (h->in_flight[h->first].over <= now
		           || has_no_room(h, id) || needs_offload(h, id)))
			end_offload(h, id, &now);
		h->live[id] += h->bytes;
		now += h->sec[id];
		if (is_host_transfer(n) && !is_fetch(n))
			begin_transfer(h, id, now, node_sent(n));
	}
	while (h->first < h->last)
		end_offload(h, g->nnode, &now);
}

/* ---- backward: fetches ---- */

/* The first node that fetch n may stand before: of its phase, and behind the
 * end of what offloads its operand. */
static NodeId
earliest_begin(const struct host_lanes *h, const Node *n)
{
	const Graph *g = h->g;
	NodeId def = g->val[n->in[0]].def, phase = h->phase[node_id(g, n)];

	if (def && h->end[def])
		def = h->end[def];
	return def >= phase ? def + 1 : phase;
}

static void
begin_fetch(struct host_lanes *h, NodeId id)
{
	h->begin[end_transfer(h)->node] = id;
}

/* Whether a fetch in flight may not begin before node id. */
static bool
is_too_early(const struct host_lanes *h, NodeId id)
{
	for (uint32_t i = h->first; i < h->last; i++)
		if (h->in_flight[i].earliest > id)
			return true;
	return false;
}

static void
time_fetches(struct host_lanes *h)
{
	const Graph *g = h->g;
	double left = 0;                /* seconds from the next node on */

	h->first = h->last = 0;
	h->bytes = 0;
	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];

		while (h->first < h->last) {
			const struct host_transfer *t = &h->in_flight[h->first];

			if (t->over > left && !has_no_room(h, id)
			    && !is_too_early(h, id))
				break;
			if (left < t->over)
				left = t->over;
			begin_fetch(h, id + 1);
		}
		h->live[id] += h->bytes;
		left += h->sec[id];
		if (!is_fetch(n))
			continue;
		begin_transfer(h, id, left, n->out[0]);
		h->in_flight[h->last - 1].earliest = earliest_begin(h, n);
	}
	while (h->first < h->last)
		begin_fetch(h, 1);
}

/* ---- the graph ---- */

/* A transfer between ranks that ends behind a fetch ends behind what stays. */
static void
keep_end(const Graph *g, Node *n)
{
	NodeId id = node_id(g, n), last = message_last(g, id);

	n->wait = still_node_before(g, n->wait + 1, id);
	if (n->wait < last)
		n->wait = last > id ? last : 0;
}

static void
set_ends(const struct host_lanes *h, Graph *g)
{
	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		if (!is_host_transfer(n)) {
			if (n->wait)
				keep_end(g, n);
			continue;
		}
		/* neighbours in one message stay so */
		while (is_fetch(n) && node_joins(g, h->begin[id]))
			h->begin[id]++;
		n->wait = h->end[id];
		if (!is_fetch(n))
			continue;
		n->wait = still_node_before(g, id, h->begin[id] - 1);
		if (!n->wait)
			h->begin[id] = id;
	}
}

/* Fetches before the nodes where they begin, in their order. */
static void
move_fetches(const struct host_lanes *h, Graph *g, Arena *a)
{
	NodeId *order = arena_array(a, g->nnode, sizeof *order);
	NodeId *next = arena_array(a, g->nnode, sizeof *next);
	NodeId *first = arena_array(a, g->nnode, sizeof *first);
	uint32_t n = 0;

	for (NodeId id = g->nnode - 1; id > 0; id--)
		if (is_fetch(&g->node[id]) && h->begin[id] < id) {
			next[id] = first[h->begin[id]];
			first[h->begin[id]] = id;
		}
	for (NodeId id = 1; id < g->nnode; id++) {
		for (NodeId k = first[id]; k; k = next[k])
			order[n++] = k;
		if (!is_fetch(&g->node[id]) || h->begin[id] == id)
			order[n++] = id;
	}
	graph_reorder(g, order, n);
}

void
overlap_host(Graph *g, int64_t room, double margin, Arena *a)
{
	struct host_lanes h = host_lanes_new(g, a);

	h.room = room;
	h.margin = margin;
	for (NodeId id = 1; id < g->nnode && room <= 0; id++)
		h.room = h.live[id] > h.room ? h.live[id] : h.room;
	time_offloads(&h);
	time_fetches(&h);
	set_ends(&h, g);
	move_fetches(&h, g, a);
}
