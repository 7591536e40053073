/* Bounded dynamic dims, as XLA has them: padded to an upper bound, with the
 * number of valid rows known at run time. */
#ifndef PASSES_FOLD_FOLD_DYNAMIC_H
#define PASSES_FOLD_FOLD_DYNAMIC_H

#include "passes/fold/fold_padding.h"

/* Before shape inference of node id: reject a split of a padded dim as if its
 * size were known.  False after a diagnostic. */
bool fold_dynamic_operands(struct fold *, NodeId id);
/* Apply the rule of node id, after shape inference and after static operands
 * became attributes; `was`: the node before that.  False after a diagnostic. */
bool fold_dynamic_node(struct fold *, NodeId id, const Node *was);
/* Output v of the removed node id is replaced by another value.  A new value
 * (id >= nval) inherits v's padded dim; an existing one must have the same.
 * False after a diagnostic. */
bool fold_dynamic_replaced(struct fold *, NodeId id, ValId v, uint32_t nval);
/* Drop outputs whose extents or contents depend on a data-dependent size, or
 * without training refuse them. */
bool fold_dynamic_outputs(struct fold *);

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
