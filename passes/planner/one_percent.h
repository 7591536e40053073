/* The bytes that a plan saves if recomputation may take 1 % of a step; for
 * reports. */
#ifndef PASSES_PLANNER_ONE_PERCENT_H
#define PASSES_PLANNER_ONE_PERCENT_H

#include "passes/remat_model/remat_model.h"

/* What is left when at most 1 % of the step's time may go into computing
 * things again (one_percent.c). */
struct one_percent {
	double extra;                   /* fraction of a step */
	int64_t saved;                  /* bytes in all */
	int32_t nlayer;
	int64_t *layer, *stats;         /* as above */
	int64_t outside;
};

struct remat;

/* Sets p->one_percent.  constraint: as remat_constraints fills it. */
void one_percent_account(Pass *, const Graph *, struct remat *,
                         const uint8_t *constraint);

#endif
