/* Sequences of steps that compute values again more than once, and the plans
 * made of them that are known. */
#ifndef PASSES_RECURSIVE_RECURSIVE_KNOWN_H
#define PASSES_RECURSIVE_RECURSIVE_KNOWN_H

#include "passes/remat_model/remat_model.h"

/* A sequence under construction: first runs, and clones but those of views. */
struct step_list {
	Arena *arena;
	struct rstep *step;
	int32_t n, cap, limit;          /* limit: longer ones are given up */
};

/* False when the sequence is too long. */
bool steps_add(struct step_list *, NodeId, bool clone, uint32_t makes);

/* remat_evict.c: exponents of distance and size, weight of what is made from
 * a value. */
struct evict_weights {
	double far, big, around;
};

/* A walk within `budget` bytes of arena as the walk reckons them; false: it did
 * not get through, or the work was spent. */
bool remat_evict(const struct remat *, const uint8_t *constraint,
                 int64_t budget, const struct evict_weights *, int64_t *work,
                 struct step_list *out);

struct recursive_search;
/* nested.c: plans for chains of parts. */
void nested_search(struct recursive_search *);

/* recursive_fill.c: faster ones from those that are known. */
void recursive_fill(struct recursive_search *);

/* The known ones, none dominated by another. */
struct recursive_search {
	struct plan_pool known;
	const struct remat *r;
	const uint8_t *constraint;
	int64_t top;                    /* larger arenas are of no interest */
	double floor;                   /* nor are faster plans: see
	                                 * recursive_new */
	struct step_list steps;         /* scratch of the generators */
};

/* Offer the sequence in d->steps. */
struct remat_cost recursive_try(struct recursive_search *);

#endif
