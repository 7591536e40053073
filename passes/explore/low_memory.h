/* The forms in which updates run. */
#ifndef PASSES_EXPLORE_LOW_MEMORY_H
#define PASSES_EXPLORE_LOW_MEMORY_H

#include "passes/passes.h"

/* Run the rest of the pipeline, in the better one of two variants where a
 * budget asks for both.  p->retired outlives the graph then. */
void plan_variants(struct pass_walk *, Pass *, Graph *);

#endif
