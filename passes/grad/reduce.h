/* Gradients of a sharded graph on their way to the updates.
 *
 *     whole parameter, state R     g: a summand -> all_reduce -> update
 *     whole parameter, state I     g: complete  -> update
 *     cut parameter                g: complete in the rank's piece -> update
 */
#ifndef PASSES_REDUCE_H
#define PASSES_REDUCE_H

#include "passes/pass.h"

/* A trained parameter and what is known of its gradient. */
struct update {
	ValId param, grad;
	NodeId after;           /* may run behind this node */
	bool cut;               /* of its state replicas have pieces */
};

/* Every gradient can be completed and every update done by pieces; means:
 * it takes means over a parameter. */
bool reduce_check(const Graph *, Diag *, const struct update *, uint32_t n,
                  bool means);
/* Over the ranks of a replica, then over replicas. */
enum reduce_group { REDUCE_TP, REDUCE_DP };

/* The gradient has to be added up over the ranks of the group. */
bool reduce_wanted(const Graph *, const struct update *, enum reduce_group);
/* Append what adds it up over all groups that want it; the sum is then the
 * gradient, and the parameter's.  In phase `phase`. */
bool reduce_alone(Graph *, Diag *, struct update *, Phase phase);
/* The same for all of them, in phase update; small ones share a collective. */
bool reduce_all(Graph *, Diag *, Arena *scratch, struct update *, uint32_t n);
/* Append the norm over all gradients, each element of a whole parameter's
 * counted once.  In phase update; 0 after a diagnostic. */
ValId reduce_norm(Graph *, Diag *, Arena *scratch, const struct update *,
                  uint32_t n);

#endif
