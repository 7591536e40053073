/* Room expert_parallel: experts shared out to the replicas of a group (--ep).
 *
 * in      a canonical forward graph of one rank of a replica, with its loss
 * out     the same with the matrices of this replica's experts alone, and
 *         exchanges of rows before and behind their products; with
 *         --expert-capacity by slots, of which there are so many
 * must not know backward, optimizers and memory
 */
#ifndef PASSES_EXPERT_PARALLEL_EXPERT_PARALLEL_H
#define PASSES_EXPERT_PARALLEL_EXPERT_PARALLEL_H

#include "passes/pass.h"

PassFn pass_experts;

/* The greatest number that divides those of all experts of products; 0: the
 * graph has none. */
int64_t experts_count(const Graph *);

/* exchange.c: make products of experts, of which all have `all` matrices in
 * `count` replicas, those of the rows of all these replicas; false after a
 * diagnostic. */
bool exchange_rows(Pass *, Graph *, int64_t count);

#endif
