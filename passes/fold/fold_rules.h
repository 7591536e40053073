/* The steps of pass fold for each node, and their rules. */
#ifndef PASSES_FOLD_FOLD_RULES_H
#define PASSES_FOLD_FOLD_RULES_H

#include "passes/fold_build/fold_build.h"

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
/* Handle numbers from extents among the operands of a node that reads data:
 * record them, or with f->extents turn those that follow from the batch into op
 * extent.  False after a diagnostic. */
bool fold_batch_numbers(struct fold *, NodeId);
/* After the walk, if data met such a number: numbers by batches of one, two and
 * three times the samples.  before: the graph before the walk; NULL: it has no
 * batch. */
enum { EXTENT_POINTS = 3 };
struct extents *fold_extents_new(struct fold *, const Graph *before);
/* Numbers of g, the graph folded for so many times the samples. */
void fold_extents_read(struct extents *, const Graph *g, int times);
/* Set f->extents if a number that data met follows from the batch size. */
bool fold_extents_matter(struct fold *, struct extents *);

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

#endif
