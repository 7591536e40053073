/* Functions that the run time calls: whether gradients are finite, and whether
 * launches succeeded.
 */
#ifndef CODEGEN_CUDA_KERNELS_FINITE_CUH
#define CODEGEN_CUDA_KERNELS_FINITE_CUH

/* Elements of T with these bits of the exponent all set. */
template <typename T> CKR_GLOBAL
ckr_finite_device(const T *x, uint64_t n, T mask, struct ckr_env *env)
{
	bool bad = false;

	if (env->skip_finite_check)
		return;
	CKR_TASKS(uint64_t, i, n)
		bad |= (x[i] & mask) == mask;
	if (bad)
		atomicOr(&env->device_nonfinite, 1);
}

/* ckr_library.finite. */
extern "C" void
ckr_finite_there(const void *x, uint64_t n, int32_t dtype,
                 struct ckr_env *env)
{
	if (dtype == CKR_F32)
		CKR_EACH(ckr_finite_device<uint32_t>, (int64_t)n, env,
		         (const uint32_t *)x, n, 0x7f800000u, env->device);
	else if (dtype == CKR_F64)
		CKR_EACH(ckr_finite_device<uint64_t>, (int64_t)n, env,
		         (const uint64_t *)x, n, (uint64_t)0x7ff << 52,
		         env->device);
	else if (dtype == CKR_F16 || dtype == CKR_BF16)
		CKR_EACH(ckr_finite_device<uint16_t>, (int64_t)n, env,
		         (const uint16_t *)x, n, (uint16_t)
		         (dtype == CKR_F16 ? 0x7c00 : 0x7f80), env->device);
}

/* ckr_library.launch_error. */
extern "C" const char *
ckr_launch_error(void)
{
	cudaError_t e = cudaGetLastError();

	return e ? cudaGetErrorString(e) : NULL;
}

#endif
