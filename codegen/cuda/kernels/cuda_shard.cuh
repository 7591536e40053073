/* Kernels of a rank that holds a shard of a table or of the classes.  Indices
 * and labels count in the whole.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_SHARD_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_SHARD_CUH

#include "cuda_rows.cuh"

/* y [rows, 3]: the largest of a row's x [rows, size], the sum of exponentials
 * relative to it, the label's x if the label is this rank's. */
template <typename T> CKR_GLOBAL
ckr_vocab_stats_kernel(float *y, const T *x, struct ckr_labels l, int64_t rows,
                       int64_t size, struct ckr_part part)
{
	__shared__ float room[CKR_WARP];

	CKR_BLOCK_TASKS(i, rows) {
		const T *a = x + i * size;
		int64_t c = ckr_in_part(&part, ckr_label_read(&l, i));
		float m = -__builtin_inff(), s = 0.0f, nan = 0.0f;

		for (int64_t j = threadIdx.x; j < part.n; j += blockDim.x) {
			float v = ckr_get(a[j]);

			m = v > m ? v : m;
			nan = v != v ? v : nan;
		}
		m = ckr_block_max(m, room);
		/* nothing to see; a NaN is not nothing */
		for (int64_t j = threadIdx.x; j < part.n; j += blockDim.x)
			s += m == -__builtin_inff() ? nan
			     : ckr_exp(ckr_get(a[j]) - m);
		s = ckr_block_sum(s, room);
		if (threadIdx.x == 0) {
			y[i * 3] = m;
			y[i * 3 + 1] = s;
			y[i * 3 + 2] = c < 0 ? 0.0f : ckr_get(a[c]);
		}
	}
}

template <typename T> void
ckr_vocab_stats(float *y, const T *x, const struct ckr_labels *l,
                int64_t rows, int64_t size, struct ckr_part part,
                struct ckr_env *env)
{
	CKR_EACH_BLOCK(ckr_vocab_stats_kernel<T>, rows, CKR_THREADS, 0, env, y,
	               x, *l, rows, size, part);
}

CKR_GLOBAL
ckr_stats_lse_kernel(float *lse, const float *stats, int64_t rows,
                     int64_t shared, int64_t ranks)
{
	CKR_TASKS(int64_t, i, rows) {
		float logit;

		lse[i] = ckr_stats_row(stats, rows, i, shared, ranks, &logit);
	}
}

CKR_GLOBAL
ckr_stats_loss_kernel(ckr_any loss, float *parts, const float *stats,
                      struct ckr_labels l, int64_t rows, int64_t shared,
                      int64_t ranks, int reduction, struct ckr_env *env)
{
	ckr_loss_part(loss, parts, l, rows, reduction, env,
	              [&](int64_t i, int64_t) {
		float logit;
		float z = ckr_stats_row(stats, rows, i, shared, ranks, &logit);

		return z - logit;
	});
}

static inline void
ckr_sce_part(ckr_any loss, float *lse, float *denom, const float *stats,
             const struct ckr_labels *l, int64_t rows, int64_t shared,
             int reduction, float *parts, struct ckr_env *env)
{
	int64_t blocks = ckr_loss_blocks(rows), ranks = env->ranks;

	if (lse && rows > 0)
		CKR_EACH(ckr_stats_lse_kernel, rows, env, lse, stats, rows,
		         shared, ranks);
	CKR_LAUNCH_BLOCK(ckr_stats_loss_kernel, blocks, CKR_THREADS, 0, env,
	                 loss, parts, stats, *l, rows, shared, ranks,
	                 reduction, env->device);
	CKR_LAUNCH_BLOCK(ckr_loss_finish, 1, CKR_LOSS_PARTS, 0, env, loss,
	                 denom, parts, (int)blocks, reduction);
}

#endif
