/* Room recursive: plans that compute values again more than once.
 *
 * in      a problem of room remat_model, the user's constraints by storage
 * out     a pool of sequences, and a lower bound for plans of any class
 * must not know budgets and presets
 */
#ifndef PASSES_RECURSIVE_RECURSIVE_H
#define PASSES_RECURSIVE_RECURSIVE_H

#include "passes/remat_model/plan_pool.h"

/* Search for plans with arenas below `top`.  Plans faster than `floor` are
 * not taken: that is the time of a plan which is known at `top` and above, so
 * that more memory is never slower. */
struct plan_pool *recursive_new(const struct remat *,
                                const uint8_t *constraint, int64_t top,
                                double floor);
/* Lower bound of the seconds of clones, for all plans whose arena is no larger
 * than `arena`, in any order and with any number of repetitions. */
double recursive_bound(const struct remat *, int64_t arena);

#endif
