/* Plans that keep in 16 bits what backward reads: --save-dtype. */
#ifndef PASSES_PLANNER_LOW_PRECISION_PLAN_H
#define PASSES_PLANNER_LOW_PRECISION_PLAN_H

#include "passes/planner/choose.h"
#include "passes/low_precision/low_precision.h"

enum { PLAN_GRID = 12 };

/* Plans from keep-everything down to the least.  They are the same for every
 * budget if the grid is made before other plans are looked for. */
struct plan_grid {
	struct known_plan plan[PLAN_GRID + 1];
	int n;
};

void
low_precision_grid(struct plan_grid *, const struct remat *,
                   struct plan_selector *, const uint8_t *constraint);

struct low_precision_plan {
	struct known_plan plan;         /* keeps its values in 32 bits */
	struct low_precision_request request;   /* values of it to round */
	double sec;                     /* seconds of a step above
	                                 * keep-everything */
	int64_t least;                  /* arena of the smallest plan looked at;
	                                 * INT64_MAX: none was */
};

/* The fastest plan within that arena that takes less than `below` seconds above
 * keep-everything; false: none is known.  If `below` is infinite, every plan is
 * looked at. */
bool
low_precision_best(Pass *, const Graph *, const struct remat *,
                   struct plan_grid *, const uint8_t *constraint,
                   int64_t arena, double below, struct low_precision_plan *);

#endif
