/* Random graphs of the ops that models are made of. */
#ifndef TESTS_SHARD_RANDOM_GRAPH_H
#define TESTS_SHARD_RANDOM_GRAPH_H

#include "ir/ir.h"

/* Canonical, with a loss; integers are to be below *below. */
Graph *random_graph(uint32_t seed, Diag *, int64_t *below);
/* 0..n-1; *state goes on. */
int random_below(uint32_t *state, int n);

#endif
