/* The steps of pass fold for each node, and the rules that they use. */
#ifndef PASSES_FOLD_FOLD_RULES_H
#define PASSES_FOLD_FOLD_RULES_H

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
	simplify_transpose, simplify_slice, simplify_split, simplify_pad,
	simplify_tile, simplify_concat, simplify_constant_of_shape;
/* Element `at` of axis `axis` as a slice with that axis kept. */
ValId fold_slice_one(struct fold *, ValId, int axis, int64_t at, NodeId like);
/* fold_index.c */
Simplify simplify_gather, simplify_gather_nd, simplify_one_hot;
/* Node id becomes a reshape of x to the shape of its output. */
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
 * memory; if not, that counts as spent. */
bool fold_is_expensive(struct fold *, const Node *);
/* MiB of --fold-limit that let it be computed, as far as can be told. */
int64_t fold_steps_enough(const struct fold *, const Node *);
/* The result of an equal node that was added; 0: none. */
ValId fold_find_equal(struct fold *, NodeId);
void fold_add_known(struct fold *, NodeId);

/* fold_sink.c */
/* The constant that v is, or is an expand of; 0: none. */
ValId fold_expand_source(const struct fold *, ValId v);
/* Whether all elements are the one number *x, as val_splat has it of what was
 * computed. */
bool fold_splat(const struct fold *, ValId v, double *x);
/* The shape with extents of 1 in front. */
Shape fold_aligned(const Shape *, int rank);
/* Compute what the node makes of an expanded constant before the expand; false
 * if nothing was done. */
bool fold_sink_expand(struct fold *, NodeId, enum step *);

/* fold_extent.c: numbers that follow from the size of the batch */
/* Whether some node asks for extents. */
bool fold_reads_extents(const Graph *);
/* Whether what the node computes, a constant, follows from the extents of what
 * is none. */
bool fold_is_from_extents(struct fold *, const Node *);
/* A node with data among its operands: numbers from extents beside them are
 * noted, or with f->extents made op extent if they follow from the batch.
 * False after a diagnostic. */
bool fold_batch_numbers(struct fold *, NodeId);
/* After the walk: set f->extents if some number that data met follows from the
 * size of the batch; before: the graph as it was. */
bool fold_find_extents(struct fold *, const Graph *before);
/* Collect no diagnostics from here on; returns those so far, for
 * fold_unmute_diag. */
Diag *fold_mute_diag(Pass *);
void fold_unmute_diag(Pass *, Diag *was);
/* fold.c: all nodes; false after a diagnostic. */
bool fold_walk(struct fold *);

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

/* Of bytes. */
uint64_t fold_hash(const void *data, size_t n);

#endif
