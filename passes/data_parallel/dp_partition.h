/* Declarations that the files of pass replicate (dp_*.c) share.
 *
 * During the pass, values have placements over a group of two ranks that split
 * the samples of one batch: Shard along the dim of the samples, Partial sums,
 * ReplicatePartial where both have the whole.  The result for two ranks holds
 * for any number.
 */
#ifndef PASSES_DATA_PARALLEL_DP_PARTITION_H
#define PASSES_DATA_PARALLEL_DP_PARTITION_H

#include "ir/sharding/sharding.h"
#include "passes/data_parallel/data_parallel.h"

enum { DP_RANKS = 2 };

/* A shard of one replica that each sample repeats. */
struct dp_repeated {
	Placement shard;
	const struct dp_repeated *next;
};

struct dp_partition {
	Pass *p;
	Graph *g;
	uint32_t nold;                  /* number of nodes before the pass */
	NodeId *order;                  /* all nodes so far, in their new
	                                 * order */
	size_t norder, order_cap;
	ValId *whole;                   /* by value: its sum over replicas */
	size_t nwhole, whole_cap;
	struct uses uses;               /* readers in the original graph */
	ValId share;                    /* value 1 / replicas; 0: not made */
	int64_t samples;                /* samples of one replica in a batch */
	const bool *grad;               /* DP_MICRO: by value before the pass: a
	                                 * gradient passes */
	ValId nold_val;
	const struct dp_repeated **repeats;     /* by value before the pass:
	                                         * what is known of it */
	bool *indexed;                  /* by value: holds sample indices, which
	                                 * each replica counts from 0 */
	size_t nindexed, indexed_cap;
	const char *assumed;            /* first node with assumed placements,
	                                 * in p->keep; NULL: none */
};

/* dp_infer.c: placements of the results of a node from those of its operands;
 * false with the reason in `why`. */
bool dp_infer(struct dp_partition *, NodeId, char why[SHARDING_WHY]);

/* Number of equal segments in which x, a replica's shard or the whole, holds
 * its samples; 0: the segments differ. */
int64_t dp_count_segments(const Shape *x, const Placement *);

/* dp_refuse.c: diagnostics return false.  Text to end them: a remedy. */
const char *dp_remedy(const struct dp_partition *);
/* "over replicas", or what else a batch is split into. */
const char *dp_parts(const struct dp_partition *);
bool dp_refuse(struct dp_partition *, NodeId, const char *why);
/* Refuse a node whose operands' placements allow none for its results. */
bool dp_refuse_mixing(struct dp_partition *, NodeId);

/* dp_own_rows.c: rows that each sample looks up, or writes, for itself */
/* From at[value_index], the placement of one value, set those of the others.
 * Shapes are those of a replica. */
bool dp_follow_own_rows(const struct dp_partition *, const Node *,
                        int value_index, Placement *at);
/* Placements of the results; *is: whether the node is such an op. */
bool dp_infer_own_rows(const struct dp_partition *, const Node *,
                       Placement *out, bool *is);
/* Placements of a pad before a scatter, which adds a row to the samples, and of
 * the slice after it. */
bool dp_infer_padded_rows(const struct dp_partition *, const Node *,
                          Placement *out);
/* Whether v, joined to the index tuples of n, holds the row number of each
 * sample of the placement, and has no other use. */
bool dp_indexes_rows(const struct dp_partition *, const Node *, ValId v,
                     const Placement *);
/* Record results with sample indices, in placements `out`; false: a result
 * computed from them differs for the whole batch. */
bool dp_follow_sample_index(struct dp_partition *, const Node *,
                            const Placement *out);

/* dp_sample_index.c: integers that number samples */
/* Elements of an integer value are stride * s + rest, where s is the index of
 * their sample and lo <= rest <= hi; or `beyond`, if that is not 0. */
struct sample_index {
	int64_t stride, lo, hi, beyond;
};

/* Elements of an integer value: those at index `at` of dim axis. */
struct column {
	ValId v;
	int axis;
	int64_t at;                     /* index along that axis; -1: all */
	int dim;                        /* dim of the samples; -1: unknown */
};

/* The sample index of a column; false: unknown. */
bool dp_find_sample_index(const struct dp_partition *, struct column,
                          struct sample_index *);
