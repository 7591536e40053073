/* Plans by the time of a step in which transfers run beside computation. */
#ifndef PASSES_PLANNER_EXPOSED_H
#define PASSES_PLANNER_EXPOSED_H

#include "passes/overlap/overlap.h"
#include "passes/planner/choose.h"

/* Seconds of a step with its transfers overlapped within the budget, of this
 * plan, or if it is NULL of the graph, which is planned then.  *all: no
 * transfer lacks room in the arena to begin early or end late.  `enough`, and
 * *found, if not NULL: see overlap.h. */
double exposed_seconds(const Pass *, const struct plan_source *,
                       const struct known_plan *, double enough, bool *all,
                       struct overlap_choice *found);

/* Of a plan, if it is known. */
struct transfers_found {
	bool known;
	double sec;
	struct overlap_choice choice;
};

/* Of the fastest plan for the budget and those for somewhat smaller ones, that
 * with the least exposed seconds. */
const struct known_plan *least_exposed(const Pass *, const struct plan_source *,
                                       const struct known_plan *fastest,
                                       struct transfers_found *);

#endif
