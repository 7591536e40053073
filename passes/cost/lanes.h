/* Lanes: steps compute one after the other, and transfers go over the links of
 * a node or over the network between nodes, on each in the order in which they
 * begin.  A step after the end of a transfer waits for it.
 */
#ifndef PASSES_COST_LANES_H
#define PASSES_COST_LANES_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum lane { LANE_COMPUTE, LANE_LINK, LANE_NETWORK, LANES };

static inline enum lane
lane_of(double sent, bool network)
{
	return sent <= 0 ? LANE_COMPUTE : network ? LANE_NETWORK : LANE_LINK;
}

struct lane_step {
	double sec;
	enum lane lane;
	int64_t end;                    /* step behind which a transfer that
	                                 * begins here ends: this or a later
	                                 * one */
};

/* Seconds until all steps and transfers are over: those of computation, and of
 * transfers what shows. */
double lanes_seconds(const struct lane_step *, int64_t n, Arena *scratch);

#endif
