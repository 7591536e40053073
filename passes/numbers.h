/* Small numbers for 64-bit keys, and keys mixed from what makes them up. */
#ifndef PASSES_NUMBERS_H
#define PASSES_NUMBERS_H

#include "ir/arena.h"

#include <stdint.h>

/* Two small numbers must not cancel out: h is spread first. */
static inline uint64_t
mix64(uint64_t h, uint64_t x)
{
	h = (h * 0xbf58476d1ce4e5b9u ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Numbers from 0 in order of appearance. */
struct numbers {
	uint64_t *key;
	int32_t *id;                    /* number + 1; 0: free */
	size_t mask;
	int32_t n;
};

/* Room for so many keys. */
struct numbers numbers_new(size_t most, Arena *);
int32_t numbers_of(struct numbers *, uint64_t key);

#endif
