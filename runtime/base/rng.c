/* Philox, uniform integers and shuffling without memory. */
#include "runtime/base/rng.h"

void
rng_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
	uint32_t k0 = key[0], k1 = key[1];
	uint32_t x0 = counter[0], x1 = counter[1];
	uint32_t x2 = counter[2], x3 = counter[3];

	for (int round = 0; round < 10; round++) {
		uint64_t p = (uint64_t)0xd2511f53u * x0;
		uint64_t q = (uint64_t)0xcd9e8d57u * x2;

		x0 = (uint32_t)(q >> 32) ^ x1 ^ k0;
		x1 = (uint32_t)q;
		x2 = (uint32_t)(p >> 32) ^ x3 ^ k1;
		x3 = (uint32_t)p;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = x0;
	out[1] = x1;
	out[2] = x2;
	out[3] = x3;
}

static uint64_t
draw_u64(uint64_t seed, uint32_t sequence, uint32_t more, uint64_t i)
{
	uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	uint32_t at[4] = { (uint32_t)i, (uint32_t)(i >> 32), more, sequence };
	uint32_t out[4];

	rng_philox(key, at, out);
	return (uint64_t)out[1] << 32 | out[0];
}

/* The high half of a 64 x 64 bit product: its bias, n / 2^64, is too small to
 * be seen. */
uint64_t
rng_below(uint64_t seed, uint32_t sequence, uint64_t i, uint64_t n)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)((wide)draw_u64(seed, sequence, 0, i) * n >> 64);
}

/* A Feistel network over the next even number of bits; results outside 0..n-1
 * are sent through again ("cycle walking"), at most four times on average. */
uint64_t
rng_shuffled(uint64_t seed, uint64_t round, uint64_t i, uint64_t n)
{
	unsigned half = 1;
	uint64_t mask;

	while (half < 32 && (uint64_t)1 << 2 * half < n)
		half++;
	mask = ((uint64_t)1 << half) - 1;
	do {
		uint64_t l = i >> half, r = i & mask;

		for (uint32_t k = 0; k < 4; k++) {
			uint64_t f = draw_u64(seed
			                      ^ round * 0x9e3779b97f4a7c15u,
			                      RNG_ORDER, k, r);
			uint64_t t = l ^ (f & mask);

			l = r;
			r = t;
		}
		i = l << half | r;
	} while (i >= n);
	return i;
}
