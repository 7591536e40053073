/* Plans that keep in 16 bits what backward reads: --save-dtype. */
#ifndef PASSES_PLAN_HALVES_H
#define PASSES_PLAN_HALVES_H

#include "passes/plan/choose.h"
#include "passes/save/save.h"

enum { HALVES_RUNGS = 12 };

/* Plans from keep-everything down to the least, the same for every budget if
 * it is asked for before anything else. */
struct ladder {
	struct found plan[HALVES_RUNGS + 1];
	int n;
};

void halves_ladder(struct ladder *, struct remat *, struct choice *,
                   const uint8_t *must);

struct halves {
	struct found plan;              /* that keeps in 32 bits */
	struct save_request wish;       /* ... and what of it is rounded */
	double sec;                     /* above a step that keeps everything */
	int64_t least;                  /* arena of the smallest one looked at;
	                                 * INT64_MAX: none was */
};

/* The fastest within that arena, of those that take less than `below`; false:
 * none is known.  Every plan is looked at if `below` is infinite. */
bool halves_best(Pass *, const Graph *, struct remat *, struct ladder *,
                 const uint8_t *must, int64_t arena, double below,
                 struct halves *);

#endif
