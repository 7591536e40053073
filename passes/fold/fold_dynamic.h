/* Padded dims of data-dependent size: only as many rows are valid as a mask
 * selects at run time. */
#ifndef PASSES_FOLD_DYNAMIC_H
#define PASSES_FOLD_DYNAMIC_H

#include "passes/fold/fold_padding.h"

/* False after a diagnostic: node id, whose shapes are not inferred yet, takes
 * a padded dim apart as if its size were known. */
bool fold_dynamic_operands(struct fold *, NodeId id);
/* Node id, whose shapes are inferred and whose static operands are attributes
 * by now; `was` is the node as it stood before that.  False after a
 * diagnostic. */
bool fold_dynamic_node(struct fold *, NodeId id, const Node *was);
/* Node id is gone and another value stands for its output v: that one has the
 * same padded dim.  False after a diagnostic: it is older, from nval down, and
 * has another one. */
bool fold_dynamic_replaced(struct fold *, NodeId id, ValId v, uint32_t nval);
/* Outputs whose extents or contents depend on a data-dependent size are left
 * out, or in a graph that is not trained refused. */
bool fold_dynamic_outputs(struct fold *);

/* ---- rules: one per name in the `dynamic` column of ops.h ---- */

struct dynamic_rule {
	/* the node as it is, and as it was before its static operands went */
	bool (*run)(struct fold *, NodeId, const Node *was);
	/* a bit for each input: */
	unsigned may;           /* the rule lets it have a padded dim */
	unsigned shape;         /* only says what shape or extent to make */
	unsigned moves;         /* elements of it are what comes out */
	unsigned flat;          /* rows may be of several elements */
};

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) \
	extern const struct dynamic_rule dynamic_##dynamic;
#include "ir/ops.h"

#endif
