/* What the files of pass replicas share.
 *
 * While it runs, values are in the states of a group of two ranks that share
 * out the samples of one batch: S along the dim of the samples, P a summand on
 * each, R equal on all with a gradient that adds up.  Whatever follows for two
 * follows for any number.
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
};

/* deal_states.c: states of the results of a node from those of its operands;
 * false with the reason in `why`. */
bool deal_infer(struct deal *, NodeId, char why[SHARD_WHY]);

/* In how many equal stretches of x, which is a replica's or the whole, its
 * samples are; 0: the stretches differ. */
int64_t deal_stretches(const Shape *x, const Split *);

/* deal.c */
/* Make g, which is not dealt, that of one of several replicas.  States are left
 * in it. */
bool deal_graph(Pass *, Graph *);
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

/* deal_mean.c: what divides by a number of samples.  False after a
 * diagnostic. */
bool deal_labels(struct deal *, NodeId);
bool deal_batchnorm(struct deal *, NodeId);
/* Whether the node divides a sum over samples by a constant that may be how
 * many there are. */
bool deal_divides_by_size(const struct deal *, const Node *);

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
