/* Adafactor (factored.h). */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_ADAFACTOR_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_ADAFACTOR_CUH

#include "cuda_squares.cuh"
#include "cuda_update.cuh"
#include "factored.h"

enum { CKR_FACTOR_LONG = 64 };          /* a sum that many threads share */

/* A step at work: row and col are the new means, each matrix's row is divided
 * by its mean, scale[matrix]; col NULL: row is the mean of every element, or
 * with old, the one before this step, follows from that. */
template <typename G> struct ckr_factored {
	int64_t matrices, rows, cols, first, end, all_rows, all_cols;
	const G *g;
	const float *row, *col, *scale, *old;

	ckr_factored(const struct ckr_adafactor *a, const G *g)
		: matrices(a->matrices), rows(a->rows), cols(a->cols),
		  first(a->first), end(ckr_least(a->first + a->n, a->matrices
		  * a->rows * a->cols)), all_rows(a->all_rows),
		  all_cols(a->all_cols), g(g), row(), col(), scale(), old()
	{
	}

	/* Elements at hand. */
	__host__ __device__ __forceinline__ int64_t
	count() const
	{
		return end > first ? end - first : 0;
	}

	/* Columns of row i, and rows of matrix m, some of which are at hand:
	 * the first one, and the one behind the last. */
	__device__ __forceinline__ int64_t
	col0(int64_t i) const
	{
		return first > i * cols ? first - i * cols : 0;
	}
	__device__ __forceinline__ int64_t
	col1(int64_t i) const
	{
		return ckr_least(end - i * cols, cols);
	}
	__device__ __forceinline__ int64_t
	row0(int64_t m) const
	{
		int64_t i = first / cols - m * rows;

		return i > 0 ? i : 0;
	}
	__device__ __forceinline__ int64_t
	row1(int64_t m) const
	{
		return ckr_least(ckr_ceil_div(end, cols) - m * rows, rows);
	}

	/* Of an element at hand, or 0. */
	__device__ __forceinline__ float
	square(int64_t at, float clip) const
	{
		float d;

		if (at < first || at >= end)
			return 0.0f;
		d = ckr_get(g[at - first]) * clip;
		return d * d;
	}
};

/* x moved towards the mean of n squares. */
CKR_DEVICE float
ckr_factor_move(float x, float squares, int64_t n, const struct ckr_env *env)
{
	return ckr_factor_towards(x, squares / (float)n, env->one_minus_beta2);
}

/* Mean i, moved towards that of n squares; old NULL: the latter. */
CKR_DEVICE float
ckr_factor_mean(const float *old, int64_t i, float squares, int64_t n,
                const struct ckr_env *env)
{
	return old ? ckr_factor_move(old[i], squares, n, env)
	           : squares / (float)n;
}

/* ---- means of squares ---- */

/* Sums over rows: a block, or a thread, for each row. */
template <bool BLOCK, typename G> CKR_GLOBAL
ckr_factor_rows(float *to, struct ckr_factored<G> f, const float *old,
                const float *norm, const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float clip = ckr_clip_scale(norm, env);
	int64_t own = BLOCK ? 0 : threadIdx.x, tasks = BLOCK ? 1 : blockDim.x;

	if (ckr_is_void(env))
		return;
	for (int64_t i = blockIdx.x * tasks + own; i < f.matrices * f.rows;
	     i += gridDim.x * tasks) {
		int64_t j = f.col0(i) + (BLOCK ? threadIdx.x : 0);
		float s = 0.0f;

		for (; j < f.col1(i); j += BLOCK ? blockDim.x : 1)
			s += f.square(i * f.cols + j, clip);
		if (BLOCK)
			s = ckr_block_sum(s, room);
		if (!BLOCK || threadIdx.x == 0)
			to[i] = ckr_factor_mean(old, i, s, f.all_cols, env);
	}
}

