/* The steps of pass fold for each node, and their rules. */
#ifndef PASSES_FOLD_FOLD_RULES_H
#define PASSES_FOLD_FOLD_RULES_H

#include "passes/fold/fold_build.h"

/* fold_static.c: turn constant static operands into attributes, and special
 * cases of an op into a simpler op.  False after a diagnostic. */
bool fold_absorb(struct fold *, NodeId);
/* Start of piece `index` of a part on its axis of extent dim. */
int64_t fold_part_start(const struct fold *, const Node *, int64_t dim);

/* fold_rules.c: drop or rewrite a node that is not constant. */
enum step fold_simplify(struct fold *, NodeId);

/* Simplify a node that could not be computed. */
typedef enum step Simplify(struct fold *, NodeId);

/* fold_move.c */
Simplify simplify_identity, simplify_reshape, simplify_expand,
	simplify_transpose, simplify_slice, simplify_split, simplify_pad,
	simplify_tile, simplify_concat, simplify_constant_of_shape;
/* fold_index.c */
Simplify simplify_gather, simplify_gather_nd, simplify_one_hot;
/* Turn node id into a reshape of x to the shape of its output; fails if x is 0.
 */
enum step fold_turn_reshape(struct fold *, NodeId id, ValId x);
/* fold_arith.c */
Simplify simplify_add, simplify_sub, simplify_mul, simplify_by_one,
	simplify_logic, simplify_xor, simplify_not, simplify_where,
	simplify_cast, simplify_dropout, simplify_isnan, simplify_reduce,
	simplify_matmul;
/* fold_rnn.c */
Simplify fold_rnn;

/* fold_cse.c */
/* Whether computing a constant node takes more than its share of time or
 * memory; if not, the cost is recorded as spent. */
bool fold_is_expensive(struct fold *, const Node *);
/* Estimated --fold-limit, in MiB, under which the node would be computed. */
int64_t fold_steps_enough(const struct fold *, const Node *);
/* The result of an equal node added before; 0: none. */
ValId fold_find_equal(struct fold *, NodeId);
void fold_add_known(struct fold *, NodeId);

/* fold_sink.c */
/* The constant v, or the constant that v expands; 0: none. */
ValId fold_expand_source(const struct fold *, ValId v);
/* Whether all elements equal *x; like val_splat, but looks through expands. */
bool fold_splat(const struct fold *, ValId v, double *x);
/* The shape with leading extents of 1, up to that rank. */
Shape fold_aligned(const Shape *, int rank);
/* Compute the node on a constant before its expand; false if the node is
 * unchanged. */
bool fold_sink_expand(struct fold *, NodeId, enum step *);

/* fold_extent.c: numbers that follow from the size of the batch */
/* Whether a node reads extents. */
bool fold_reads_extents(const Graph *);
/* Whether the node's constant result depends on extents of non-constants. */
bool fold_is_from_extents(struct fold *, const Node *);
/* Handle numbers from extents among the operands of a node that reads data:
 * record them, or with f->extents turn those that follow from the batch into op
 * extent.  False after a diagnostic. */
bool fold_batch_numbers(struct fold *, NodeId);
/* After the walk: set f->extents if a number that data met follows from the
 * batch size; before: the graph before the walk. */
bool fold_find_extents(struct fold *, const Graph *before);
/* Discard diagnostics from here on.  Returns those so far, for
 * fold_unmute_diag. */
Diag *fold_mute_diag(Pass *);
void fold_unmute_diag(Pass *, Diag *was);
/* fold.c: walk all nodes; false after a diagnostic. */
bool fold_walk(struct fold *);

/* fold_const.c: after the walk, with the graph in its new order.
 * Cut axes along which a constant repeats, where its user broadcasts. */
void fold_shrink_constants(struct fold *);
/* Merge equal constants into the first in order of use. */
void fold_merge_constants(struct fold *);
/* Copy constant outputs at every step, so that inference finds all outputs in
 * one place. */
void fold_copy_constant_outputs(struct fold *);
/* Move surviving contents to the graph; f->mem owns the rest. */
void fold_keep_contents(struct fold *);

/* Hash n bytes. */
uint64_t fold_hash(const void *data, size_t n);

#endif
