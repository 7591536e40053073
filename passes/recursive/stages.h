/* A lower bound on what a plan costs, from what a few stages of it hold. */
#ifndef PASSES_RECURSIVE_STAGES_H
#define PASSES_RECURSIVE_STAGES_H

#include "passes/recursive/step_list.h"

enum { STAGES_MAX = 12 };

struct stage_bound {
	const struct remat *r;
	int64_t memory;                 /* bytes that the arena may have */
	bool any_order;                 /* first runs in any order that links
	                                 * allow; false: in the order of nodes,
	                                 * and only forward nodes run again */
	int most;                       /* most stages */
	int64_t nodes;                  /* branch-and-bound nodes, times nodes
	                                 * of the graph and stages; 0: none */
	/* Result: the cheapest plan found that fits, else one that follows the
	 * program's last answer; NULL: not wanted. */
	struct step_list *plan;
	struct remat_cost cost;         /* result: what that plan costs */
};

/* Lower bound of the seconds that a plan spends on clones. */
double stages_bound(struct stage_bound *);

#endif
