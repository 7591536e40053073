/* An interning table: small numbers for sequences of words; and hashes mixed
 * from what makes them up. */
#ifndef PASSES_REMAT_MODEL_INTERN_H
#define PASSES_REMAT_MODEL_INTERN_H

#include "ir/base/table.h"

#include <stdint.h>

/* Two small numbers must not cancel out: h is spread first. */
static inline uint64_t
mix64(uint64_t h, uint64_t x)
{
	h = (h * 0xbf58476d1ce4e5b9u ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static inline uint64_t
bits_of_double(double x)
{
	union { double x; uint64_t u; } bits = { .x = x };

	return bits.u;
}

typedef uint64_t intern_hash(const uint64_t *word, size_t n);

struct intern_entry {
	uint64_t *word;
	size_t n;
};

/* Numbers from 0 in order of appearance; equal ones for equal sequences, and
 * for no others, whatever the hash. */
struct intern_table {
	struct intern_entry *entry;     /* by number */
	int32_t n;
	struct table at;                /* number + 1 by hash */
	intern_hash *hash;
	Arena *arena;
};

/* Room for so many numbers. */
struct intern_table intern_new(size_t most, Arena *);
int32_t intern_words(struct intern_table *, const uint64_t *word, size_t n);

#endif
