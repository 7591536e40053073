/* Maximum flow by pushing excess (Goldberg and Tarjan 1988).
 *
 * method  The source fills its edges; what a node has got too much it pushes
 *         on to nodes that are nearer to the sink.  A node that has none rises.
 *         Distances are measured anew each time rising has cost as much as
 *         that does (Cherkassky and Goldberg 1997).  What cannot reach the sink
 *         stays where it is: the cut is known without its way back.
 * cost    nodes^3 at worst; a few walks over the edges where flow finds an end
 *         after a few nodes, and in long chains
 */
#include "passes/planner/max_flow.h"
#include "ir/base/watch.h"

#include <string.h>

/* More than a cut has whose prices are not all unbounded, and little enough to
 * be added. */
#define EXCESS_MAX ((int64_t)1 << 61)

struct flow *
flow_new(int32_t nodes, int32_t edges, Arena *arena)
{
	struct flow *f = arena_alloc(arena, sizeof *f);
	size_t n = (size_t)nodes;

	f->nnode = nodes;
	f->edge = arena_array(arena, 2 * (size_t)edges + 1, sizeof *f->edge);
	f->first = arena_array(arena, n, sizeof *f->first);
	f->level = arena_array(arena, n, sizeof *f->level);
	f->at = arena_array(arena, n, sizeof *f->at);
	f->queue = arena_array(arena, n, sizeof *f->queue);
	f->excess = arena_array(arena, n, sizeof *f->excess);
	memset(f->first, -1, n * sizeof *f->first);
	return f;
}

int32_t
flow_edge(struct flow *f, int32_t from, int32_t to)
{
	int32_t e = f->nedge;

	f->edge[e] = (struct flow_edge){ to, f->first[from], 0 };
	f->first[from] = e;
	f->edge[e + 1] = (struct flow_edge){ from, f->first[to], 0 };
	f->first[to] = e + 1;
	f->nedge += 2;
	return e;
}

void
flow_clear(struct flow *f)
{
	for (int32_t e = 0; e < f->nedge; e++)
		f->edge[e].left = 0;
	memset(f->excess, 0, (size_t)f->nnode * sizeof *f->excess);
}

void
flow_capacity(struct flow *f, int32_t e, int64_t capacity)
{
	f->edge[e].left = capacity;
}

/* ---- distances ---- */

/* Number the nodes behind the n first of the queue by distance, along edges
 * with room: towards them, or away from them. */
static void
measure(struct flow *f, int32_t n, bool towards)
{
	for (int32_t i = 0; i < n; i++) {
		int32_t v = f->queue[i];

		for (int32_t e = f->first[v]; e >= 0; e = f->edge[e].next) {
			int32_t w = f->edge[e].to;

			if (f->edge[towards ? e ^ 1 : e].left > 0
			    && f->level[w] < 0) {
				f->level[w] = f->level[v] + 1;
				f->queue[n++] = w;
			}
		}
	}
}

/* Nodes from which the sink cannot be reached get -1. */
static void
measure_to_sink(struct flow *f)
{
	memset(f->level, -1, (size_t)f->nnode * sizeof *f->level);
	f->level[FLOW_SINK] = 0;
	f->queue[0] = FLOW_SINK;
	measure(f, 1, true);
	memcpy(f->at, f->first, (size_t)f->nnode * sizeof *f->at);
}

/* Nodes that neither the source nor excess can reach get -1. */
static void
measure_from_source(struct flow *f)
{
	int32_t n = 0;

	f->excess[FLOW_SOURCE] = 1;
	f->excess[FLOW_SINK] = 0;
	for (int32_t v = 0; v < f->nnode; v++) {
		f->level[v] = f->excess[v] > 0 ? 0 : -1;
		if (f->excess[v] > 0)
			f->queue[n++] = v;
	}
	measure(f, n, false);
}

/* ---- flow ---- */

/* Nodes with excess, first in, first out. */
struct waiting {
	int32_t first, n;
};

static void
enqueue(struct flow *f, struct waiting *q, int32_t v)
{
	int32_t last = q->first + q->n++;

	f->queue[last < f->nnode ? last : last - f->nnode] = v;
}

static int32_t
dequeue(struct flow *f, struct waiting *q)
{
	int32_t v = f->queue[q->first++];

	if (q->first == f->nnode)
		q->first = 0;
	q->n--;
	return v;
}

static void
push(struct flow *f, int32_t e, int64_t amount)
{
	int64_t *excess = &f->excess[f->edge[e].to];

	f->edge[e].left -= amount;
	f->edge[e ^ 1].left += amount;
	*excess += amount;
	if (*excess > EXCESS_MAX)
		*excess = EXCESS_MAX;
}

static void
fill_source_edges(struct flow *f)
{
	for (int32_t e = f->first[FLOW_SOURCE]; e >= 0; e = f->edge[e].next)
		push(f, e, f->edge[e].left);
}

/* Push on what a node has, until it has none or has to rise. */
static void
push_on(struct flow *f, struct waiting *q, int32_t v)
{
	for (; f->at[v] >= 0; f->at[v] = f->edge[f->at[v]].next) {
		const struct flow_edge *e = &f->edge[f->at[v]];
		int64_t amount = f->excess[v];

		if (e->left <= 0 || f->level[e->to] != f->level[v] - 1)
			continue;
		if (amount > e->left)
			amount = e->left;
		if (e->to != FLOW_SINK && f->excess[e->to] == 0)
			enqueue(f, q, e->to);
		f->excess[v] -= amount;
		push(f, f->at[v], amount);
		if (f->excess[v] == 0)
			return;
	}
}

/* To just above the lowest node that it can push to; returns how many edges
 * were looked at. */
static int32_t
rise(struct flow *f, int32_t v)
{
	int32_t n = 0, low = -1;

	for (int32_t e = f->first[v]; e >= 0; e = f->edge[e].next, n++) {
		int32_t level = f->level[f->edge[e].to];

		if (f->edge[e].left > 0 && level >= 0
		    && (low < 0 || level < low))
			low = level;
	}
	f->level[v] = low < 0 || low >= f->nnode ? -1 : low + 1;
	f->at[v] = f->first[v];
	return n;
}

/* What has excess and can reach the sink. */
static struct waiting
find_waiting(struct flow *f)
{
	struct waiting q = { 0, 0 };

	for (int32_t v = 0; v < f->nnode; v++)
		if (f->excess[v] > 0 && f->level[v] > 0)
			enqueue(f, &q, v);
	return q;
}

/* Until none waits, or it is time to measure again. */
static void
push_all(struct flow *f, struct waiting *q)
{
	int32_t looked_at = 0;

	while (q->n > 0 && looked_at < f->nedge) {
		int32_t v = dequeue(f, q);

		push_on(f, q, v);
		if (f->excess[v] == 0)
			continue;
		looked_at += rise(f, v);
		if (f->level[v] >= 0)
			enqueue(f, q, v);
	}
}

bool
flow_run(struct flow *f, struct watch *watch)
{
	struct waiting q;

	fill_source_edges(f);
	for (;;) {
		measure_to_sink(f);
		q = find_waiting(f);
		if (q.n == 0)
			break;
		if (watch_over(watch))
			return false;
		push_all(f, &q);
	}
	measure_from_source(f);
	return true;
}
