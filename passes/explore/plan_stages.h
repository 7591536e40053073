/* The stages of a pipeline. */
#ifndef PASSES_EXPLORE_PLAN_STAGES_H
#define PASSES_EXPLORE_PLAN_STAGES_H

#include "passes/passes.h"

/* Run the rest of the passes: to the end of pass pipeline on g, then on each
 * stage of p->planned.pipeline, whose plans are left there. */
void plan_stages(struct pass_walk *, Pass *, Graph *);

#endif
