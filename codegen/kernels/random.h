/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
 * easy as 1, 2, 3", SC'11).  The word of an element depends on seed, step,
 * micro-batch, stream and the element's index alone, so that no mask need be
 * stored.
 */
#ifndef CKR_RANDOM_H
#define CKR_RANDOM_H

enum { CKR_WORDS = 1024, CKR_WORD_BUFFER = CKR_WORDS + 64 };

/* The words of elements index .. index + n - 1, n at most CKR_WORDS.  They
 * are written into buffer, the first one at the address returned. */
static inline const uint32_t *
ckr_words(uint32_t *buffer, uint64_t index, int64_t n, uint32_t stream,
          const struct ckr_env *env)
{
	uint64_t first = index / 4, nblock = (index % 4 + (uint64_t)n + 3) / 4;
	uint32_t k0 = (uint32_t)env->seed, k1 = (uint32_t)(env->seed >> 32);
	uint32_t step = (uint32_t)env->step, micro = env->micro << 16;

	for (uint64_t b = 0; b < nblock; b += 16) {
#pragma omp simd
		for (uint32_t j = 0; j < 16; j++) {
			uint64_t block = first + b + j;
			uint32_t c0 = (uint32_t)block, c2 = step;
			uint32_t c1 = (uint32_t)(block >> 32) ^ micro;
			uint32_t c3 = stream, a = k0, k = k1;

			for (int r = 0; r < 10; r++) {
				uint64_t p = (uint64_t)c0 * 0xD2511F53u;
				uint64_t q = (uint64_t)c2 * 0xCD9E8D57u;

				c0 = (uint32_t)(q >> 32) ^ c1 ^ a;
				c1 = (uint32_t)q;
				c2 = (uint32_t)(p >> 32) ^ c3 ^ k;
				c3 = (uint32_t)p;
				a += 0x9E3779B9u;
				k += 0xBB67AE85u;
			}
			buffer[(b + j) * 4] = c0;
			buffer[(b + j) * 4 + 1] = c1;
			buffer[(b + j) * 4 + 2] = c2;
			buffer[(b + j) * 4 + 3] = c3;
		}
	}
	return buffer + index % 4;
}

/* Words below this are dropped; nothing is outside training. */
static inline uint32_t
ckr_drop_below(double ratio, const struct ckr_env *env)
{
	return env->training ? (uint32_t)(ratio * 4294967296.0) : 0;
}

static inline float
ckr_drop_scale(double ratio, const struct ckr_env *env)
{
	return env->training ? (float)(1.0 / (1.0 - ratio)) : 1.0f;
}

#endif
