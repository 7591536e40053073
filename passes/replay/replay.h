/* Room replay: an independent check of a plan.
 *
 * in      a plan
 * out     every claim that does not hold, reported
 * must not know the planner, whose code it does not share
 */
#ifndef PASSES_REPLAY_REPLAY_H
#define PASSES_REPLAY_REPLAY_H

#include "passes/pass.h"

PassFn pass_replay;

/* False after diagnostics: every fault is reported. */
bool plan_replay(Plan *, Diag *);

/* Whether two plans of a stage fit in the memory of one rank: both found true,
 * each leaves room for the slots of the other, and what outlives a micro-batch
 * has the same place in both. */
bool plans_share_arena(const Plan *, const Plan *);

#endif
