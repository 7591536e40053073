/* Plans that compute values again more than once. */
#ifndef PASSES_RECURSIVE_RECURSIVE_H
#define PASSES_RECURSIVE_RECURSIVE_H

#include "passes/recursive/recursive_known.h"

/* Search for plans with arenas below `top`.  Plans faster than `floor` are
 * not taken: that is the time of a plan which is known at `top` and above, so
 * that more memory is never slower. */
struct recursive_search *recursive_new(struct remat *,
                                       const uint8_t *constraint, int64_t top,
                                       double floor);
/* Seconds of copies below which no plan gets whose arena is no larger, in
 * whatever order and however often it repeats nodes. */
double recursive_bound(struct remat *, int64_t arena);

#endif
