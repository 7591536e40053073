/* Count passes: nodes that run for all micro-batches before the step, and leave
 * totals over them.
 *
 * A node of a count pass is a copy of a node of the step that the same value
 * needs.  It adds to a state, the total.  Nodes of the step and of later count
 * passes read the total's sum.  A total that depends on another total belongs
 * to the count pass after that one.
 */
#ifndef PASSES_DATA_PARALLEL_COUNT_PASSES_H
#define PASSES_DATA_PARALLEL_COUNT_PASSES_H

#include "passes/pass.h"

struct count_passes {
	Pass *p;
	Graph *g;
	ValId *twin;                    /* by value and count pass: its copy
	                                 * there */
	size_t ntwin, twin_cap;
};

/* The sum of v over all micro-batches, in its shape; 0 after a diagnostic. */
ValId count_total(struct count_passes *, ValId v);
/* Copy a node of graph `of` to g, with operands in[]. */
NodeId count_pass_copy(Graph *g, const Graph *of, const Node *,
                       const ValId *in);

#endif
