/* Values of a planned graph in host memory between their uses. */
#ifndef PASSES_OFFLOAD_VALUES_H
#define PASSES_OFFLOAD_VALUES_H

#include "passes/pass.h"

struct offload_request {
	int64_t arena;                  /* bytes that the arena may have; 0: no
	                                 * limit */
	int64_t host;                   /* bytes of host memory; 0: no limit */
	const struct name_list *values; /* those that are offloaded anyhow, by
	                                 * globs */
};

/* Offload values of a planned graph, whose results do not lie over operands yet,
 * until no node needs more than that.  Each is offloaded behind the last node
 * that uses it before its longest pause, and fetched before the next one that
 * does.  Those with the longest pauses are taken first: their transfers have
 * most time, and the room that they free is free for longest (Belady 1966).
 * False: that is not enough; the graph may have changed. */
bool offload_values(Graph *, const struct offload_request *, Arena *scratch);

#endif
