/* Functions that the run time calls: whether gradients are finite, and whether
 * launches succeeded.
 */
#ifndef CODEGEN_CUDA_KERNELS_FINITE_CUH
#define CODEGEN_CUDA_KERNELS_FINITE_CUH

/* Elements of T with these bits of the exponent all set. */
template <typename T> CKR_GLOBAL
ckr_finite_device(const T *x, int64_t n, T mask, bool whole,
                  struct ckr_env *env)
{
	enum { N = 16 / sizeof(T) };
	bool bad = false;

	if (env->skip_finite_check)
		return;
	CKR_TASKS(int64_t, t, ckr_ceil_div(n, N)) {
		ckr_pack<T, N> p = {};

		if (whole && t * N + N <= n)
			p = ckr_load<N>(x + t * N);
		else
			for (int j = 0; j < N && t * N + j < n; j++)
				p.v[j] = x[t * N + j];
#pragma unroll
		for (int j = 0; j < N; j++)
			bad |= (p.v[j] & mask) == mask;
	}
	if (bad)
		atomicOr(&env->device_nonfinite, 1);
}

template <typename T> void
ckr_finite(const void *x, int64_t n, T mask, struct ckr_env *env)
{
	CKR_EACH(ckr_finite_device<T>, ckr_ceil_div(n, 16 / sizeof(T)), env,
	         (const T *)x, n, mask, (uintptr_t)x % 16 == 0, env->device);
}

/* ckr_library.finite. */
extern "C" void
ckr_finite_there(const void *x, uint64_t n, int32_t dtype,
                 struct ckr_env *env)
{
	if (dtype == CKR_F32)
		ckr_finite<uint32_t>(x, (int64_t)n, 0x7f800000, env);
	else if (dtype == CKR_F64)
		ckr_finite<uint64_t>(x, (int64_t)n, (uint64_t)0x7ff << 52, env);
	else if (dtype == CKR_F16)
		ckr_finite<uint16_t>(x, (int64_t)n, 0x7c00, env);
	else if (dtype == CKR_BF16)
		ckr_finite<uint16_t>(x, (int64_t)n, 0x7f80, env);
}

/* ckr_library.launch_error. */
extern "C" const char *
ckr_launch_error(void)
{
	cudaError_t e = cudaGetLastError();

	return e ? cudaGetErrorString(e) : NULL;
}

#endif
