/* Lanes (enum lane): each carries one transfer after the other, in the order in
 * which they begin.  A step after the end of a transfer waits for it.
 */
#ifndef PASSES_COST_LANES_H
#define PASSES_COST_LANES_H

#include "ir/plan.h"

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
/* Of a plan's step; micro: of a micro-batch that is not the last. */
double lanes_of_plan(const Plan *, bool micro, Arena *scratch);

#endif
