/* Room data_parallel: the graph of one replica, and of one micro-batch, from
 * that of the whole batch.
 *
 * in      a canonical forward graph with its loss; --dp and --grad-accum
 * out     the same graph for a part of the batch: what depends on more than a
 *         sample is added up over replicas, or counted over micro-batches
 *         before the step
 * must not know ranks that share a replica, backward and memory
 *
 * Pass replicate (dp_*.c) walks the nodes with the placements of values over
 * replicas.  Pass micro (micro.c) partitions a copy in the same way and takes
 * from it what has to be counted (count_passes.c).
 */
#ifndef PASSES_DATA_PARALLEL_DATA_PARALLEL_H
#define PASSES_DATA_PARALLEL_DATA_PARALLEL_H

#include "ir/plan.h"
#include "passes/pass.h"

PassFn pass_replicate, pass_micro;
/* Set what depends on --zero in a graph of replicas. */
void dp_set_stage(const Pass *, Graph *);

/* count_passes.c: order nodes by count passes, then the step; remove unused
 * nodes. */
void count_pass_order(Graph *, Arena *scratch);

/* dp_partition.c: the partitioned copy of g with one output, its loss or
 * another value; NULL: *why is in p->keep.  With DP_MICRO both may exist:
 * dp_assume_placement. */
Graph *dp_partition_copy(Pass *, const Graph *, ValId output, int64_t dp,
                         const char **why);
/* Rows of an output at another batch size; NULL: unknown. */
const struct output_rows *dp_other_batch_rows(const Pass *, const Val *output);

/* dp_other_batch.c: whether g and its graph of another batch size have equal
 * partitions; else *why is in p->keep, or NULL if that has no partition. */
bool dp_agrees(Pass *, const Graph *g, const Graph *other_batch,
               const char **why);

/* formula_ops.c: whether a formula of sums may have the op, and as what;
 * FORMULA_OPS: a scalar's result is the scalar itself. */
bool formula_op_of(Op, enum formula_op *);

#endif
