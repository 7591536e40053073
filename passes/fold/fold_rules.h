/* The steps of pass fold that fold.c takes for each node, and the rules they
 * are made of. */
#ifndef PASSES_FOLD_RULES_H
#define PASSES_FOLD_RULES_H

#include "passes/fold/fold_build.h"

/* fold_static.c: turn constant static operands into attributes, and ops that
 * are another op in disguise into that op.  False after a diagnostic. */
bool fold_absorb(struct fold *, NodeId);
/* Where piece `index` of a part begins on its axis of extent dim. */
int64_t fold_part_start(const struct fold *, const Node *, int64_t dim);

/* fold_rules.c: drop or rewrite a node that is not constant. */
enum step fold_simplify(struct fold *, NodeId);

/* What becomes of a node that could not be computed. */
typedef enum step Simplify(struct fold *, NodeId);

/* fold_move.c */
Simplify simplify_identity, simplify_reshape, simplify_expand,
	simplify_transpose, simplify_slice, simplify_part, simplify_pad,
	simplify_tile, simplify_concat, simplify_constant_of_shape,
	simplify_gather, simplify_gather_nd, simplify_one_hot;
/* Node id becomes a reshape of x to the shape of its output. */
enum step fold_turn_reshape(struct fold *, NodeId id, ValId x);
/* fold_arith.c */
Simplify simplify_add, simplify_sub, simplify_mul, simplify_by_one,
	simplify_logic, simplify_xor, simplify_not, simplify_where,
	simplify_cast, simplify_dropout, simplify_isnan, simplify_reduce,
	simplify_matmul;
/* fold_rnn.c */
Simplify fold_rnn;

/* fold_const.c: after the walk, when the graph is in its new order.
 * Cut axes along which a constant repeats, where its user broadcasts. */
void fold_shrink_constants(struct fold *);
/* Equal constants become one; the first in order of use stays. */
void fold_merge_constants(struct fold *);
/* Outputs that are the same at every step are copied at every step: whoever
 * runs the model without training it finds all of them in one place. */
void fold_copy_constant_outputs(struct fold *);
/* Contents that survive move to the graph; the rest goes with f->mem. */
void fold_keep_contents(struct fold *);

#endif
