/* Offload values: choose the plan of recomputation beside it. */
#ifndef PASSES_PLANNER_OFFLOAD_PLAN_H
#define PASSES_PLANNER_OFFLOAD_PLAN_H

#include "passes/offload/values.h"
#include "passes/planner/choose.h"

struct offload_plan {
	struct known_plan plan;
	struct offload_request request; /* for the graph of that plan */
	int64_t placed;                 /* bytes of its arena */
	int64_t sent;                   /* bytes that a step sends to host
	                                 * memory */
	double sec;                     /* seconds of a step */
};

/* Whether --offload is for values, too. */
bool offload_takes_values(const Pass *);
/* Bytes that a step of the graph sends to host memory. */
int64_t offload_sent(const Graph *);
/* Whether the user names some: --offload-values. */
bool offload_names_values(const Pass *);
/* The fastest plan for the budget in which values are offloaded, and whose step
 * is faster than that of `taken`, the fastest one without (NULL: none fits), or
 * that has the values that the user names; false: none is known. */
bool offload_best(Pass *, const struct plan_source *,
                  const struct known_plan *taken, struct offload_plan *);
/* For all plans that may offload, for a plan whose step takes `sec` seconds. */
struct recompute_bound offload_bound(const Pass *, const struct plan_source *,
                                     const struct known_plan *, double sec);

#endif
