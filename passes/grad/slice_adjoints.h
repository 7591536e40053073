/* Adjoints of slices that together cut one axis, joined by one concat:
 *
 *     qkv ---- slice ---> q      no zeros are written or added
 *        \---- slice ---> k
 *         \--- slice ---> v
 */
#ifndef PASSES_GRAD_SLICE_ADJOINTS_H
#define PASSES_GRAD_SLICE_ADJOINTS_H

#include "passes/grad/grad_rules.h"

/* The adjoint of a slice that waits for its siblings. */
struct slice_adjoint {
	NodeId node;                    /* the slice */
	ValId dy;
	struct slice_adjoint *next;
};

/* The one axis that a slice cuts with step 1, or -1. */
int slice_adjoint_axis(const Graph *, const Node *);
/* Sort pieces of one value along the axis that all of them cut.  Returns how
 * many operands a concat of them has, gaps included; 0: they overlap, cut
 * different axes, or there is nothing to join. */
int slice_adjoints_sort(const Graph *, struct slice_adjoint **);
/* The adjoint of that value; the context is of the first piece. */
ValId slice_adjoints_join(struct grad *, const struct slice_adjoint *,
                          int nparts, Arena *scratch);

#endif
