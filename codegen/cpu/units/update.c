/* Optimizer steps, averages, accumulation, gradient norm: blocks of 16-bit
 * parameters, states and gradients are widened, updated as float32 and rounded.
 */
#include "update.h"
#include "half.h"
#include "sums.h"
#include "words.h"

/* Sum of squares in parts of `size`, each in blocks. */
static inline double
ckr_norm_parts(const void *g, int type, int64_t n, int64_t size, int64_t block,
               const struct ckr_env *env)
{
	double part[CKR_NORM_PARTS], s = 0;
	int64_t nparts = (n + size - 1) / size;

	CKR_SHARE(n)
	for (int64_t i = 0; i < nparts; i++) {
		float x[CKR_HALF_BLOCK];
		int64_t end = ckr_least(n, (i + 1) * size);

		part[i] = 0;
		for (int64_t j = i * size; j < end; j += block) {
			int64_t k = ckr_least(end - j, block);

			part[i] += (double)ckr_sum_squares(ckr_row(x, g, type,
			                                           j, k), k);
		}
	}
	for (int64_t i = 0; i < nparts; i++)
		s += part[i];
	return s;
}

double
ckr_norm_part(const float *g, int64_t n, const struct ckr_env *env)
{
	int64_t size = (n + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS;

	size = size < 4096 ? 4096 : (size + 63) / 64 * 64;
	return ckr_norm_parts(g, CKR_F32, n, size, size, env);
}

double
ckr_half_norm_part(const void *g, int type, int64_t n,
                   const struct ckr_env *env)
{
	enum { BLOCK = CKR_HALF_BLOCK };
	int64_t size = (n + CKR_NORM_PARTS - 1) / CKR_NORM_PARTS;

	size = n > 0 ? (size + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
	return ckr_norm_parts(g, type, n, size, BLOCK, env);
}

static inline void
ckr_round_run(float *x, int type, struct ckr_update_types t, uint32_t which,
              int64_t at, int64_t n, const struct ckr_env *env)
{
	uint32_t buffer[CKR_WORD_BUFFER], cut = ckr_cut_off(type);
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
		for (int64_t i = 0; i < k; i++)
			x[j + i] = ckr_round_random(x[j + i], half[i], cut);
	}
}

void
ckr_update_store(void *y, int type, struct ckr_update_types t, uint32_t which,
                 int64_t at, float *x, int64_t n, const struct ckr_env *env)
{
	if (!y || type == CKR_F32)
		return;
	ckr_round_run(x, type, t, which, at, n, env);
	ckr_narrow(y, type, at, x, n);
}

void
ckr_accumulate(void *y, const void *acc, const void *g,
               struct ckr_update_types t, int64_t n, const struct ckr_env *env)
{
	CKR_SHARE(n)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float yb[CKR_HALF_BLOCK], ab[CKR_HALF_BLOCK];
		float gb[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);
		float *to = ckr_row_new(yb, y, t.y, i);
		const float *d = ckr_row(gb, g, t.g, i, k);

		if (env->micro == 0) {
			memcpy(to, d, (size_t)k * sizeof *to);
		} else {
			const float *a = ckr_row(ab, acc, t.y, i, k);

#pragma omp simd
			for (int64_t j = 0; j < k; j++)
				to[j] = a[j] + d[j];
		}
		ckr_row_put(y, t.y, i, to, k);
	}
}

void
ckr_ema(void *y, const void *average, const void *p, struct ckr_update_types t,
        int64_t n, const struct ckr_env *env)
{
	const float weight = env->ema_weight;

	CKR_SHARE(n)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float yb[CKR_HALF_BLOCK], ab[CKR_HALF_BLOCK];
		float pb[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);
		float *to = ckr_row_new(yb, y, t.y, i);
		const float *a = ckr_row(ab, average, t.y, i, k);
		const float *x = ckr_row(pb, p, t.g, i, k);

#pragma omp simd
		for (int64_t j = 0; j < k; j++)
			to[j] = ckr_ema_next(a[j], x[j], weight);
	}
}

void
ckr_update(ckr_rule *rule, void *y, void *m1, void *v1, void *copy,
           const void *p, const void *g, const void *m, const void *v,
           const float *norm, struct ckr_update_types t, int64_t n, int decay,
           int coupled, const struct ckr_env *env)
{
	const struct ckr_way way = { decay, coupled, env->group };
	const struct ckr_step step = ckr_step_of(norm, &way, env);

	CKR_SHARE(n)
	for (int64_t i = 0; i < n; i += CKR_HALF_BLOCK) {
		float pb[CKR_HALF_BLOCK], gb[CKR_HALF_BLOCK];
		float mb[CKR_HALF_BLOCK], vb[CKR_HALF_BLOCK];
		int64_t k = ckr_least(n - i, CKR_HALF_BLOCK);
		float *x = ckr_row_new(pb, y, t.y, i);
		float *a = ckr_row_new(mb, m1, t.state, i);
		float *b = ckr_row_new(vb, v1, t.state, i);

		rule(step, x, a, b, ckr_row(pb, p, t.y, i, k),
		     ckr_row(gb, g, t.g, i, k), ckr_row(mb, m, t.state, i, k),
		     ckr_row(vb, v, t.state, i, k), k);
		if (copy)
			ckr_narrow(copy, t.copy, i, x, k);
		ckr_update_store(y, t.y, t, 0, i, x, k, env);
		ckr_update_store(m1, t.state, t, 1, i, a, k, env);
		ckr_update_store(v1, t.state, t, 2, i, b, k, env);
	}
}