/* Whether a column has no sample indices. */
bool dp_lacks_sample_index(const struct dp_partition *, struct column);
/* Whether v has indices of samples selected by a mask. */
bool dp_has_sample_index(const struct dp_partition *, ValId v);

/* dp_visit.c */
/* Append a node to the new order. */
void dp_order_node(struct dp_partition *, NodeId);
/* Append a new node with placements; 0 after a diagnostic. */
ValId dp_emit(struct dp_partition *, Op, int nin, const ValId *in, const Attr *,
              NodeId like);
/* The sum of v, Partial, over replicas; the sum is ReplicatePartial. */
ValId dp_all_reduce(struct dp_partition *, ValId v, NodeId like);
/* v added up over replicas by a node of its own, in that placement; side: of
 * its gradient, see op all_reduce. */
ValId dp_emit_all_reduce(struct dp_partition *, ValId v, int side,
                         PlacementKind, NodeId like);
/* v times 1 / replicas, in float32 at least: a summand. */
ValId dp_scale_by_share(struct dp_partition *, ValId v, NodeId like);
/* Make the node that writes `made` write `old` instead. */
void dp_redefine(struct dp_partition *, ValId made, ValId old);
/* Give the node's result k a new value, which is returned.  Another node must
 * define the former value. */
ValId dp_detach_result(struct dp_partition *, NodeId, int k);
/* Another value in v's place, as seen from outside. */
void dp_replace_output(Graph *, ValId v, ValId y);
ValId dp_emit_cast(struct dp_partition *, ValId, DType, NodeId like);
bool dp_visit_node(struct dp_partition *, NodeId);
/* Scale a mean over a replica's own samples to the replica's share. */
bool dp_partition_mean(struct dp_partition *, NodeId);

/* dp_divisor.c */
/* Whether the node divides a sum over samples by a constant that may be the
 * number of samples or elements, or turns a mean into an unbiased one
 * (Bessel's correction).  ONNX does not mark such constants.  A small one is
 * more likely a plain factor and gets a note. */
bool dp_divides_by_size(const struct dp_partition *, const Node *);
/* A note if n, which is partitioned, sums samples that a constant divides which
 * may be their number; more likely it is a factor of a formula. */
void dp_note_divided_samples(const struct dp_partition *, const Node *);
/* Text to end a message: how to rewrite such a node; may be "". */
const char *dp_mean_hint(const struct dp_partition *, const Node *);

/* dp_extent.c: numbers that follow from the size of the batch */
bool dp_partition_extent(struct dp_partition *, NodeId);
/* Replace extents of the batch, and values computed from them, by constants,
 * once no partial sum needs them. */
bool dp_fold_extents(Pass *, Graph *);

/* halves.c: of the graph of half a batch, with placements, that of both. */
bool halves_expand(Pass *, Graph *);

/* dp_mean.c: ops that divide by a number of samples.  False after a
 * diagnostic. */
bool dp_partition_labels(struct dp_partition *, NodeId);
bool dp_partition_batchnorm(struct dp_partition *, NodeId);
/* dp_micro.c */
/* With DP_MICRO: the operand that remains partial while the other partial ones
 * are reduced.  The op is linear in it; one that depends on parameters is
 * preferred.  -1: none. */
int dp_remaining_summand(const struct dp_partition *, const Node *);
/* Whether the op looks up by indices.  Placements do not tell whether these are
 * of other samples. */
bool dp_is_lookup(Op);
/* Over micro-batches: assume placements for results of such a node without
 * derived ones, as if it kept samples apart; false: none. */
bool dp_assume_placement(struct dp_partition *, NodeId);
/* Placements of a batch normalisation whose statistics are a micro-batch's. */
bool dp_infer_statistics(const struct dp_partition *, const Node *,
                         Placement *out);

/* Whether the samples are among the channels, so that each has statistics of
 * its own. */
static inline bool
dp_has_own_channels(const Placement *s)
{
	return s->kind == PLACEMENT_SHARD && s->first_axis == 1 && s->axis == 1;
}

static inline bool
dp_is_micro(const struct dp_partition *d)
{
	return d->p->opt->dp == DP_MICRO;
}

static inline const Placement *
dp_placement(const struct dp_partition *d, ValId v)
{
	return &d->g->val[v].placement;
}

static inline bool
dp_has_kind(const struct dp_partition *d, ValId v, PlacementKind kind)
{
	return v && dp_placement(d, v)->kind == kind;
}

#endif
