/* Sequences of steps that compute values again more than once, and the plans
 * made of them that are known. */
#ifndef PASSES_DEEP_KNOWN_H
#define PASSES_DEEP_KNOWN_H

#include "passes/problem/remat.h"

/* A sequence under construction: first runs, and copies but those of views. */
struct steps {
	Arena *arena;
	struct rstep *step;
	int32_t n, cap, limit;          /* limit: longer ones are given up */
};

/* False when the sequence is too long. */
bool steps_add(struct steps *, NodeId, bool clone, uint32_t makes);

/* remat_evict.c: exponents of distance and size, weight of what is made from
 * a value. */
struct evict_way {
	double far, big, around;
};

/* A walk within `room` bytes of arena as the walk reckons them; false: it did
 * not get through, or the work was spent. */
bool remat_evict(struct remat *, const uint8_t *must, int64_t room,
                 const struct evict_way *, int64_t *work, struct steps *out);

struct deep;
/* nested.c: plans for chains of parts. */
void nested_search(struct deep *);

/* deep_fill.c: faster ones from those that are known. */
void deep_fill(struct deep *);

/* The known ones, none dominated by another. */
struct deep {
	struct shelf known;
	struct remat *r;
	const uint8_t *must;
	int64_t top;                    /* larger arenas are of no interest */
	double floor;                   /* nor are faster plans: see deep_new */
	struct steps steps;             /* scratch of the generators */
};

/* Offer the sequence in d->steps. */
struct remat_cost deep_try(struct deep *);

#endif
