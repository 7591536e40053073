/* Room fuse: nodes that one kernel can do together, and strides.
 *
 * in      a training graph
 * out     element-wise loops, the classifier, packed gradients; every value
 *         has a place of its own or is a view, with strides
 * must not know which values are kept
 */
#ifndef PASSES_FUSE_FUSE_H
#define PASSES_FUSE_FUSE_H

#include "passes/pass.h"

PassFn pass_fuse, pass_layout;

/* The parts of pass fuse, each false after a diagnostic; fuse_loops.c is its
 * entry. */

/* fuse_packed.c: rewrites of matrix products and attention. */
bool fuse_classifier(Pass *, Graph *);
bool fuse_packed(Pass *, Graph *);
bool fuse_accumulators(Pass *, Graph *);

/* fuse_frozen.c: products by frozen weights of fewer bits. */
bool fuse_frozen(Pass *, Graph *);

/* fuse_epilogues.c: what products do with their results. */
bool fuse_epilogues(Pass *, Graph *);

/* fuse_transposed.c: loops that store their result transposed. */
bool fuse_transposed_stores(Pass *, Graph *);

/* fuse_pretransposed.c: operands that small products share, transposed
 * once. */
bool fuse_pretransposed(Pass *, Graph *);

/* ---- fuse_order.c ---- */

static inline bool
fuse_is_view(const Node *n)
{
	return op_info[n->op].flags & F_VIEW;
}

/* The value that v is, or is a view of, and the node that computes it. */
ValId fuse_root(const Graph *, ValId v);
NodeId fuse_producer(const Graph *, ValId v);
/* By value: who overwrites it; 0: nobody. */
NodeId *fuse_writers(const Graph *, Arena *);
/* Bring the nodes that name units (by node) into the order of their slots (by
 * unit); others but views fall away. */
void fuse_order(Graph *, const NodeId *unit, const NodeId *slot,
                Arena *scratch);

#endif
