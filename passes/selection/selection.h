/* Room selection: dims whose size depends on data, such as that of NonZero.
 *
 * in      a node of fold's walk, and what the walk knows of its operands
 * out     the node for a dim padded to an upper bound, whose number of valid
 *         rows is known at run time (a bounded dynamic dim, as XLA has them)
 * must not know how the walk folds constants, and other passes: these see
 *         fixed extents
 */
#ifndef PASSES_SELECTION_SELECTION_H
#define PASSES_SELECTION_SELECTION_H

#include "passes/fold_build/fold_build.h"

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

/* row_order.c: after the walk, choose one of the two forms of each value. */
void fold_choose_order(struct fold *);

#endif
