/* Values of a planned graph in host memory between their uses. */
#ifndef PASSES_OFFLOAD_VALUES_H
#define PASSES_OFFLOAD_VALUES_H

#include "passes/pass.h"

struct offload_request {
	int64_t arena;                  /* bytes that the arena may have; 0: no
	                                 * limit */
	int64_t host;                   /* bytes of host memory that values may
	                                 * have */
	const struct name_list *values; /* globs of those that are offloaded
	                                 * even if all fits */
};

/* Bytes of host memory that states and master weights leave to values of this
 * graph. */
int64_t offload_host_room(const struct options *, const Graph *);
/* Offload values of a planned graph, before results are laid over operands,
 * until no node needs more than that.  A value is offloaded behind the last
 * node that uses it before its longest pause, and fetched before the next one.
 * Values with the longest pauses come first: their transfers have most time,
 * and they free their bytes for longest (Belady 1966).  False: with all of them
 * offloaded the graph still needs more; it is as it was. */
bool offload_values(Graph *, const struct offload_request *, Arena *scratch);

#endif
