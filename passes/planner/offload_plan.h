/* Offload values: choose the plan of recomputation beside it. */
#ifndef PASSES_PLANNER_OFFLOAD_PLAN_H
#define PASSES_PLANNER_OFFLOAD_PLAN_H

#include "passes/offload/values.h"
#include "passes/planner/choose.h"

struct offload_plan {
	struct known_plan plan;
	struct offload_request request; /* for the graph of that plan */
	double sec;                     /* seconds of a step */
};

/* The fastest plan for that arena in which values are offloaded, and that takes
 * less than `below` seconds a step; false: none is known.  `taken`: the fastest
 * one without; NULL: none fits. */
bool offload_best(Pass *, const Graph *, struct plan_selector *,
                  const uint8_t *constraint, struct schedule *, int64_t arena,
                  const struct known_plan *taken, double below,
                  struct offload_plan *);
/* Seconds of recomputation that no plan of any kind saves: what lies in host
 * memory at one time has gone there, and comes back. */
double offload_bound(const Pass *, struct plan_selector *, int64_t arena,
                     const struct offload_plan *, const Graph *);

#endif
