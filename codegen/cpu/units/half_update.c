/* Optimizer steps, accumulation, gradient norm of 16-bit parameters, states
 * and gradients: blocks are widened, updated as float32 and rounded.
 *
 * Parameters and states are rounded at random, up with a probability that is
 * the part cut off: a step smaller than half a unit in the last place would
 * otherwise be lost each time, and the weights of a norm, which begin at 1,
 * would never move.  The halves of words that decide depend on seed, step,
 * parameter and element alone.
 */
#include "half_update.h"
#include "half.h"
#include "sums.h"
#include "update.h"
#include "words.h"

double
ckr_half_norm_part(const void *g, int type, int64_t n,
                   const struct ckr_env *env)
{
	double part[CKR_NORM_PARTS], s = 0;
	int64_t size = (n + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS, nparts;

	size = (size + CKR_HALF_BLOCK - 1) / CKR_HALF_BLOCK * CKR_HALF_BLOCK;
	nparts = n > 0 ? (n + size - 1) / size : 0;
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < nparts; i++) {
		float x[CKR_HALF_BLOCK];
		int64_t end = ckr_least(n, (i + 1) * size);

		part[i] = 0;
		for (int64_t j = i * size; j < end; j += CKR_HALF_BLOCK) {
			int64_t k = ckr_least(end - j, CKR_HALF_BLOCK);

			ckr_widen(x, g, type, j, k);
			part[i] += (double)ckr_sum_squares(x, k);
		}
	}
	for (int64_t i = 0; i < nparts; i++)
		s += part[i];
	return s;
}

/* Place in the whole of element i of what is updated; *left: how many follow it
 * there as here, itself included. */
static inline uint64_t
ckr_shard_index(const struct ckr_shard *c, int64_t i, int64_t *left)
{
	int64_t row, at, whole = 0, n = 0;
	int k = 0;

	i += c->first;
	row = i / c->inner;
	at = row % c->local;
	for (; at >= c->size[k]; k++) {
		at -= c->size[k];
		n += c->segment[k];
	}
	for (int j = 0; j < c->nsegment; j++)
		whole += c->segment[j];
	*left = (c->size[k] - at) * c->inner - i % c->inner;
	n += c->shard * c->size[k] + at;
	return (uint64_t)((row / c->local * whole + n) * c->inner
	                  + i % c->inner);
}

/* Round x in place to what the type holds; which: 0 the parameter, 1, 2 its
 * states, each with words of its own. */
static inline void
ckr_round_random(float *x, int type, struct ckr_half_types t, uint32_t which,
                 int64_t at, int64_t n, const struct ckr_env *env)
{
	uint32_t cut = type == CKR_BF16 ? 0xffff : 0x1fff;
	uint32_t buffer[CKR_WORD_BUFFER];
	uint16_t half[CKR_WORDS];

	for (int64_t j = 0, k; j < n; j += k) {
		int64_t left = n - j;
		uint64_t index = t.shard
		                 ? ckr_shard_index(t.shard, at + j, &left)
		                 : (uint64_t)(at + j);
		const uint32_t *word;

		k = ckr_least(ckr_least(n - j, left), CKR_WORDS);
		word = ckr_words(buffer, index / 2, k / 2 + 1,
		                 t.stream + (which << 28), env);
		memcpy(half, (const char *)word + index % 2 * sizeof *half,
		       (size_t)k * sizeof *half);
#pragma omp simd
		for (int64_t i = 0; i < k; i++) {
			uint32_t u = ckr_float_bits(x[j + i]);
			uint32_t r = (u + (half[i] & cut)) & ~cut;

			x[j + i] = ckr_bits_float((u & 0x7f800000) ==
			                          0x7f800000 ? u : r);
		}
	}
}

void
ckr_half_store(void *y, void *copy, struct ckr_half_types t, int64_t at,
               float *x, int64_t n, const struct ckr_env *env)
{
	if (copy)
		ckr_narrow(copy, t.copy, at, x, n);
	if (t.y != CKR_F32)
		ckr_round_random(x, t.y, t, 0, at, n, env);
	ckr_narrow(y, t.y, at, x, n);
}

