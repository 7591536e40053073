/* Plans from kept states: every k-th, and nested ones. */
#ifndef PASSES_RECURSIVE_CHECKPOINTS_H
#define PASSES_RECURSIVE_CHECKPOINTS_H

#include "passes/recursive/step_list.h"

/* Build plans that run forward parts again from states in memory, in time
 * that is linear in their steps: every part from the state before it, for 2
 * to all parts, some kept whole; and nested, for few states.  `offer` finds
 * each of them in *out.
 *   turn        the first node after forward
 *   constraint  by storage, see struct plan_pool
 *   work        steps of all plans together, about */
void checkpoints_all(const struct remat *, const uint8_t *constraint,
                     NodeId turn, struct step_list *out, int64_t work,
                     void (*offer)(void *data), void *data);

#endif
