/* Values of which only as many lanes count as a mask selects at run time. */
#ifndef PASSES_FOLD_LANES_H
#define PASSES_FOLD_LANES_H

#include "passes/fold/fold_mask.h"

/* False after a diagnostic: node id, whose shapes are not inferred yet, takes
 * a selection apart as if it were known how many there are. */
bool fold_lanes_whole(struct fold *, NodeId id);
/* Node id, whose shapes are inferred and whose static operands are attributes
 * by now; `was` is the node as it stood before that.  False after a
 * diagnostic. */
bool fold_lanes(struct fold *, NodeId id, const Node *was);
/* Node id is gone and another value stands for its output v: that one has the
 * same lanes.  False after a diagnostic: it is older, from nval down, and has
 * others. */
bool fold_lanes_pass(struct fold *, NodeId id, ValId v, uint32_t nval);
/* Outputs whose extents or contents depend on a selection are left out, or in
 * a graph that is not trained refused. */
bool fold_lanes_outputs(struct fold *);

/* ---- rules: the node as it is, and as it was where that matters ---- */

/* fold_lanes_keep.c */
bool lanes_broadcast(struct fold *, NodeId, int first, int last);
bool lanes_reshape(struct fold *, NodeId, const Node *was);
bool lanes_expand(struct fold *, NodeId, const Node *was);
bool lanes_of_shape(struct fold *, NodeId, const Node *was);
bool lanes_range(struct fold *, NodeId, const Node *was);
bool lanes_transpose(struct fold *, NodeId);
bool lanes_slice(struct fold *, NodeId, const Node *was);
bool lanes_beside_axis(struct fold *, NodeId, int64_t axis, bool gone,
                       int nout);
bool lanes_norm(struct fold *, NodeId);
bool lanes_concat(struct fold *, NodeId);
bool lanes_pad(struct fold *, NodeId);
bool lanes_gather(struct fold *, NodeId);
bool lanes_gather_nd(struct fold *, NodeId);
bool lanes_gather_elements(struct fold *, NodeId);
bool lanes_one_hot(struct fold *, NodeId);
/* fold_lanes_join.c */
bool lanes_reduce(struct fold *, NodeId);
bool lanes_matmul(struct fold *, NodeId);
bool lanes_softmax(struct fold *, NodeId);
bool lanes_cross_entropy(struct fold *, NodeId);
bool lanes_scatter(struct fold *, NodeId);

#endif
