/* What the plan would cost with the cheap means first: advice. */
#ifndef PASSES_PLAN_CHEAP_H
#define PASSES_PLAN_CHEAP_H

#include "passes/problem/remat.h"

/* What is left when at most 1 % of the step's time may go into computing
 * things again (cheap.c). */
struct cheap {
	double extra;                   /* fraction of a step */
	int64_t saved;                  /* bytes in all */
	int32_t nlayer;
	int64_t *layer, *stats;         /* as above */
	int64_t outside;
};

struct remat;

/* Into p->cheap; `must` as in remat_wishes. */
void cheap_account(Pass *, const Graph *, struct remat *, const uint8_t *must);

#endif
