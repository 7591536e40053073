/* Sums of squares of many tensors: a block's tile each, then all tiles. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_SQUARES_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_SQUARES_CUH

#include "lines.cuh"

enum {
	CKR_SQUARE_TILE = 1 << 16,      /* ORDER WORK */
	CKR_SQUARE_PACK = 8,
};

/* A tensor of n elements, or if n is -1 a sum of squares itself. */
struct ckr_square {
	ckr_any x;
	int64_t n;
};

static inline int64_t
ckr_square_tiles(int64_t n)
{
	return n < 0 ? 1 : (n + CKR_SQUARE_TILE - 1) / CKR_SQUARE_TILE;
}

CKR_DEVICE float
ckr_pack_squares(const struct ckr_read_tensor &t, int64_t at)
{
	enum { N = CKR_SQUARE_PACK };
	bool whole = (uintptr_t)t.x % 16 == 0 && at + N <= t.n;
	float v[N], s = 0.0f;

	CKR_FLOATS(t.type, T, ckr_fetch<N>(v, (const T *)t.x, at, t.n, whole));
#pragma unroll
	for (int j = 0; j < N; j++)
		s += v[j] * v[j];
	return s;
}

/* A tile of a tensor, on all threads of a block. */
CKR_DEVICE float
ckr_tile_squares(const struct ckr_read_tensor &t, int64_t tile, float *room)
{
	int64_t begin = tile * CKR_SQUARE_TILE, end = begin + CKR_SQUARE_TILE;
	float s = 0.0f;

	if (t.n < 0) {
		CKR_FLOATS(t.type, T, s = ckr_get(*(const T *)t.x));
		return s;
	}
	end = end < t.n ? end : t.n;
	for (int64_t at = begin + threadIdx.x * CKR_SQUARE_PACK; at < end;
	     at += blockDim.x * CKR_SQUARE_PACK)
		s += ckr_pack_squares(t, at);
	return ckr_block_sum(s, room);
}

/* clip 1: nothing to do unless gradients are clipped. */
CKR_GLOBAL
ckr_squares_kernel(float *part, CKR_ARGUMENT ckr_read_table table, int clip,
                   const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	uint32_t i;
	float s;

	if (clip && !(env->clip > 0))
		return;
	i = ckr_tensor_of(table, blockIdx.x);
	s = ckr_tile_squares(table.item[i], blockIdx.x - table.item[i].first,
	                     room);
	if (threadIdx.x == 0)
		part[blockIdx.x] = s;
}

/* part[0 ..] = the tiles of so many tensors; returns how many. */
static inline int64_t
ckr_square_parts(float *part, const struct ckr_square *list, int count,
                 int clip, struct ckr_env *env)
{
	int64_t all = 0;

	for (int i = 0; i < count;) {
		struct ckr_read_table t = {};

		for (; i < count && t.n < CKR_READ_TENSORS; i++)
			ckr_add_tensor(&t, list[i].x.at, list[i].n,
			               list[i].x.type,
			               ckr_square_tiles(list[i].n));
		if (t.blocks > 0)
			CKR_LAUNCH_BLOCK(ckr_squares_kernel, t.blocks,
			                 CKR_THREADS, 0, env, part + all, t,
			                 clip, env->device);
		all += t.blocks;
	}
	return all;
}

/* Sum of parts, of which one block takes them all. */
CKR_DEVICE double
ckr_sum_parts(const float *part, int64_t n, double *room)
{
	double s = 0;

	for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
		s += (double)part[i];
	room[threadIdx.x] = s;
	for (int k = (int)blockDim.x / 2; k > 0; k /= 2) {
		__syncthreads();
		if ((int)threadIdx.x < k)
			room[threadIdx.x] += room[threadIdx.x + k];
	}
	__syncthreads();
	return room[0];
}

/* Zero unless gradients are clipped; root 1: the norm, of gradients that are
 * not scaled. */
CKR_GLOBAL
ckr_squares_finish(float *y, const float *part, int64_t n, int root,
                   const struct ckr_env *env)
{
	__shared__ double room[CKR_THREADS];
	double s = 0;

	if (env->clip > 0)
		s = ckr_sum_parts(part, n, room);
	if (threadIdx.x == 0)
		*y = (float)(root ? sqrt(s) * (double)env->unscale : s);
}

static inline void
ckr_grad_norm(float *y, const struct ckr_square *list, int count, int root,
              float *part, struct ckr_env *env)
{
	int64_t n = ckr_square_parts(part, list, count, 1, env);

	CKR_LAUNCH_BLOCK(ckr_squares_finish, 1, CKR_THREADS, 0, env, y, part, n,
	                 root, env->device);
}

#endif
