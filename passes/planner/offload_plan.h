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
/* Whether --offload is for values, too. */
bool offload_takes_values(const Pass *);
/* What the arena and the host hold at one time, at most, in a step of less than
 * `sec` seconds: all in the host has gone there, and comes back. */
int64_t offload_arena(const Pass *, const Graph *, int64_t arena, double sec);

#endif
