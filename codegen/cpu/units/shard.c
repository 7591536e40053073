/* Cross entropy of a rank that holds a shard of the classes.  Labels count in
 * the whole.
 */
#include "shard.h"
#include "sums.h"

void
ckr_vocab_stats(float *y, const float *x, const struct ckr_labels *l,
                int64_t rows, int64_t size, struct ckr_part part,
                const struct ckr_env *env)
{
	CKR_SHARE(rows * size)
	for (int64_t i = 0; i < rows; i++) {
		const float *a = x + i * size;
		int64_t c = ckr_in_part(&part, ckr_label_read(l, i));
		float *to = y + i * 3;

		to[0] = ckr_max_of(a, part.n);
		/* nothing to see; a NaN is not nothing */
		to[1] = to[0] == -__builtin_inff()
		        && ckr_sum(a, part.n) <= 0.0f
		        ? 0.0f : ckr_sum_exp(a, part.n, to[0]);
		to[2] = c < 0 ? 0.0f : a[c];
	}
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
			float z = ckr_stats_row(stats, rows, k, shared,
			                        env->ranks, &logit);

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
	CKR_SHARE(rows * size)
	for (int64_t i = 0; i < rows; i++) {
		int64_t c = ckr_label(l, i, env), n = c < 0 ? 0 : part.n;
		float g = ckr_loss_factor(l, dloss, denom, i, c, reduction);
		const float *a = x + i * size;
		float *to = dx + i * size, z = lse[i];

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
