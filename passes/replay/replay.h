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

#endif
