/* A second plan for some micro-batches of a stage. */
#ifndef PASSES_EXPLORE_SECOND_PLAN_H
#define PASSES_EXPLORE_SECOND_PLAN_H

#include "passes/passes.h"

/* Plan copies of a stage's graph by s->planned.pair; if they fit and steps are
 * faster so, s takes them.  w: before the stage was planned; of: its graph
 * then, which this frees. */
void second_plan_try(const struct pass_walk *w, Pass *,
                     struct pipeline_stage *s, int nmicro, Graph *of);

#endif
