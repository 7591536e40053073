/* Two lanes: steps compute one after the other, and transfers go over one link
 * in the order in which they begin, each from where it begins to where it ends.
 * A step after the end of a transfer waits for it.
 */
#ifndef PASSES_COST_LANES_H
#define PASSES_COST_LANES_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct lane_step {
	double sec;
	bool sends;                     /* a transfer begins here; it ends */
	int64_t end;                    /* behind this step, itself or a later
	                                 * one */
};

/* Seconds until all steps and transfers are over: those of computation, and of
 * transfers what shows. */
double lanes_seconds(const struct lane_step *, int64_t n, Arena *scratch);

#endif
