/* What makes plans that are sequences: each adds to the pool, by way of the
 * list, and counts the work that it may do. */
#ifndef PASSES_RECURSIVE_SEQUENCE_GENERATORS_H
#define PASSES_RECURSIVE_SEQUENCE_GENERATORS_H

#include "passes/recursive/step_list.h"
#include "passes/remat_model/plan_pool.h"

/* nested.c: plans for chains of parts.  work: table entries looked at. */
void nested_search(struct plan_pool *, struct step_list *, int64_t work);

/* remat_evict.c: exponents of distance and size, weight of what is made from
 * a value. */
struct evict_weights {
	double far, big, around;
};

/* A walk within `budget` bytes of arena as the walk reckons them; false: it did
 * not get through, or the work, nodes looked at, was spent. */
bool remat_evict(const struct remat *, const uint8_t *constraint,
                 int64_t budget, const struct evict_weights *, int64_t *work,
                 struct step_list *out);

/* recursive_fill.c: faster ones from those that are known.  work: steps. */
void recursive_fill(struct plan_pool *, struct step_list *, int64_t work);

#endif
