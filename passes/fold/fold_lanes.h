/* Padded dims of data-dependent size: only as many lanes count as a mask
 * selects at run time. */
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

/* ---- rules: one per name in the lanes column of ops.h ---- */

struct lanes_rule {
	/* the node as it is, and as it was before its static operands went */
	bool (*run)(struct fold *, NodeId, const Node *was);
	/* a bit for each input: */
	unsigned may;           /* the rule lets it have lanes */
	unsigned shape;         /* only says what shape or extent to make */
	unsigned moves;         /* elements of it are what comes out */
	unsigned flat;          /* lanes may be of several elements */
};

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, lanes, cost, grad, shard) \
	extern const struct lanes_rule lanes_##lanes;
#include "ir/ops.h"

#endif
