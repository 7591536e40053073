/* Interleave: the order of the two halves of a batch, of which one computes
 * while the other waits for ranks.
 *
 * what    the order of nodes of a graph with halves
 * method  list scheduling by lanes (lanes.h).  The next node is one that need
 *         not wait, and of those one for the transfer between ranks that needs
 *         the least work before it begins; if no transfer has such a node, the
 *         first one in the order.  A node runs at most WINDOW nodes before the
 *         first that has not run, and one that recomputes REPEAT_WINDOW, so
 *         that results are not kept for long
 */
#include "passes/overlap/overlap.h"
#include "passes/cost/cost.h"
#include "passes/cost/lanes.h"

enum { WINDOW = 128, REPEAT_WINDOW = 32 };

struct item {
	double sec;
	enum lane lane;
	bool awaited;                   /* nothing but the other half hides
	                                 * it */
	bool done;                      /* it has its place */
	double over;                    /* when its results are there */
	uint32_t seen;                  /* by the last search that met it */
};

struct schedule {
	const Graph *g;
	uint32_t *first;                /* [nnode + 1]: by node, where in
	                                 * before[] are those it follows */
	NodeId *before;
	struct item *item;              /* by node */
	uint32_t stamp;
	NodeId oldest;                  /* the first that is not done */
	NodeId end;                     /* of the stretch in which nodes move */
	double now, free[LANES];
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

/* What n overwrites has been read before.  Takes those readers away: what comes
 * later follows n. */
static uint32_t
add_readers(struct schedule *s, struct readers *r, const Node *n, uint32_t at)
{
	for (int k = 0; k < n->nin; k++) {
		ValId o = n->in[k] ? val_owner(s->g, n->in[k]) : 0;

		for (uint32_t i = r->head[o]; i; i = r->next[i - 1])
			s->before[at++] = r->node[i - 1];
		r->head[o] = 0;
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
	/* every operand is one of a definition, and once one of a reader; a
	 * node that repeats another one follows it */
	s->before = arena_array(a, 2 * (size_t)most + g->nnode,
	                        sizeof *s->before);
	FOR_NODES (n, g) {
		s->first[node_id(g, n)] = at;
		for (int k = 0; k < n->nin; k++)
			if (g->val[n->in[k]].def)
				s->before[at++] = g->val[n->in[k]].def;
		if (n->of)
			s->before[at++] = n->of;
		if (writes_memory(n))
			at = add_readers(s, &r, n, at);
		for (int k = 0; k < n->nin; k++) {
			ValId o = n->in[k] ? val_owner(g, n->in[k]) : 0;

			r.node[r.n] = node_id(g, n);
			r.next[r.n] = r.head[o];
			r.head[o] = ++r.n;
		}
	}
	s->first[g->nnode] = at;
}

/* A transfer between the ranks of a group that shares the model. */
static bool
is_awaited(const Node *n)
{
	return op_info[n->op].flags & F_SENDS && node_group(n) == GROUP_RANKS;
}

static void
find_lanes(struct schedule *s)
{
	FOR_NODES (n, s->g) {
		struct cost c = node_cost(s->g, n);
		struct item *item = &s->item[node_id(s->g, n)];

		item->sec = c.sec;
		item->lane = c.lane;
		item->awaited = is_awaited(n);
	}
}

/* ---- the next node ---- */

/* Whether all that the node follows has its place, and its own is near. */
static bool
may_run(const struct schedule *s, NodeId id)
{
	if (s->g->node[id].of && id - s->oldest > REPEAT_WINDOW)
		return false;
	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		if (!s->item[s->before[i]].done)
			return false;
	return true;
}

/* When its operands are there. */
static double
start_of(const struct schedule *s, NodeId id)
{
	double start = 0;

	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		if (s->item[s->before[i]].over > start)
			start = s->item[s->before[i]].over;
	return start;
}

static bool
runs_now(const struct schedule *s, NodeId id)
{
	return may_run(s, id) && start_of(s, id) <= s->now;
}

/* Adds what is to run before node id, and takes the first that runs now. */
static void
add_need(struct schedule *s, NodeId id, double *need, NodeId *now)
{
	struct item *item = &s->item[id];

	if (item->done || item->seen == s->stamp)
		return;
	item->seen = s->stamp;
	for (uint32_t i = s->first[id]; i < s->first[id + 1]; i++)
		add_need(s, s->before[i], need, now);
	if (!item->awaited)
		*need += item->sec;
	if ((!*now || id < *now) && runs_now(s, id))
		*now = id;
}

static NodeId
window_end(const struct schedule *s)
{
	return s->end - s->oldest > WINDOW ? s->oldest + WINDOW : s->end;
}

/* The first node for the transfer that begins soonest; 0: none runs now. */
static NodeId
find_for_transfer(struct schedule *s)
{
	NodeId end = window_end(s), found = 0;
	double least = 0;

	for (NodeId id = s->oldest; id < end; id++) {
		double need = 0;
		NodeId now = 0;

		if (s->item[id].done || !s->item[id].awaited)
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
find_first(const struct schedule *s, double *next)
{
	NodeId end = window_end(s);

	*next = 0;
	for (NodeId id = s->oldest; id < end; id++) {
		double start;

		if (s->item[id].done || !may_run(s, id))
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
next_node(struct schedule *s)
{
	for (;;) {
		double next;
		NodeId id = find_for_transfer(s);

		id = id ? id : find_first(s, &next);
		if (id)
			return id;
		s->now = next;
	}
}

/* ---- the order ---- */

static void
run_node(struct schedule *s, NodeId id)
{
	struct item *item = &s->item[id];
	double *free = &s->free[item->lane];

	item->done = true;
	s->order[s->n++] = id;
	if (item->lane == LANE_COMPUTE) {
		s->now += item->sec;
	} else if (item->awaited) {
		*free = (s->now > *free ? s->now : *free) + item->sec;
		item->over = *free;
		return;
	}
	item->over = s->now;            /* others hide its transfer */
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
	s->end = begin + 1;
	while (s->end < s->g->nnode
	       && moves_with(&s->g->node[begin], &s->g->node[s->end]))
		s->end++;
	s->oldest = begin;
	while (s->n < s->end - 1) {
		while (s->item[s->oldest].done)
			s->oldest++;
		run_node(s, next_node(s));
	}
}

const NodeId *
overlap_interleave(const Graph *g, Arena *a)
{
	struct schedule s = { .g = g,
		.item = arena_array(a, g->nnode, sizeof *s.item),
		.order = arena_array(a, g->nnode, sizeof *s.order) };

	find_dependencies(&s, a);
	find_lanes(&s);
	for (NodeId begin = 1; begin < g->nnode; begin = s.end)
		order_stretch(&s, begin);
	return s.order;
}
