/* Maximum flow by blocking flows (Dinic 1970).
 *
 * cost    nodes^2 edges at worst; the graphs of remat_cut.c, where flow finds
 *         an end after a few nodes, take a few dozen walks over the edges
 */
#include "passes/planner/max_flow.h"
#include "ir/base/watch.h"

#include <string.h>

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
}

void
flow_capacity(struct flow *f, int32_t e, int64_t capacity)
{
	f->edge[e].left = capacity;
}

/* Distance from the source by edges with room; whether the sink is reached. */
static bool
find_levels(struct flow *f)
{
	int32_t n = 0;

	memset(f->level, -1, (size_t)f->nnode * sizeof *f->level);
	f->level[FLOW_SOURCE] = 0;
	f->queue[n++] = FLOW_SOURCE;
	for (int32_t i = 0; i < n; i++) {
		int32_t v = f->queue[i];

		for (int32_t e = f->first[v]; e >= 0; e = f->edge[e].next) {
			int32_t to = f->edge[e].to;

			if (f->edge[e].left > 0 && f->level[to] < 0) {
				f->level[to] = f->level[v] + 1;
				f->queue[n++] = to;
			}
		}
	}
	return f->level[FLOW_SINK] >= 0;
}

/* Send what a path of n edges has room for; returns how many of its edges come
 * before the first that is full now. */
static int32_t
send_along(struct flow *f, const int32_t *path, int32_t n)
{
	int64_t most = INT64_MAX;
	int32_t full = 0;

	for (int32_t i = n; i-- > 0;)
		if (f->edge[path[i]].left <= most) {
			most = f->edge[path[i]].left;
			full = i;
		}
	for (int32_t i = 0; i < n; i++) {
		f->edge[path[i]].left -= most;
		f->edge[path[i] ^ 1].left += most;
	}
	return full;
}

/* The next edge of a shortest path; -1: a dead end. */
static int32_t
next_edge(const struct flow *f, int32_t v)
{
	for (int32_t e = f->at[v]; e >= 0; e = f->edge[e].next)
		if (f->edge[e].left > 0
		    && f->level[f->edge[e].to] == f->level[v] + 1)
			return e;
	return -1;
}

/* Fill all shortest paths. */
static void
block_flow(struct flow *f)
{
	int32_t *path = f->queue, n = 0;

	memcpy(f->at, f->first, (size_t)f->nnode * sizeof *f->at);
	for (;;) {
		int32_t v = n ? f->edge[path[n - 1]].to : FLOW_SOURCE;

		if (v == FLOW_SINK) {
			n = send_along(f, path, n);
			continue;
		}
		f->at[v] = next_edge(f, v);
		if (f->at[v] >= 0) {
			path[n++] = f->at[v];
		} else if (n-- > 0) {
			int32_t from = f->edge[path[n] ^ 1].to;

			f->at[from] = f->edge[path[n]].next;
		} else {
			return;
		}
	}
}

bool
flow_run(struct flow *f, struct watch *watch)
{
	while (find_levels(f)) {
		if (watch_over(watch))
			return false;
		block_flow(f);
	}
	return true;
}
