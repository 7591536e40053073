/* Interleave: the order of the two halves of a batch, of which one computes
 * while the other waits for ranks.
 *
 * what    the order of nodes of a graph with halves
 * method  list scheduling by lanes (lanes.h).  The next node is one that need
 *         not wait, and of those one for the transfer between ranks that needs
 *         the least work before it begins; if no transfer has such a node, the
 *         first one in the order.  A node runs at most WINDOW nodes later than
 *         in the order, so that what it reads is not kept for long
 */
#include "passes/overlap/overlap.h"
#include "passes/cost/cost.h"
#include "passes/cost/lanes.h"

enum { WINDOW = 128 };

struct schedule {
	const Graph *g;
	uint32_t *first;                /* [nnode + 1]: by node, where in
	                                 * before[] are those it follows */
	NodeId *before;
	double *sec;                    /* by node */
	bool *done;                     /* ... it has its place */
	double *over;                   /* ... when its results are there */
	uint32_t *seen, stamp;          /* ... by the last search that met it */
	NodeId end;                     /* of the stretch in which nodes move */
	double now, lane[LANES];
	NodeId *order;
	uint32_t n;
};

/* ---- what follows what ---- */

static bool
writes_memory(const Node *n)
{
	return op_info[n->op].flags & (F_WRITES | F_UPDATE);
}

/* Nodes that read an owner's memory, as lists. */
struct readers {
	NodeId *node;
	uint32_t *next, *head;          /* index + 1 into node; 0: the end */
	uint32_t n;
};

static uint32_t
count_reads(const Graph *g)
{
	uint32_t n = 0;

	FOR_NODES (x, g)
		n += (uint32_t)x->nin;
	return n;
}

/* What n overwrites has been read before. */
static uint32_t
add_readers(struct schedule *s, const struct readers *r, const Node *n,
            uint32_t at)
{
	for (int k = 0; k < n->nin; k++) {
		uint32_t i = n->in[k] ? r->head[val_owner(s->g, n->in[k])] : 0;

		for (; i; i = r->next[i - 1])
			s->before[at++] = r->node[i - 1];
	}
	return at;
}

static void
find_dependencies(struct schedule *s, Arena *a)
{
	const Graph *g = s->g;
	uint32_t most = count_reads(g), at = 0;
	struct readers r = { arena_array(a, most + 1, sizeof *r.node),
		arena_array(a, most + 1, sizeof *r.next),
		arena_array(a, g->nval, sizeof *r.head), 0 };

	s->first = arena_array(a, (size_t)g->nnode + 1, sizeof *s->first);
	s->before = arena_array(a, 2 * (size_t)most + 1, sizeof *s->before);
	FOR_NODES (n, g) {
		s->first[node_id(g, n)] = at;
		for (int k = 0; k < n->nin; k++)
			if (g->val[n->in[k]].def)
				s->before[at++] = g->val[n->in[k]].def;
		if (writes_memory(n))
			at = add_readers(s, &r, n, at);
		for (int k = 0; k < n->nin; k++) {
			ValId o = n->in[k] ? val_owner(g, n->in[k]) : 0;

			if (writes_memory(n))
				r.head[o] = 0;
			r.node[r.n] = node_id(g, n);
			r.next[r.n] = r.head[o];
			r.head[o] = ++r.n;
		}
	}
	s->first[g->nnode] = at;
}

/* ---- the next node ---- */

/* Whether all that the node follows has its place. */
static bool
may_run(const struct schedule *s, NodeId id)
{
	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		if (!s->done[s->before[i]])
			return false;
	return true;
}

/* When its operands are there. */
static double
start_of(const struct schedule *s, NodeId id)
{
	double start = 0;

	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		if (s->over[s->before[i]] > start)
			start = s->over[s->before[i]];
	return start;
}

static bool
runs_now(const struct schedule *s, NodeId id)
{
	return may_run(s, id) && start_of(s, id) <= s->now;
}

/* A transfer between the ranks of a group that shares the model, which nothing
 * but the other half hides. */
static bool
is_awaited(const struct schedule *s, NodeId id)
{
	const Node *n = &s->g->node[id];
	Attr a = n->attr;
	const int64_t *group = attr_int_of(n->op, &a, "group");

	return op_info[n->op].flags & F_SENDS && !(group && *group);
}

