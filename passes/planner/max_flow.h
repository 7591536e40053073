/* Maximum flows, and the cuts that are as large. */
#ifndef PASSES_PLANNER_MAX_FLOW_H
#define PASSES_PLANNER_MAX_FLOW_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct watch;

enum { FLOW_SOURCE, FLOW_SINK, FLOW_NODES };    /* the first nodes */

#define FLOW_UNBOUNDED ((int64_t)1 << 56)

struct flow_edge {
	int32_t to, next;               /* next edge of the same end; -1 */
	int64_t left;                   /* capacity less flow */
};

/* Nodes are numbers; edge e ^ 1 is edge e the other way. */
struct flow {
	int32_t nnode, nedge;
	int32_t *first;                 /* edge, by node; -1 */
	struct flow_edge *edge;
	int32_t *level;                 /* by node, after a run: -1: on the
	                                 * sink's side of the cut */
	int64_t *excess;                /* by node: what flows in, less what
	                                 * flows out */
	int32_t *at, *queue;            /* scratch, by node */
};

/* No edges yet, `edges` of them at most. */
struct flow *flow_new(int32_t nodes, int32_t edges, Arena *);
/* Returns the number of an edge without capacity. */
int32_t flow_edge(struct flow *, int32_t from, int32_t to);
/* Forget all flow and all capacities. */
void flow_clear(struct flow *);
/* Of an edge that nothing has flowed along. */
void flow_capacity(struct flow *, int32_t edge, int64_t capacity);
/* Send as much as there is room for; `level` tells the sides of the least cut
 * that is nearest to the source.  False: the time is over. */
bool flow_run(struct flow *, struct watch *);

#endif
