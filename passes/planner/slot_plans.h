/* Two plans for the micro-batches of a stage. */
#ifndef PASSES_PLANNER_SLOT_PLANS_H
#define PASSES_PLANNER_SLOT_PLANS_H

#include "passes/planner/choose.h"

/* Of the slots of a stage some may have a faster plan and the others one that
 * needs less: p->planned.pair, the fastest pair within the budget that is known
 * and faster than `one`, the plan of all slots.  NULL: there is none, or the
 * stage must have one plan. */
void slot_plans_find(Pass *, struct plan_source *,
                     const struct known_plan *one);

#endif