/* Sums over columns: a block for 32 of them, whose warps take rows in turn. */
template <typename G> CKR_GLOBAL
__launch_bounds__(1024)
ckr_factor_cols(float *to, struct ckr_factored<G> f, const float *old,
                const float *norm, const struct ckr_env *env)
{
	__shared__ float part[CKR_WARP][CKR_WARP + 1];
	int lane = (int)threadIdx.x % CKR_WARP, w = (int)threadIdx.x / CKR_WARP;
	int64_t strips = (f.cols + CKR_WARP - 1) / CKR_WARP;
	float clip = ckr_clip_scale(norm, env);

	if (ckr_is_void(env))
		return;
	CKR_BLOCK_TASKS(t, f.matrices * strips) {
		int64_t m = t / strips, j = t % strips * CKR_WARP + lane;
		float s = 0.0f;

		if (j < f.cols)
#pragma unroll 4
			for (int64_t i = f.row0(m) + w; i < f.row1(m);
			     i += CKR_WARP)
				s += f.square((m * f.rows + i) * f.cols + j,
				              clip);
		s = ckr_column_sum(s, part);
		j += w - lane;
		if (lane == 0 && j < f.cols)
			to[m * f.cols + j] = ckr_factor_mean(old,
				m * f.cols + j, s, f.all_rows, env);
	}
}

template <typename G> CKR_GLOBAL
ckr_factor_short_cols(float *to, struct ckr_factored<G> f, const float *old,
                      const float *norm, const struct ckr_env *env)
{
	float clip = ckr_clip_scale(norm, env);

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, k, f.matrices * f.cols) {
		int64_t m = k / f.cols;
		int64_t at = m * f.rows * f.cols + k % f.cols;
		float s = 0.0f;

		for (int64_t i = f.row0(m); i < f.row1(m); i++)
			s += f.square(at + i * f.cols, clip);
		to[k] = ckr_factor_mean(old, k, s, f.all_rows, env);
	}
}

/* Means of single squares, for parameters that are not factored. */
template <typename G> CKR_GLOBAL
ckr_factor_all(float *to, struct ckr_factored<G> f, const float *old,
               const float *norm, const struct ckr_env *env)
{
	float clip = ckr_clip_scale(norm, env);

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, i, f.cols)
		to[i] = ckr_factor_move(old[i], f.square(i, clip), 1, env);
}

/* Means moved towards new ones. */
CKR_GLOBAL
ckr_factor_moved(float *to, const float *old, const float *mean, int64_t n,
                 const struct ckr_env *env)
{
	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, i, n)
		to[i] = ckr_factor_move(old[i], mean[i], 1, env);
}

/* The divisor of a matrix's rows: the mean of the matrix, which is the mean of
 * its n rows or columns, `all` of them over ranks. */
CKR_GLOBAL
ckr_factor_scale(float *scale, const float *x, int64_t matrices, int64_t n,
                 int64_t all, const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float least = env->eps;

	CKR_BLOCK_TASKS(m, matrices) {
		float s = 0.0f;

		for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
			s += x[m * n + i];
		s = ckr_block_sum(s, room) / (float)all;
		if (threadIdx.x == 0)
			scale[m] = 1.0f / (s < least ? least : s);
	}
}

/* ---- the update ---- */

/* u[0 ..] = elements at .. at + 7 of those at hand; from n on they are 0. */
template <typename G> CKR_DEVICE void
ckr_factor_pack(float *u, const struct ckr_factored<G> &f, int64_t at,
                int64_t n, float clip, const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };
	int64_t r = (f.first + at) / f.cols, c = f.first + at - r * f.cols;
	float least = env->eps * env->eps;

	ckr_fetch<N>(u, f.g, at, n, ckr_on_16(f.g) && at + N <= n);
#pragma unroll
	for (int j = 0; j < N; j++) {
		float v;

		if (at + j >= n)
			break;
		u[j] *= clip;
		if (f.col) {
			int64_t m = r / f.rows;

			v = f.row[r] * f.scale[m] * f.col[m * f.cols + c];
		} else if (f.old) {
			v = ckr_factor_move(f.old[at + j], u[j] * u[j], 1, env);
		} else {
			v = f.row[at + j];
		}
		u[j] = ckr_factor_update(u[j], v, least);
		if (++c == f.cols)
			c = 0, r++;
	}
}