/* Adds what is to run before node id, and takes the first that runs now. */
static void
add_need(struct schedule *s, NodeId id, double *need, NodeId *now)
{
	if (s->done[id] || s->seen[id] == s->stamp)
		return;
	s->seen[id] = s->stamp;
	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		add_need(s, s->before[i], need, now);
	if (!is_awaited(s, id))
		*need += s->sec[id];
	if ((!*now || id < *now) && runs_now(s, id))
		*now = id;
}

static NodeId
last_in_window(const struct schedule *s, NodeId oldest)
{
	return s->end - oldest > WINDOW ? oldest + WINDOW : s->end;
}

/* The first node for the transfer that begins soonest; 0: none runs now. */
static NodeId
find_for_transfer(struct schedule *s, NodeId oldest)
{
	NodeId last = last_in_window(s, oldest), found = 0;
	double least = 0;

	for (NodeId id = oldest; id < last; id++) {
		double need = 0;
		NodeId now = 0;

		if (s->done[id] || !is_awaited(s, id))
			continue;
		s->stamp++;
		add_need(s, id, &need, &now);
		if (now && (!found || need < least)) {
			found = now;
			least = need;
		}
	}
	return found;
}

/* The first node that runs now; 0: none, and then *next is when one does. */
static NodeId
find_first(const struct schedule *s, NodeId oldest, double *next)
{
	NodeId last = last_in_window(s, oldest);

	*next = 0;
	for (NodeId id = oldest; id < last; id++) {
		double start;

		if (s->done[id] || !may_run(s, id))
			continue;
		start = start_of(s, id);
		if (start <= s->now)
			return id;
		if (*next <= 0 || start < *next)
			*next = start;
	}
	return 0;
}

static NodeId
next_node(struct schedule *s, NodeId oldest, NodeId farthest)
{
	for (;;) {
		double next;
		NodeId id = farthest > oldest + WINDOW ? oldest
			: find_for_transfer(s, oldest);

		id = id ? id : find_first(s, oldest, &next);
		if (id)
			return id;
		s->now = next;
	}
}

/* ---- the order ---- */

static void
run_node(struct schedule *s, NodeId id)
{
	const Graph *g = s->g;
	struct cost c = node_cost(g, &g->node[id]);
	double *lane = &s->lane[lane_of(c.sent, c.network)];
	double start = start_of(s, id);

	s->done[id] = true;
	s->order[s->n++] = id;
	s->now = s->now > start ? s->now : start;
	if (lane_of(c.sent, c.network) == LANE_COMPUTE) {
		s->now += c.sec;
		s->over[id] = s->now;
	} else if (is_awaited(s, id)) {
		*lane = (s->now > *lane ? s->now : *lane) + c.sec;
		s->over[id] = *lane;
	} else {
		s->over[id] = s->now;   /* others hide it */
	}
}

/* Nodes stay on their side of the end of forward, and in their count pass. */
static bool
moves_with(const Node *a, const Node *b)
{
	return a->count_pass == b->count_pass && a->phase != PH_UPDATE
		&& b->phase != PH_UPDATE
		&& (a->phase == PH_FORWARD) == (b->phase == PH_FORWARD);
}

static void
order_stretch(struct schedule *s, NodeId begin)
{
	NodeId oldest = begin, farthest = begin;

	while (s->n < s->end - 1) {
		NodeId id;

		while (s->done[oldest])
			oldest++;
		id = next_node(s, oldest, farthest);
		farthest = id > farthest ? id : farthest;
		run_node(s, id);
	}
}

const NodeId *
overlap_interleave(const Graph *g, Arena *a)
{
	struct schedule s = { .g = g,
		.sec = arena_array(a, g->nnode, sizeof *s.sec),
		.done = arena_array(a, g->nnode, sizeof *s.done),
		.over = arena_array(a, g->nnode, sizeof *s.over),
		.seen = arena_array(a, g->nnode, sizeof *s.seen),
		.order = arena_array(a, g->nnode, sizeof *s.order) };

	find_dependencies(&s, a);
	FOR_NODES (n, g)
		s.sec[node_id(g, n)] = node_cost(g, n).sec;
	for (NodeId begin = 1; begin < g->nnode; begin = s.end) {
		s.end = begin + 1;
		while (s.end < g->nnode
		       && moves_with(&g->node[begin], &g->node[s.end]))
			s.end++;
		order_stretch(&s, begin);
	}
	return s.order;
}
