/* Sums of squares of many tensors: a block's tile each, then all tiles. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_SQUARES_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_SQUARES_CUH

#include "lines.cuh"

enum {
	CKR_SQUARE_TILE = 1 << 16,      /* ORDER WORK */
	CKR_SQUARE_LIST = 64,           /* tensors of a launch */
	CKR_SQUARE_PACK = 8,
};

/* A tensor of n elements, or if n is -1 a sum of squares itself. */
struct ckr_square {
	ckr_any x;
	int64_t n;
};

struct ckr_squares {
	struct ckr_square of[CKR_SQUARE_LIST];
	int64_t first[CKR_SQUARE_LIST + 1];     /* tile */
};

static inline int64_t
ckr_square_tiles(int64_t n)
{
	return n < 0 ? 1 : (n + CKR_SQUARE_TILE - 1) / CKR_SQUARE_TILE;
}

CKR_DEVICE float
ckr_pack_squares(const ckr_any &x, int64_t at, int64_t n)
{
	enum { N = CKR_SQUARE_PACK };
	bool whole = (uintptr_t)x.at % 16 == 0 && at + N <= n;
	float v[N], s = 0.0f;

	CKR_FLOATS(x.type, T, ckr_fetch<N>(v, (const T *)x.at, at, n, whole));
#pragma unroll
	for (int j = 0; j < N; j++)
		s += v[j] * v[j];
	return s;
}

/* A tile of x, on all threads of a block. */
CKR_DEVICE float
ckr_tile_squares(const struct ckr_square &x, int64_t tile, float *room)
{
	int64_t begin = tile * CKR_SQUARE_TILE, end = begin + CKR_SQUARE_TILE;
	float s = 0.0f;

	if (x.n < 0)
		return ckr_at(x.x, 0);
	end = end < x.n ? end : x.n;
	for (int64_t at = begin + threadIdx.x * CKR_SQUARE_PACK; at < end;
	     at += blockDim.x * CKR_SQUARE_PACK)
		s += ckr_pack_squares(x.x, at, x.n);
	return ckr_block_sum(s, room);
}

/* clip 1: nothing to do unless gradients are clipped. */
CKR_GLOBAL
ckr_squares_kernel(float *part, struct ckr_squares list, int clip,
                   const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	int k = 0;
	float s;

	if (clip && !(env->clip > 0))
		return;
	while ((int64_t)blockIdx.x >= list.first[k + 1])
		k++;
	s = ckr_tile_squares(list.of[k], blockIdx.x - list.first[k], room);
	if (threadIdx.x == 0)
		part[blockIdx.x] = s;
}

/* part[0 ..] = the tiles of so many tensors; returns how many. */
static inline int64_t
ckr_square_parts(float *part, const struct ckr_square *list, int count,
                 int clip, struct ckr_env *env)
{
	int64_t all = 0;

	for (int i = 0; i < count; i += CKR_SQUARE_LIST) {
		int n = (int)ckr_least(count - i, CKR_SQUARE_LIST);
		int64_t tiles = 0;
		struct ckr_squares s = {};

		for (int k = 0; k < n; k++) {
			s.of[k] = list[i + k];
			s.first[k] = tiles;
			tiles += ckr_square_tiles(list[i + k].n);
		}
		s.first[n] = tiles;
		if (tiles > 0)
			CKR_LAUNCH_BLOCK(ckr_squares_kernel, tiles,
			                 CKR_THREADS, 0, env, part + all, s,
			                 clip, env->device);
		all += tiles;
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
