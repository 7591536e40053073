/* Gradients of a sharded graph on their way to the updates.
 *
 *     ReplicatePartial parameter   g: a summand -> all_reduce -> update
 *     Replicate parameter          g: complete  -> update
 *     Shard parameter              g: complete in the rank's shard -> update
 */
#ifndef PASSES_GRAD_GRAD_REDUCE_H
#define PASSES_GRAD_GRAD_REDUCE_H

#include "passes/pass.h"

/* Means over a parameter that Adafactor takes from all pieces. */
enum { FACTOR_ROW, FACTOR_COL, FACTOR_SQUARES, FACTORS };

/* A trained parameter and what is known of its gradient. */
struct update {
	ValId param, grad;
	NodeId after;           /* may run behind this node */
	bool cut;               /* of its state replicas have pieces */
	bool received;          /* the gradient, in phase update, from the
	                         * stage that accumulates it */
	bool ranks_summed;      /* the gradient, over the ranks of a replica */
	ValId state[2];         /* 0: it has none */
	ValId average;          /* of the parameter; 0: none is kept */
	ValId factor[FACTORS];  /* see factors.c; 0: of a whole parameter */
};

/* Every gradient can be completed. */
bool grad_reduce_check(const Graph *, Diag *, const struct update *,
                       uint32_t n);
/* Over the ranks of a replica, then over replicas. */
enum reduce_group { REDUCE_TP, REDUCE_DP };

/* The group whose replicas have shards of the gradient. */
enum rank_group grad_reduce_shards(const Graph *, const struct update *);
/* Append what adds up the shards of a gradient, each the sum of such a group,
 * over these groups; nothing where there are none. */
bool grad_reduce_copies(Graph *, Diag *, struct update *, Phase phase);

/* The gradient has to be added up over the ranks of the group. */
bool grad_reduce_wanted(const Graph *, const struct update *,
                        enum reduce_group);
/* Append what adds it up over all groups that want it; the sum is then the
 * gradient, and the parameter's.  In phase `phase`. */
bool grad_reduce_alone(Graph *, Diag *, struct update *, Phase phase);
/* The same for all of them, in phase update; small ones share a collective. */
bool grad_reduce_all(Graph *, Diag *, Arena *scratch, struct update *,
                     uint32_t n);
/* Append what adds up these n values of type f32, made of shards, over the
 * group that holds shards, in phase update; each becomes its sum. */
bool grad_reduce_values(Graph *, Diag *, Arena *scratch, ValId *const *v, int n,
                   enum rank_group);
/* Append the norm over all gradients, each element of a whole parameter's
 * counted once.  In phase update; 0 after a diagnostic. */
ValId grad_reduce_norm(Graph *, Diag *, Arena *scratch, const struct update *,
                  uint32_t n);

/* factors.c: append the means that Adafactor takes over parameters of which
 * this rank has a piece.  norm 0: gradients are not clipped.  In phase
 * update. */
bool factors_add(Graph *, Diag *, Arena *scratch, struct update *, uint32_t n,
                 ValId norm);

#endif
