/* Declarations that the files of pass deal share.
 *
 * During the pass, values have placements over a group of two ranks that split
 * the samples of one batch: S along the dim of the samples, P a partial sum on
 * each rank, R equal on all with a gradient that adds up.  The result for two
 * ranks holds for any number.
 */
#ifndef PASSES_DEAL_H
#define PASSES_DEAL_H

#include "passes/shard/shard.h"

enum { DEAL_RANKS = 2 };

struct deal {
	Pass *p;
	Graph *g;
	uint32_t nold;                  /* nodes there were */
	NodeId *order;                  /* of all nodes so far */
	size_t norder, order_cap;
	ValId *whole;                   /* by value: its sum over replicas */
	size_t nwhole, whole_cap;
	struct uses uses;               /* of nodes there were */
	ValId share;                    /* 1 / replicas; 0: not there yet */
	int64_t samples;                /* of one replica in a batch */
	const bool *grad;               /* DP_MICRO: by value that there was:
	                                 * a gradient passes */
	ValId noldval;
	bool *numbered;                 /* by value: has numbers of samples, */
	size_t nnumbered, numbered_cap; /* which replicas count from 0 */
	const char *guess;              /* the first node whose states are one,
	                                 * in p->keep; NULL: none are */
};

/* deal_states.c: states of the results of a node from those of its operands;
 * false with the reason in `why`. */
bool deal_infer(struct deal *, NodeId, char why[SHARD_WHY]);

/* In how many equal stretches of x, which is a replica's or the whole, its
 * samples are; 0: the stretches differ. */
int64_t deal_stretches(const Shape *x, const Split *);

/* deal_why.c: diagnostics, which are false.  What to try, to end them with: */
const char *deal_remedy(const struct deal *);
bool deal_refuse(struct deal *, NodeId, const char *why);
/* The states of its operands allow of none for its results. */
bool deal_refuse_mixing(struct deal *, NodeId);

/* deal_own.c: rows that each sample looks up, or writes, for itself */
/* What goes with the split of the port, at[port]; of one replica. */
bool deal_follow_own(const struct deal *, const Node *, int port, Split *at);
/* States of the results; *is: whether n is such an op at all. */
bool deal_infer_own(const struct deal *, const Node *, Split *out, bool *is);
/* States of what is a row longer than its samples, or was: a pad before a
 * scatter, and the slice behind it. */
bool deal_infer_longer(const struct deal *, const Node *, Split *out);
/* Whether v, joined to the tuples of indices that n makes, has the number of
 * its row for each sample of s, and is read as nothing else. */
bool deal_numbers_rows(const struct deal *, const Node *, ValId v,
                       const Split *);

/* deal_numbers.c: integers that number samples */
/* Elements of an integer value are each * s + rest, where s is the number of
 * their sample and lo <= rest <= hi; or `beyond`, if that is not 0. */
struct numbers {
	int64_t each, lo, hi, beyond;
};

/* Which of its elements: those at `at` of dim axis; -1: all. */
struct column {
	ValId v;
	int axis;
	int64_t at;
	int dim;                /* has samples; -1: unknown */
};

/* What is known of a column; false: nothing. */
bool deal_find_numbers(const struct deal *, struct column, struct numbers *);
/* Whether a column has nothing that tells samples by number. */
bool deal_is_unnumbered(const struct deal *, struct column);
/* Whether v has numbers of samples that a mask selects. */
bool deal_has_numbers(const struct deal *, ValId v);
/* Whether the node's results, in states `out`, have some, too; false: what it
 * computes of them is another value for the whole batch. */
bool deal_follow_numbers(struct deal *, const Node *, const Split *out);

/* deal_resized.c: rows of an output at another batch size; NULL: unknown. */
const struct output_rows *deal_resized_rows(const Pass *, const Val *output);
/* Whether it has its samples elsewhere at another batch size. */
bool deal_moves_samples(const struct deal *, ValId output);

/* deal.c */
/* Make g, which is not dealt, that of one of several replicas.  States are left
 * in it.  With DP_MICRO replicas are the micro-batches of a step: statistics of
 * batch normalisation remain their own, and what parameters decide is added up
 * over them as late as can be; *guess: the first node whose states are one, or
 * NULL. */
bool deal_graph(Pass *, Graph *, const char **guess);
/* A copy of g with one output, its loss or another value, dealt; NULL, and why
 * in p->keep.  With DP_MICRO there may be both, see deal_guess. */
Graph *deal_copy(Pass *, const Graph *, ValId output, int64_t dp,
                 const char **why);
/* Give a node its place in the new order. */
void deal_place(struct deal *, NodeId);
/* Append a node and give it its place and states; 0 after a diagnostic. */
ValId deal_put(struct deal *, Op, int nin, const ValId *in, const Attr *,
               NodeId like);
/* The sum of v, in state P, over replicas, in state R. */
ValId deal_sum(struct deal *, ValId v, NodeId like);
/* The node that writes `made` writes `old` instead. */
void deal_claim(struct deal *, ValId made, ValId old);
/* The node's result k is a value of its own from now on, which is returned;
 * another node is to claim what it was. */
ValId deal_detach(struct deal *, NodeId, int k);
ValId deal_cast(struct deal *, ValId, DType, NodeId like);
bool deal_visit(struct deal *, NodeId);
/* The node is a mean over samples of its own: each replica has its share. */
bool deal_mean(struct deal *, NodeId);

/* total.c: whether a formula of sums may have the op. */
bool total_has(Op);

/* extent.c: numbers that follow from the size of the batch */
bool deal_extent(struct deal *, NodeId);
/* Whether such, and constants, decide the value. */
bool deal_is_extent(const struct deal *, ValId);
/* Nobody asks for parts of them any more: they become constants, and what
 * follows from such. */
bool deal_settle_extents(Pass *, Graph *);

/* deal_mean.c: what divides by a number of samples.  False after a
 * diagnostic. */
bool deal_labels(struct deal *, NodeId);
bool deal_batchnorm(struct deal *, NodeId);
/* Whether the node divides a sum over samples by a constant that may be how
 * many there are, or elements they have, or makes a mean one that is not
 * biased.  In the file that is a number like any other.  One so small that it
 * is rather a factor gets a note. */
bool deal_divides_by_size(const struct deal *, const Node *);
/* What to write for such a node instead, behind a message; it may be "". */
const char *deal_mean_line(const struct deal *, const Node *);

/* deal_micro.c */
/* What is added to a total over micro-batches is of all replicas. */
bool deal_total(struct deal *, NodeId);
/* Over micro-batches an operand that remains a summand while the others are
 * added up: the op is linear in it, and rather one that parameters decide; -1:
 * there is none. */
int deal_remains(const struct deal *, const Node *);
/* Whether the op looks up by indices, which may be those of other samples for
 * all that states tell. */
bool deal_looks_up(Op);
/* Over micro-batches: states for results of such a node that does not follow
 * otherwise, as if it kept samples apart; false: there are none. */
bool deal_guess(struct deal *, NodeId);
/* States of a batch normalisation whose statistics are a micro-batch's. */
bool deal_statistics(const struct deal *, const Node *, Split *out);

static inline bool
deal_is_micro(const struct deal *d)
{
	return d->p->opt->dp == DP_MICRO;
}

static inline const Split *
deal_state(const struct deal *d, ValId v)
{
	return &d->g->val[v].split;
}

static inline bool
deal_is(const struct deal *d, ValId v, SplitKind kind)
{
	return v && deal_state(d, v)->kind == kind;
}

#endif
