/* Weights from blocks of quantised ones. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_DEQUANTIZE_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_DEQUANTIZE_CUH

#include "block_layout.h"
#include "lines.cuh"

/* Weights t..t+1 of the blocks, t even. */
static __device__ inline void
ckr_unpack_pair(float *to, const struct block_int8 *q, int64_t t)
{
	const struct block_int8 *b = q + t / BLOCK_WEIGHTS;

	to[0] = (float)b->code[t % BLOCK_WEIGHTS] * b->scale;
	to[1] = (float)b->code[t % BLOCK_WEIGHTS + 1] * b->scale;
}

static __device__ inline void
ckr_unpack_pair(float *to, const struct block_nf4 *q, int64_t t)
{
	static const float level[16] = BLOCK_NF4_LEVELS;
	const struct block_nf4 *b = q + t / BLOCK_WEIGHTS;
	int code = b->code[t % BLOCK_WEIGHTS / 2];

	to[0] = level[code >> 4] * b->scale;
	to[1] = level[code & 15] * b->scale;
}

template <typename Y, typename Q> CKR_GLOBAL
ckr_dequantize_kernel(Y *y, const Q *q, int64_t n, bool whole)
{
	CKR_TASKS(int64_t, t, n * (BLOCK_WEIGHTS / 2)) {
		float v[2];

		ckr_unpack_pair(v, q, 2 * t);
		ckr_write<2>(y, v, 2 * t, n * BLOCK_WEIGHTS, whole);
	}
}

/* y = the weights of n blocks.  The pointers say of which types. */
template <typename Y, typename Q> void
ckr_dequantize(Y *y, int, const Q *q, int, int64_t n, struct ckr_env *env)
{
	CKR_EACH((ckr_dequantize_kernel<Y, Q>), n * (BLOCK_WEIGHTS / 2), env, y, q,
	         n, ckr_on_16(y));
}

#endif
