/* A lower bound on what a plan costs, from a few moments of it. */
#ifndef PASSES_MOMENTS_H
#define PASSES_MOMENTS_H

#include "passes/deep/deep_known.h"

enum { MOMENTS_MAX = 12 };

struct moments {
	struct remat *r;
	int64_t memory;                 /* bytes of the arena */
	bool any_order;                 /* first runs as links allow; else in
	                                 * the order of nodes, and only forward
	                                 * runs again */
	int most;                       /* moments */
	int64_t nodes;                  /* of branch and bound, times nodes of
	                                 * the graph and moments; 0: none */
	/* A plan that follows the program's last answer, which need not fit,
	 * or the cheapest one met that does; NULL: none is wanted. */
	struct steps *plan;
	struct remat_cost cost;         /* out: of that plan */
};

/* Seconds of copies below which no plan gets. */
double moments_bound(struct moments *);

#endif
