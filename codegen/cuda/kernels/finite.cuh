/* Functions that the run time calls: whether gradients are finite, and whether
 * launches succeeded.
 */
#ifndef CODEGEN_CUDA_KERNELS_FINITE_CUH
#define CODEGEN_CUDA_KERNELS_FINITE_CUH

/* Whether elements have these bits of the exponent all set: those that a thread
 * takes, vector `first` and every stride-th after it. */
template <typename T> CKR_DEVICE bool
ckr_any_nonfinite(const struct ckr_read_tensor &t, T mask, int64_t first,
                  int64_t stride)
{
	enum { N = 16 / sizeof(T) };
	const T *x = (const T *)t.x;
	bool whole = (uintptr_t)x % 16 == 0, bad = false;

	for (int64_t at = first * N; at < t.n; at += stride * N) {
		ckr_pack<T, N> p = {};

		if (whole && at + N <= t.n)
			p = ckr_load<N>(x + at);
		else
			for (int j = 0; j < N && at + j < t.n; j++)
				p.v[j] = x[at + j];
#pragma unroll
		for (int j = 0; j < N; j++)
			bad |= (p.v[j] & mask) == mask;
	}
	return bad;
}

CKR_GLOBAL
ckr_finite_kernel(CKR_ARGUMENT ckr_read_table table, struct ckr_env *env)
{
	uint32_t i = ckr_tensor_of(table, blockIdx.x);
	const struct ckr_read_tensor &t = table.item[i];
	int64_t first = (int64_t)(blockIdx.x - t.first) * blockDim.x
		+ threadIdx.x;
	int64_t stride = (int64_t)ckr_blocks_of(table, i) * blockDim.x;
	bool bad;

	if (env->skip_finite_check)
		return;
	if (t.type == CKR_F32)
		bad = ckr_any_nonfinite<uint32_t>(t, 0x7f800000, first, stride);
	else if (t.type == CKR_F64)
		bad = ckr_any_nonfinite(t, (uint64_t)0x7ff << 52, first,
		                        stride);
	else
		bad = ckr_any_nonfinite<uint16_t>(t, t.type == CKR_F16 ? 0x7c00
		                                  : 0x7f80, first, stride);
	if (bad)
		atomicOr(&env->device_nonfinite, 1);
}

static void
ckr_launch_checks(struct ckr_joined_launch *checks, struct ckr_env *env)
{
	const auto *t = (const struct ckr_read_table *)checks->table;

	CKR_LAUNCH(ckr_finite_kernel, t->blocks, CKR_THREADS, 0, env, *t,
	           env->device);
	checks->n = 0;
}

/* ckr_library.finite. */
extern "C" void
ckr_finite_there(const void *x, uint64_t n, int32_t dtype,
                 struct ckr_env *env)
{
	int64_t vector = dtype == CKR_F32 ? 4 : dtype == CKR_F64 ? 2 : 8;
	struct ckr_joined_launch own, *all = env->joined ? env->joined : &own;
	auto *t = (struct ckr_read_table *)all->table;

	own.n = 0;
	if (!n || (dtype != CKR_F32 && dtype != CKR_F64 && dtype != CKR_F16
	           && dtype != CKR_BF16))
		return;
	if (all->n && (all->launch != ckr_launch_checks
	               || all->n == CKR_READ_TENSORS))
		all->launch(all, env);
	if (!all->n)
		t->n = t->blocks = 0;
	all->launch = ckr_launch_checks;
	ckr_add_tensor(t, x, (int64_t)n, (uint8_t)dtype,
	               ckr_blocks(ckr_ceil_div((int64_t)n, vector)));
	all->n = t->n;
	if (all == &own)
		own.launch(&own, env);
}

/* ckr_library.launch_error. */
extern "C" const char *
ckr_launch_error(void)
{
	cudaError_t e = cudaGetLastError();

	return e ? cudaGetErrorString(e) : NULL;
}

#endif
