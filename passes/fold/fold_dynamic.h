/* Bounded dynamic dims, as XLA has them: padded to an upper bound, with the
 * number of valid rows known at run time. */
#ifndef PASSES_FOLD_FOLD_DYNAMIC_H
#define PASSES_FOLD_FOLD_DYNAMIC_H

#include "passes/fold/fold_padding.h"

/* False after a diagnostic: node id, whose shapes are not inferred yet, would
 * split a padded dim as if its size were known. */
bool fold_dynamic_operands(struct fold *, NodeId id);
/* Node id, whose shapes are inferred and whose static operands are attributes
 * by now; `was` is the node as it stood before that.  False after a
 * diagnostic. */
bool fold_dynamic_node(struct fold *, NodeId id, const Node *was);
/* Output v of node id, which is removed, is replaced by another value.  A new
 * one (id >= nval) inherits v's padded dim; an existing one must have the same
 * already, or it is false after a diagnostic. */
bool fold_dynamic_replaced(struct fold *, NodeId id, ValId v, uint32_t nval);
/* Outputs whose extents or contents depend on a data-dependent size are left
 * out, or in a graph that is not trained refused. */
bool fold_dynamic_outputs(struct fold *);

/* ---- rules: one per name in the `dynamic` column of ops.h ---- */

struct dynamic_rule {
	/* the node as it is, and as it was before its static operands went */
	bool (*run)(struct fold *, NodeId, const Node *was);
	/* bit k: operand k */
	unsigned may;           /* may have a padded dim */
	unsigned shape;         /* only gives a shape or an extent */
	unsigned moves;         /* its elements are moved to the result */
	unsigned flat;          /* its rows may have several elements */
};

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) \
	extern const struct dynamic_rule dynamic_##dynamic;
#include "ir/ops.h"

#endif
