/* Elements from one type to another, and out of gaps: for products whose
 * operands differ. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_WIDEN_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_WIDEN_CUH

#include "lines.cuh"

enum { CKR_WIDEN_PACK = 8 };

template <typename Y, typename X> CKR_GLOBAL
ckr_convert_kernel(Y *y, const X *x, int64_t n, bool whole)
{
	enum { N = CKR_WIDEN_PACK };

	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		bool all = whole && t * N + N <= n;
		float v[N];

		ckr_fetch<N>(v, x, t * N, n, all);
		ckr_write<N>(y, v, t * N, n, all);
	}
}

/* y = x, of n elements. */
template <typename Y, typename X> void
ckr_convert(Y *y, const X *x, int64_t n, struct ckr_env *env)
{
	CKR_EACH((ckr_convert_kernel<Y, X>), ckr_ceil_div(n, CKR_WIDEN_PACK),
	         env, y, x, n, ckr_on_16(x) && ckr_on_16(y));
}

template <typename X> CKR_GLOBAL
ckr_spread_kernel(float *y, const X *x, int rank, struct ckr_list extent,
                  struct ckr_list stride, int64_t n)
{
	CKR_TASKS(int64_t, t, n) {
		int64_t at = 0, left = t;

		for (int i = rank - 1; i >= 0; i--) {
			at += left % extent.v[i] * stride.v[i];
			left /= extent.v[i];
		}
		y[t] = ckr_get(x[at]);
	}
}

/* The elements of x without gaps, as float32. */
template <typename X> void
ckr_widen(float *y, const X *x, int rank, const int64_t *extent,
          const int64_t *stride, struct ckr_env *env)
{
	struct ckr_list e = {}, s = {};
	int64_t n = 1;

	for (int i = 0; i < rank; i++) {
		e.v[i] = extent[i];
		s.v[i] = stride[i];
		n *= extent[i];
	}
	CKR_EACH(ckr_spread_kernel<X>, n, env, y, x, rank, e, s, n);
}

#endif
