/* Room fuse: nodes that one kernel can do together, and strides.
 *
 * in      a training graph
 * out     element-wise loops, the classifier, packed gradients; every value
 *         has a place of its own or is a view, with strides
 * unaware of which values are kept
 */
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "passes/pass.h"

PassFn pass_fuse, pass_layout;

/* The parts of pass fuse, each false after a diagnostic; fuse_loops.c is its
 * entry. */


/* fuse_ends.c: rewrites of matrix products and attention. */
bool fuse_classifier(Pass *, Graph *);
bool fuse_packed(Pass *, Graph *);
bool fuse_accumulators(Pass *, Graph *);

/* fuse_turn.c: loops that write transposed. */
bool fuse_turned(Pass *, Graph *);

#endif
