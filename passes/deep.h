/* Plans that compute values again more than once. */
#ifndef PASSES_DEEP_H
#define PASSES_DEEP_H

#include "passes/remat.h"

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

/* remat_preset.c: storages at which the forward graph hangs together by one
 * activation, in order, and the node behind which each does so; returns how
 * many. */
int32_t remat_cuts(const struct remat *, Arena *, int32_t *cut,
                   NodeId *behind);

struct deep;
/* remat_exact.c: the fastest plans of a small graph for all amounts of live
 * bytes; false: it is not small enough. */
bool remat_exact(struct deep *);
/* nested.c: plans for chains of parts. */
void nested_search(struct deep *);

/* deep.c: the known ones, none dominated by another. */
struct deep {
	struct remat *r;
	const uint8_t *must;
	int64_t top;                    /* larger arenas are of no interest */
	double floor;                   /* nor are faster plans: see deep_new */
	struct found *plan;
	int32_t n;
	struct steps steps;             /* scratch of the generators */
};

/* Search for plans with arenas below `top`.  Plans faster than `floor` are
 * not taken: that is the time of a plan which is known at `top` and above, so
 * that more memory is never slower. */
struct deep *deep_new(struct remat *, const uint8_t *must, int64_t top,
                      double floor);
/* Offer the sequence in d->steps. */
struct remat_cost deep_try(struct deep *);
/* Fastest plan that fits when placed, and the smallest arena of all. */
struct found *deep_best(struct deep *, int64_t arena);
int64_t deep_least(struct deep *);
/* Seconds of copies below which no plan gets whose arena is no larger, in
 * whatever order and however often it repeats nodes. */
double deep_bound(const struct remat *, int64_t arena);

#endif
