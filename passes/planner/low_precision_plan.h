/* Plans that keep in 16 bits what backward reads: --save-dtype. */
#ifndef PASSES_PLANNER_LOW_PRECISION_PLAN_H
#define PASSES_PLANNER_LOW_PRECISION_PLAN_H

#include "passes/planner/choose.h"
#include "passes/low_precision/low_precision.h"

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
bool low_precision_best(Pass *, const struct plan_source *, int64_t arena,
                        double below, struct low_precision_plan *);

#endif
