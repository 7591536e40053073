/* A lower bound on what a plan costs, from what a few stages of it hold. */
#ifndef PASSES_RECURSIVE_STAGES_H
#define PASSES_RECURSIVE_STAGES_H

#include "passes/recursive/recursive_known.h"

enum { STAGES_MAX = 12 };

struct stage_bound {
	struct remat *r;
	int64_t memory;                 /* bytes of the arena */
	bool any_order;                 /* first runs as links allow; else in
	                                 * the order of nodes, and only forward
	                                 * runs again */
	int most;                       /* stages */
	int64_t nodes;                  /* of branch and bound, times nodes of
	                                 * the graph and stages; 0: none */
	/* A plan that follows the program's last answer, which need not fit,
	 * or the cheapest one met that does; NULL: none is wanted. */
	struct step_list *plan;
	struct remat_cost cost;         /* out: of that plan */
};

/* Seconds of copies below which no plan gets. */
double stages_bound(struct stage_bound *);

#endif