/* Sums of squares of the update, by tiles. */
template <typename G> CKR_GLOBAL
ckr_factor_norm(float *part, struct ckr_factored<G> f, const float *norm,
                int64_t n, const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float clip = ckr_clip_scale(norm, env);
	int64_t begin = blockIdx.x * (int64_t)CKR_SQUARE_TILE;
	int64_t end = begin + CKR_SQUARE_TILE;
	float s = 0.0f;

	end = end < n ? end : n;
	for (int64_t at = begin + threadIdx.x * CKR_UPDATE_PACK; at < end;
	     at += blockDim.x * CKR_UPDATE_PACK) {
		float u[CKR_UPDATE_PACK];

		ckr_factor_pack(u, f, at, n, clip, env);
#pragma unroll
		for (int j = 0; j < CKR_UPDATE_PACK; j++)
			s += u[j] * u[j];
	}
	s = ckr_block_sum(s, room);
	if (threadIdx.x == 0)
		part[blockIdx.x] = s;
}

/* Mean squares of the parameter and of the update, or shares of them, from
 * parts of sums. */
CKR_GLOBAL
ckr_factor_shares(float *squares, const float *size_part, const float *part,
                  int64_t nparts, int64_t all)
{
	__shared__ double room[CKR_THREADS];
	double size = ckr_sum_parts(size_part, nparts, room), over;

	__syncthreads();
	over = ckr_sum_parts(part, nparts, room);
	if (threadIdx.x)
		return;
	squares[0] = (float)(size / (double)all);
	squares[1] = (float)(over / (double)all);
}

/* The factor of the update. */
CKR_GLOBAL
ckr_factor_step(float *step, const float *squares, struct ckr_way way,
                const struct ckr_env *env)
{
	if (threadIdx.x == 0)
		*step = ckr_factor_rate((double)squares[0], (double)squares[1],
		                        ckr_own_lr(&way, env), env);
}

/* p * keep - step * update. */
template <typename Y, typename G> CKR_GLOBAL
ckr_factor_apply(Y *y, const Y *p, struct ckr_factored<G> f, const float *norm,
                 const float *step, struct ckr_rounding round,
                 struct ckr_way way, int64_t n, bool whole,
                 const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };
	float clip = ckr_clip_scale(norm, env);
	float keep = 1.0f - ckr_own_lr(&way, env) * ckr_own_decay(&way, env);
	float by = *step;

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		int64_t at = t * N;
		bool all = whole && at + N <= n;
		float u[N], x[N];

		ckr_factor_pack(u, f, at, n, clip, env);
		ckr_fetch<N>(x, p, at, n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			x[j] = x[j] * keep - by * u[j];
		ckr_round_pack(x, Y(), round, 0, at, n, env);
		ckr_write<N>(y, x, at, n, all);
	}
}

/* New means of squares; row and col are those before, or NULL. */
template <typename G> void
ckr_factor_means(const struct ckr_factored<G> &f, float *row1, float *col1,
                 const float *row, const float *col, const float *norm,
                 struct ckr_env *env)
{
	int64_t rows = f.matrices * f.rows, cols = f.matrices * f.cols;
	int64_t strips = (f.cols + CKR_WARP - 1) / CKR_WARP * f.matrices;

	if (f.cols >= CKR_FACTOR_LONG)
		CKR_EACH_BLOCK((ckr_factor_rows<true, G>), rows, CKR_THREADS, 0,
		               env, row1, f, row, norm, env->device);
	else
		CKR_EACH((ckr_factor_rows<false, G>), rows, env, row1, f, row,
		         norm, env->device);
	if (f.rows >= CKR_FACTOR_LONG)
		CKR_EACH_BLOCK(ckr_factor_cols<G>, strips, 1024, 0, env, col1,
		               f, col, norm, env->device);
	else
		CKR_EACH(ckr_factor_short_cols<G>, cols, env, col1, f, col,
		         norm, env->device);
}

/* New means from new squares' means. */
static inline void
ckr_factor_both(float *row1, float *col1, const struct ckr_adafactor *a,
                const float *row, const float *col, const float *row_mean,
                const float *col_mean, struct ckr_env *env)
{
	int64_t rows = a->matrices * a->rows, cols = a->matrices * a->cols;

	CKR_EACH(ckr_factor_moved, rows, env, row1, row, row_mean, rows,
	         env->device);
	CKR_EACH(ckr_factor_moved, cols, env, col1, col, col_mean, cols,
	         env->device);
}

/* The new means are there. */
template <typename G> void
ckr_factor_use(struct ckr_factored<G> *f, const struct ckr_adafactor *a,
               const float *row1, const float *col1, float *scale,
               struct ckr_env *env)
{
	int64_t n = a->by_cols ? a->cols : a->rows;

