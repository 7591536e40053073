/* Philox4x32-10: random numbers addressed by a counter (Salmon et al.,
 * "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11).  No state: the same
 * place gives the same number however often and in whatever order. */
#ifndef RUNTIME_BASE_RNG_H
#define RUNTIME_BASE_RNG_H

#include <stdint.h>

void rng_philox(const uint32_t key[2], const uint32_t counter[4],
                uint32_t out[4]);
/* Uniform in 0..n-1 (n > 0), the i-th number of a sequence. */
uint64_t rng_below(uint64_t seed, uint32_t sequence, uint64_t i, uint64_t n);
/* Position of element i in a random order of 0..n-1: a bijection for every seed
 * and round. */
uint64_t rng_shuffled(uint64_t seed, uint64_t round, uint64_t i, uint64_t n);

/* Sequences that are not dropout (those are small numbers from 1 on). */
enum {
	RNG_WINDOW = 0x77696e64, RNG_ORDER = 0x6f726465,
	RNG_SAMPLE = 0x73616d70, RNG_AUGMENT = 0x6175676d
};

#endif
