/* The forms in which a step may run. */
#ifndef PASSES_EXPLORE_VARIANTS_H
#define PASSES_EXPLORE_VARIANTS_H

#include "passes/passes.h"

/* Run the rest of the pipeline, in the best of several variants where a budget
 * asks for them.  p->retired outlives the graph then. */
void plan_variants(struct pass_walk *, Pass *, Graph *);
/* Whether there is a budget. */
bool plan_has_budget(const struct options *);

#endif