	f->row = row1;
	f->col = col1;
	f->scale = scale;
	if (col1)
		CKR_EACH_BLOCK(ckr_factor_scale, a->matrices,
		               n < CKR_THREADS ? CKR_WARP : CKR_THREADS, 0, env,
		               scale, a->by_cols ? col1 : row1, a->matrices, n,
		               a->by_cols ? a->all_cols : a->all_rows,
		               env->device);
}

/* Shares of the mean squares of the parameter and of the update.  part: two
 * numbers per tile. */
template <typename Y, typename G> void
ckr_factor_two(float *squares, const struct ckr_adafactor *a, const Y *p,
               const struct ckr_factored<G> &f, const float *norm, float *part,
               struct ckr_env *env)
{
	int64_t tiles = ckr_square_tiles(a->n);
	const struct ckr_square mine = { p, a->n };

	ckr_square_parts(part, &mine, 1, 0, env);
	CKR_LAUNCH_BLOCK(ckr_factor_norm<G>, tiles, CKR_THREADS, 0, env,
	                 part + tiles, f, norm, f.count(), env->device);
	CKR_LAUNCH_BLOCK(ckr_factor_shares, 1, CKR_THREADS, 0, env, squares,
	                 part, part + tiles, tiles, a->all);
}

template <typename G> void
ckr_adafactor_means(const struct ckr_adafactor *a, float *row_mean,
                    float *col_mean, const G *g, const float *norm,
                    struct ckr_env *env)
{
	struct ckr_factored<G> f(a, g);

	if (a->all)
		ckr_factor_means(f, row_mean, col_mean, NULL, NULL, norm, env);
}

/* workspace: a number per matrix, row and column, two per tile.  ORDER WORK. */
template <typename Y, typename G> void
ckr_adafactor_squares(const struct ckr_adafactor *a, float *squares,
                      const Y *p, const G *g, const float *row,
                      const float *col, const float *row_mean,
                      const float *col_mean, const float *norm,
                      float *workspace, struct ckr_env *env)
{
	int64_t rows = a->matrices * a->rows, cols = a->matrices * a->cols;
	float *row1 = workspace + a->matrices, *col1 = row1 + rows;
	struct ckr_factored<G> f(a, g);

	if (col) {
		ckr_factor_both(row1, col1, a, row, col, row_mean, col_mean,
		                env);
		ckr_factor_use(&f, a, row1, col1, workspace, env);
		workspace = col1 + cols;
	} else {
		f.old = row;
	}
	ckr_factor_two(squares, a, p, f, norm, workspace, env);
}

/* row_mean, col_mean, squares: sums over all shards; NULL: p is not sharded.
 * workspace: a number per matrix, two per tile, three.  ORDER WORK. */
template <typename Y, typename G> void
ckr_adafactor(const struct ckr_adafactor *a, Y *y, float *row1, float *col1,
              const ckr_is<Y> *p, const G *g, const float *row,
              const float *col, const float *row_mean, const float *col_mean,
              const float *squares, const float *norm, float *workspace,
              struct ckr_env *env)
{
	float *step = workspace + a->matrices, *own = step + 1, *part = own + 2;
	struct ckr_factored<G> f(a, g);
	const struct ckr_way way = { a->decay, 0, env->group };

	if (a->all == 0)
		return;
	if (row_mean)
		ckr_factor_both(row1, col1, a, row, col, row_mean, col_mean,
		                env);
	else if (col)
		ckr_factor_means(f, row1, col1, row, col, norm, env);
	else
		CKR_EACH(ckr_factor_all<G>, a->n, env, row1, f, row, norm,
		         env->device);
	ckr_factor_use(&f, a, row1, col1, workspace, env);
	if (!squares)
		ckr_factor_two(own, a, p, f, norm, part, env);
	CKR_LAUNCH_BLOCK(ckr_factor_step, 1, CKR_WARP, 0, env, step,
	                 squares ? squares : own, way, env->device);
	CKR_EACH((ckr_factor_apply<Y, G>), ckr_ceil_div(a->n, CKR_UPDATE_PACK),
	         env, y, p, f, norm, step, ckr_rounding(a->types), way,
	         f.count(), ckr_on_16(y) && ckr_on_16(p), env->device);
}

#endif
