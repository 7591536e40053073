/* Products with an epilogue, and what it computes where cuBLASLt has no
 * algorithm with it. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_EPILOGUE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_EPILOGUE_CUH

#include "lines.cuh"

/* y[i] = sum of x[i * ld + j] over j below n.  A block has a row. */
template <typename T> CKR_GLOBAL
ckr_row_sums_kernel(ckr_any y, const T *x, int64_t rows, int64_t n, int64_t ld)
{
	__shared__ float room[CKR_WARP];

	CKR_BLOCK_TASKS(i, rows) {
		float s = 0.0f;

		for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
			s += ckr_get(x[i * ld + j]);
		s = ckr_block_sum(s, room);
		if (threadIdx.x == 0)
			ckr_set(y, i, s);
	}
}

/* Sums of the rows of x [rows, n], or of its columns. */
template <typename T> void
ckr_sums(ckr_any y, const T *x, bool of_rows, int64_t rows, int64_t n,
         int64_t ld, struct ckr_env *env)
{
	if (of_rows)
		CKR_EACH_BLOCK(ckr_row_sums_kernel<T>, rows, CKR_THREADS, 0,
		               env, y, x, rows, n, ld);
	else
		ckr_add_columns(y, x, rows, n, ld, false, env);
}

/* y *= gelu'(x), both [rows, n], in packs of a row.  whole: they are vectors. */
template <typename Y> CKR_GLOBAL
ckr_gelu_grad_kernel(Y *y, const Y *x, int64_t rows, int64_t n, int64_t ld,
                     bool whole)
{
	enum { N = ckr_vec<Y>::N };
	int64_t packs = ckr_ceil_div(n, N);

	CKR_TASKS(int64_t, t, rows * packs) {
		int64_t row = ckr_div(t, packs), at = (t - row * packs) * N;
		bool all = whole && at + N <= n;
		float v[N], d[N];

		ckr_fetch<N>(v, x + row * ld, at, n, all);
		ckr_fetch<N>(d, y + row * ld, at, n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			d[j] = ckr_gelu_tanh_grad(v[j], d[j]);
		ckr_write<N>(y + row * ld, d, at, n, all);
	}
}

/* As ckr_env.gemm_epilogue, in any case.  In two steps y is rounded twice. */
template <typename T, typename Y> void
ckr_gemm_epilogue(const struct ckr_gemm *g, const T *a, const T *b,
                  ckr_is<const Y> *x, const void *c, Y *y, ckr_is<Y> *sums,
                  void *workspace, int64_t bytes, struct ckr_env *env)
{
	struct ckr_gemm plain = *g;

	if (env->gemm_epilogue(env, g, a, b, x, c, y, sums, workspace,
	                       (uint64_t)bytes))
		return;
	plain.epilogue = CKR_EPILOGUE_NONE;
	env->gemm(env, &plain, a, b, NULL, c, y, workspace, (uint64_t)bytes);
	if (g->epilogue == CKR_EPILOGUE_SUMS_A)
		ckr_sums(sums, a, !g->ta, g->ta ? g->k : g->m,
		         g->ta ? g->m : g->k, g->lda, env);
	else if (g->epilogue == CKR_EPILOGUE_SUMS_B)
		ckr_sums(sums, b, g->tb, g->tb ? g->n : g->k,
		         g->tb ? g->k : g->n, g->ldb, env);
	else
		CKR_EACH(ckr_gelu_grad_kernel<Y>,
		         g->m * ckr_line_packs<Y>(g->n), env, y, x, g->m, g->n,
		         g->ldy, ckr_whole(y, g->ldy) && ckr_whole(x, g->ldy));
	if (g->epilogue == CKR_EPILOGUE_GELU_GRAD_SUMS)
		ckr_sums(sums, y, false, g->m, g->n, g->ldy, env);
}

#endif
