/* Optimizer state, gradients and parameters sharded over replicas (ZeRO,
 * Rajbhandari et al. 2020).
 *
 *     g: a summand -> reduce_scatter -> piece ---------.
 *     p -> own -> piece -> the optimizer's op, pieces -> piece'
 *     piece', p -> gather_into -> p'
 *
 * A float32 master that nothing reads but a cast to 16 bits is a state too:
 *
 *     p, a piece -> cast -> gather_pieces -> what reads the 16-bit copy
 *
 * In stage 3 so are other parameters, frozen ones included:
 *
 *     p, a piece -> gather_pieces -> what reads p
 *
 * gather_pieces is an op of forward, so the planner keeps its result or runs it
 * again (PyTorch's reshard_after_forward, for each parameter).
 */
#ifndef PASSES_GRAD_OPTIMIZER_SHARDS_H
#define PASSES_GRAD_OPTIMIZER_SHARDS_H

#include "passes/grad/grad_reduce.h"

/* Parameters of which replicas have rows (experts): so have their gradients and
 * states, at every stage. */
void optimizer_shards_of_rows(Graph *, struct update *, uint32_t n);
/* Choose whose states are cut, and make pieces of masters; `params`: of all
 * parameters but the smallest.  Appends as many nodes as it returns; node k
 * goes behind node (*behind)[k] (in scratch), 0: to the front. */
uint32_t optimizer_shards_choose(Graph *, Arena *scratch, struct update *,
                                 uint32_t n, bool params,
                                 const NodeId **behind);
/* The same in a graph that evaluates: of the parameters of which training has
 * pieces. */
uint32_t optimizer_shards_follow(Graph *, Arena *scratch,
                                 const Graph *training, const NodeId **behind);
/* Append: of summands on replicas, this one's piece of the sum. */
ValId optimizer_shard_scatter(Graph *, Diag *, const struct update *,
                              Phase phase);
/* v is a replica's piece of what the parameter's gradient has the form of. */
void optimizer_shard_mark(Graph *, ValId param, ValId v);
/* Append: what an update goes by and writes. */
ValId optimizer_shard_own(Graph *, Diag *, const struct update *);
/* Append: that is the parameter's new value. */
bool optimizer_shard_gather(Graph *, Diag *, const struct update *,
                            ValId piece);

#endif
