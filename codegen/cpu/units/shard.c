/* Kernels of a rank that holds a shard of a table or of the classes.  Indices
 * and labels count in the whole.
 */
#include "shard.h"
#include "index.h"
#include "sums.h"

void
ckr_gather_part(void *y, const void *x, const void *idx, int idx_bytes,
                int64_t outer, int64_t size, int64_t nidx, int64_t row,
                struct ckr_part part, struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) collapse(2) \
	if (outer * nidx * row > CKR_SMALL)
	for (int64_t o = 0; o < outer; o++) {
		for (int64_t i = 0; i < nidx; i++) {
			char *to = (char *)y + (o * nidx + i) * row;
			int64_t k = ckr_in_part(&part, ckr_index(idx, i,
				idx_bytes, part.whole, env));

			if (k < 0)
				memset(to, 0, (size_t)row);
			else
				ckr_move(to, (const char *)x +
				         (o * size + k) * row, row);
		}
	}
}

void
ckr_scatter_add_part(float *y, const float *acc, const float *upd,
                     const void *idx, int idx_bytes, int64_t outer,
                     int64_t size, int64_t nidx, int64_t inner,
                     struct ckr_part part, struct ckr_env *env)
{
	int64_t threads = env->threads;

	ckr_scatter_start(y, acc, outer * size, inner, env);
#pragma omp parallel for num_threads(env->threads) \
	if (outer * nidx * inner > CKR_SMALL)
	for (int64_t t = 0; t < threads; t++) {
		for (int64_t i = 0; i < outer * nidx; i++) {
			int64_t k = ckr_in_part(&part, ckr_index(idx, i % nidx,
				idx_bytes, part.whole, env));
			const float *from = upd + i * inner;
			float *to;

			if (k < 0 || k % threads != t)
				continue;
			to = y + (i / nidx * size + k) * inner;
#pragma omp simd
			for (int64_t j = 0; j < inner; j++)
				to[j] += from[j];
		}
	}
}

/* ---- cross entropy over shards of the classes ---- */

void
ckr_vocab_stats(float *y, const float *x, const struct ckr_labels *l,
                int64_t rows, int64_t size, struct ckr_part part,
                const struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (rows * size > CKR_SMALL)
	for (int64_t i = 0; i < rows; i++) {
		const float *a = x + i * size;
		int64_t c = l->nbytes == 8 ? ((const int64_t *)l->v)[i]
		                           : ((const int32_t *)l->v)[i];
		float *to = y + i * 3;

		to[0] = ckr_max_of(a, part.n);
		/* nothing to see; a NaN is not nothing */
		to[1] = to[0] == -__builtin_inff()
		        && ckr_sum(a, part.n) <= 0.0f
		        ? 0.0f : ckr_sum_exp(a, part.n, to[0]);
		c = ckr_in_part(&part, c);
		to[2] = c < 0 ? 0.0f : a[c];
	}
}

/* Log-sum-exp of row i, and the label's logit, from stats [ranks, rows, 3] in
 * the order of ranks. */
static inline float
ckr_stats_row(const float *stats, int64_t rows, int64_t i, int64_t shared,
              const struct ckr_env *env, float *logit)
{
	const float *a = stats + i * 3;
	int64_t step = rows * 3 * shared, end = rows * 3 * env->ranks;
	float m = -__builtin_inff(), s = 0.0f;

	*logit = 0.0f;
	for (int64_t r = 0; r < end; r += step)
		m = a[r] > m ? a[r] : m;
	for (int64_t r = 0; r < end; r += step) {
		s += a[r + 1] * ckr_exp(a[r] - m);
		*logit += a[r + 2];
	}
	return m + ckr_log(s);
}

void
ckr_sce_part(float *loss, float *lse, float *denom, const float *stats,
             const struct ckr_labels *l, int64_t rows, int64_t shared,
             int reduction, struct ckr_env *env)
{
	double sum[CKR_LOSS_PARTS], weight[CKR_LOSS_PARTS];
	int64_t part = (rows + CKR_LOSS_PARTS - 1) / CKR_LOSS_PARTS;
	int64_t nparts = part ? (rows + part - 1) / part : 0;

	for (int64_t p = 0; p < nparts; p++) {
		double s = 0, w = 0;
		int64_t end = (p + 1) * part < rows ? (p + 1) * part : rows;

		for (int64_t k = p * part; k < end; k++) {
			int64_t c = ckr_label(l, k, env);
			float logit, t;
			float z = ckr_stats_row(stats, rows, k, shared, env,
			                        &logit);

			if (lse)
				lse[k] = z;
			t = c < 0 ? 0.0f : z - logit;
			if (loss && !reduction)
				loss[k] = t;
			s += (double)t;
			w += (double)ckr_label_weight(l, c);
		}
		sum[p] = s;
		weight[p] = w;
	}
	ckr_loss_finish(loss, denom, sum, weight, nparts, reduction);
}

void
ckr_sce_grad_part(float *dx, const float *dloss, const float *x,
                  const struct ckr_labels *l, const float *lse,
                  const float *denom, int64_t rows, int64_t size,
                  struct ckr_part part, int reduction, struct ckr_env *env)
{
#pragma omp parallel for num_threads(env->threads) \
	if (rows * size > CKR_SMALL)
	for (int64_t i = 0; i < rows; i++) {
		int64_t c = ckr_label(l, i, env), n = c < 0 ? 0 : part.n;
		float g = ckr_label_weight(l, c), z = lse[i];
		const float *a = x + i * size;
		float *to = dx + i * size;

		g *= dloss[reduction ? 0 : i];
		g = reduction == 1 ? g / *denom : g;
#pragma omp simd
		for (int64_t q = 0; q < n; q++)
			to[q] = ckr_exp(a[q] - z) * g;
		for (int64_t q = n; q < size; q++)
			to[q] = 0.0f;
		c = ckr_in_part(&part, c);
		if (c >= 0)
			to[c] -= g;
	}
}