/* A block of a state, where it is or widened in the buffer. */
static inline float *
ckr_half_state(float *buffer, const void *state, struct ckr_half_types t,
               int64_t at, int64_t n)
{
	if (t.state == CKR_F32)
		return (float *)state + at;
	ckr_widen(buffer, state, t.state, at, n);
	return buffer;
}

/* The same block, new, to where it is kept. */
static inline void
ckr_half_keep(void *state, struct ckr_half_types t, uint32_t which, int64_t at,
              float *x, int64_t n, const struct ckr_env *env)
{
	if (t.state == CKR_F32)
		return;
	ckr_round_random(x, t.state, t, which, at, n, env);
	ckr_narrow(state, t.state, at, x, n);
}

void
ckr_half_accumulate(void *y, const void *acc, const void *g,
                    struct ckr_half_types t, int64_t n,
                    const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float a[CKR_HALF_BLOCK], d[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_widen(a, acc, t.y, i, k);
		ckr_widen(d, g, t.g, i, k);
		ckr_accumulate(a, a, d, k, env);
		ckr_narrow(y, t.y, i, a, k);
	}
}

void
ckr_half_sgd(void *y, void *copy, const void *p, const void *g,
             const float *norm, struct ckr_half_types t, int64_t n, int decay,
             const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float x[CKR_HALF_BLOCK], d[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_widen(x, p, t.y, i, k);
		ckr_widen(d, g, t.g, i, k);
		ckr_sgd(x, x, d, norm, k, decay, env);
		ckr_half_store(y, copy, t, i, x, k, env);
	}
}

void
ckr_half_sgdm(void *y, void *m1, void *copy, const void *p, const void *g,
              const void *m, const float *norm, struct ckr_half_types t,
              int64_t n, int decay, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float x[CKR_HALF_BLOCK], d[CKR_HALF_BLOCK];
		float mb[CKR_HALF_BLOCK], *ms;
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_widen(x, p, t.y, i, k);
		ckr_widen(d, g, t.g, i, k);
		ms = ckr_half_state(mb, m, t, i, k);
		ckr_sgdm(x, ms, x, d, ms, norm, k, decay, env);
		ckr_half_store(y, copy, t, i, x, k, env);
		ckr_half_keep(m1, t, 1, i, ms, k, env);
	}
}

void
ckr_half_lion(void *y, void *m1, void *copy, const void *p, const void *g,
              const void *m, const float *norm, struct ckr_half_types t,
              int64_t n, int decay, const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float x[CKR_HALF_BLOCK], d[CKR_HALF_BLOCK];
		float mb[CKR_HALF_BLOCK], *ms;
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_widen(x, p, t.y, i, k);
		ckr_widen(d, g, t.g, i, k);
		ms = ckr_half_state(mb, m, t, i, k);
		ckr_lion(x, ms, x, d, ms, norm, k, decay, env);
		ckr_half_store(y, copy, t, i, x, k, env);
		ckr_half_keep(m1, t, 1, i, ms, k, env);
	}
}

void
ckr_half_adamw(void *y, void *m1, void *v1, void *copy, const void *p,
               const void *g, const void *m, const void *v, const float *norm,
               struct ckr_half_types t, int64_t n, int decay, int coupled,
               const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float x[CKR_HALF_BLOCK], d[CKR_HALF_BLOCK];
		float mb[CKR_HALF_BLOCK], vb[CKR_HALF_BLOCK], *ms, *vs;
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);

		ckr_widen(x, p, t.y, i, k);
		ckr_widen(d, g, t.g, i, k);
		ms = ckr_half_state(mb, m, t, i, k);
		vs = ckr_half_state(vb, v, t, i, k);
		ckr_adamw(x, ms, vs, x, d, ms, vs, norm, k, decay, coupled,
		          env);
		ckr_half_store(y, copy, t, i, x, k, env);
		ckr_half_keep(m1, t, 1, i, ms, k, env);
		ckr_half_keep(v1, t, 2, i, vs, k, env);
	}
}
