/* Contents for tests of sharding. */
#ifndef TESTS_SHARD_FILL_H
#define TESTS_SHARD_FILL_H

#include "tests/ref/train.h"

/* Random numbers by name for inputs, parameters, buffers: floats from low
 * to high, integers from 1 to below - 1. */
void shard_fill(struct run *, int64_t below, double low, double high);

#endif
