/* Room tensor_parallel: one rank's graph from the full graph.
 *
 * in      a canonical forward graph with its loss, --tp and --sp
 * out     the same graph for one of `tp` ranks: local shapes, a placement
 *         per value, collectives where placements differ
 * must not know backward (autodiff derives it from the placements), memory,
 *         names of layers
 *
 * strategies.c finds the sharding strategies of each node, strategy_ilp.c
 * chooses among them by an integer program whose costs (strategy_cost.c) are
 * those of the collectives, forward and dual, and apply.c rewrites the graph.
 */
#ifndef PASSES_TENSOR_PARALLEL_TENSOR_PARALLEL_H
#define PASSES_TENSOR_PARALLEL_TENSOR_PARALLEL_H

#include "passes/pass.h"

PassFn pass_shard;

#endif
