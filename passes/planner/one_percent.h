/* The bytes that a plan saves if recomputation may take 1 % of a step; for
 * reports. */
#ifndef PASSES_PLANNER_ONE_PERCENT_H
#define PASSES_PLANNER_ONE_PERCENT_H

#include "passes/remat_model/remat_model.h"

/* What stays saved if recomputation may take 1 % of a step. */
struct one_percent {
	double extra;                   /* recomputation, as a fraction of a
	                                 * step */
	int64_t saved;                  /* bytes that stay saved in all */
	int32_t nlayer;
	int64_t *layer, *stats;         /* by layer: bytes saved, bytes of
	                                 * statistics */
	int64_t outside;                /* bytes saved outside of layers */
};

struct remat;

/* Sets p->planned.one_percent.  constraint: as remat_constraints fills it. */
void one_percent_account(Pass *, const Graph *, const struct remat *,
                         const uint8_t *constraint);

#endif
