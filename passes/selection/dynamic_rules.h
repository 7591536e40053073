/* The rules of ops for padded dims, one per name in a column of ops.h. */
#ifndef PASSES_SELECTION_DYNAMIC_RULES_H
#define PASSES_SELECTION_DYNAMIC_RULES_H

#include "passes/selection/padding.h"
#include "passes/selection/selection.h"

/* ---- rules: one per name in the `dynamic` column of ops.h ---- */

struct dynamic_rule {
	/* was: the node before static operands became attributes */
	bool (*run)(struct fold *, NodeId, const Node *was);
	/* sets of operands, bit k for operand k */
	unsigned may;           /* may have a padded dim */
	unsigned shape;         /* give only a shape or an extent */
	unsigned moves;         /* have their elements moved to the result */
	unsigned flat;          /* may have rows of several elements */
};

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) \
	extern const struct dynamic_rule dynamic_##dynamic;
#include "ir/ops.h"

#endif
