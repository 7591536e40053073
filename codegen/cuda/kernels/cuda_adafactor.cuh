/* Adafactor: Shazeer and Stern, "Adafactor: adaptive learning rates with
 * sublinear memory cost", 2018, as torch.optim has it.
 *
 * A parameter of matrices keeps, of the squares of its gradient, means over
 * the rows and over the columns of each; another keeps all of them.  The
 * update is made twice, for its norm and to be applied, and never stored.
 */
#ifndef CKR_ADAFACTOR_H
#define CKR_ADAFACTOR_H

enum { CKR_FACTOR_LONG = 64 };          /* a sum that many threads share */

struct ckr_adafactor {
	int64_t matrices, rows, cols;   /* 1, 1, n of what is not factored */
	int decay;
	struct ckr_half_types types;
};

/* A step at work: row and col are the new means, each matrix's row is divided
 * by its mean, scale[matrix]; col NULL: row is the mean of every element. */
template <typename G> struct ckr_factored {
	int64_t matrices, rows, cols;
	const G *g;
	const float *row, *col, *scale;

	__device__ __forceinline__ float
	square(int64_t at, float clip) const
	{
		float d = ckr_get(g[at]) * clip;

		return d * d;
	}
};

/* old moved towards the mean of n squares. */
CKR_DEVICE float
ckr_factor_mean(float old, float squares, int64_t n, const struct ckr_env *env)
{
	return old + env->fresh * (squares / (float)n - old);
}

/* ---- means of squares ---- */

/* Of rows: a block's each, or a thread's. */
template <typename G> CKR_GLOBAL
ckr_factor_rows(float *to, struct ckr_factored<G> f, const float *old,
                const float *norm, const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float clip = ckr_clip_scale(norm, env);

	if (ckr_is_void(env))
		return;
	CKR_BLOCK_TASKS(i, f.matrices * f.rows) {
		float s = 0.0f;

		for (int64_t j = threadIdx.x; j < f.cols; j += blockDim.x)
			s += f.square(i * f.cols + j, clip);
		s = ckr_block_sum(s, room);
		if (threadIdx.x == 0)
			to[i] = ckr_factor_mean(old[i], s, f.cols, env);
	}
}

template <typename G> CKR_GLOBAL
ckr_factor_short_rows(float *to, struct ckr_factored<G> f, const float *old,
                      const float *norm, const struct ckr_env *env)
{
	float clip = ckr_clip_scale(norm, env);

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, i, f.matrices * f.rows) {
		float s = 0.0f;

		for (int64_t j = 0; j < f.cols; j++)
			s += f.square(i * f.cols + j, clip);
		to[i] = ckr_factor_mean(old[i], s, f.cols, env);
	}
}

/* Of columns: 32 of them a block's, whose warps take rows in turn. */
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
			for (int64_t i = w; i < f.rows; i += CKR_WARP)
				s += f.square((m * f.rows + i) * f.cols + j,
				              clip);
		__syncthreads();
		part[w][lane] = s;
		__syncthreads();
		s = ckr_warp_sum(part[lane][w]);
		j += w - lane;
		if (lane == 0 && j < f.cols)
			to[m * f.cols + j] = ckr_factor_mean(
				old[m * f.cols + j], s, f.rows, env);
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
		int64_t at = k / f.cols * f.rows * f.cols + k % f.cols;
		float s = 0.0f;

		for (int64_t i = 0; i < f.rows; i++)
			s += f.square(at + i * f.cols, clip);
		to[k] = ckr_factor_mean(old[k], s, f.rows, env);
	}
}

/* Of every element's square: of one. */
template <typename G> CKR_GLOBAL
ckr_factor_all(float *to, struct ckr_factored<G> f, const float *old,
               const float *norm, const struct ckr_env *env)
{
	float clip = ckr_clip_scale(norm, env), fresh = env->fresh;

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, i, f.cols)
		to[i] = old[i] + fresh * (f.square(i, clip) - old[i]);
}

/* What a matrix's rows are divided by: the mean of all of it. */
CKR_GLOBAL
ckr_factor_scale(float *scale, const float *row, int64_t matrices,
                 int64_t rows, const struct ckr_env *env)
{
	__shared__ float room[CKR_WARP];
	float least = env->eps;

	CKR_BLOCK_TASKS(m, matrices) {
		float s = 0.0f;

		for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
			s += row[m * rows + i];
		s = ckr_block_sum(s, room) / (float)rows;
		if (threadIdx.x == 0)
			scale[m] = 1.0f / (s < least ? least : s);
	}
}

/* ---- the update ---- */

/* u[0 ..] = elements at .. at + 7 of it; those from n on are 0. */
template <typename G> CKR_DEVICE void
ckr_factor_pack(float *u, const struct ckr_factored<G> &f, int64_t at,
                int64_t n, float clip, float least)
{
	enum { N = CKR_UPDATE_PACK };
	int64_t r = at / f.cols, c = at - r * f.cols;

	ckr_fetch<N>(u, f.g, at, n, ckr_on_16(f.g) && at + N <= n);
#pragma unroll
	for (int j = 0; j < N; j++) {
		float v;

		if (at + j >= n)
			break;
		if (f.col) {
			int64_t m = r / f.rows;

			v = f.row[r] * f.scale[m] * f.col[m * f.cols + c];
		} else {
			v = f.row[at + j];
		}
		/* a NaN stays one */
		u[j] = u[j] * clip / __builtin_sqrtf(v < least ? least : v);
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
	float clip = ckr_clip_scale(norm, env), least = env->eps * env->eps;
	int64_t begin = blockIdx.x * (int64_t)CKR_SQUARE_TILE;
	int64_t end = begin + CKR_SQUARE_TILE;
	float s = 0.0f;

	end = end < n ? end : n;
	for (int64_t at = begin + threadIdx.x * CKR_UPDATE_PACK; at < end;
	     at += blockDim.x * CKR_UPDATE_PACK) {
		float u[CKR_UPDATE_PACK];

		ckr_factor_pack(u, f, at, n, clip, least);
#pragma unroll
		for (int j = 0; j < CKR_UPDATE_PACK; j++)
			s += u[j] * u[j];
	}
	s = ckr_block_sum(s, room);
	if (threadIdx.x == 0)
		part[blockIdx.x] = s;
}

/* What the update is multiplied with, from squares of the parameter and of
 * the update. */
CKR_GLOBAL
ckr_factor_step(float *step, const float *size_part, const float *part,
                int64_t nparts, int64_t n, struct ckr_way way,
                const struct ckr_env *env)
{
	float lr = ckr_own_lr(way, env);
	__shared__ double room[CKR_THREADS];
	double size = ckr_sum_parts(size_part, nparts, room), over;

	__syncthreads();
	over = ckr_sum_parts(part, nparts, room);
	if (threadIdx.x)
		return;
	size = sqrt(size / (double)n);
	over = sqrt(over / (double)n) / (double)env->threshold;
	if (size < (double)env->eps2)
		size = (double)env->eps2;
	lr = lr < env->most ? lr : env->most;
	*step = (float)(size * (double)lr / (over > 1 ? over : 1));
}

/* p * keep - step * update. */
template <typename Y, typename G> CKR_GLOBAL
ckr_factor_apply(Y *y, const Y *p, struct ckr_factored<G> f, const float *norm,
                 const float *step, struct ckr_rounding round,
                 struct ckr_way way, int64_t n, bool whole, const struct ckr_env *env)
{
	enum { N = CKR_UPDATE_PACK };
	float clip = ckr_clip_scale(norm, env), least = env->eps * env->eps;
	float keep = 1.0f - ckr_own_lr(way, env) * ckr_own_decay(way, env);
	float by = *step;

	if (ckr_is_void(env))
		return;
	CKR_TASKS(int64_t, t, (n + N - 1) / N) {
		int64_t at = t * N;
		bool all = whole && at + N <= n;
		float u[N], x[N];

		ckr_factor_pack(u, f, at, n, clip, least);
		ckr_fetch<N>(x, p, at, n, all);
#pragma unroll
		for (int j = 0; j < N; j++)
			x[j] = x[j] * keep - by * u[j];
		ckr_round_pack(x, Y(), round, 0, at, n, env);
		ckr_write<N>(y, x, at, n, all);
	}
}

/* New means of squares. */
template <typename G> void
ckr_factor_means(const struct ckr_factored<G> &f, float *row1, float *col1,
                 const float *row, const float *col, const float *norm,
                 float *scale, struct ckr_env *env)
{
	int64_t rows = f.matrices * f.rows, cols = f.matrices * f.cols;
	int64_t strips = (f.cols + CKR_WARP - 1) / CKR_WARP * f.matrices;

	if (f.cols >= CKR_FACTOR_LONG)
		CKR_LAUNCH_BLOCK(ckr_factor_rows<G>,
		                 ckr_least(rows, CKR_MOST_BLOCKS), CKR_THREADS,
		                 0, env, row1, f, row, norm, env->device);
	else
		CKR_LAUNCH(ckr_factor_short_rows<G>, ckr_blocks(rows),
		           CKR_THREADS, 0, env, row1, f, row, norm,
		           env->device);
	if (f.rows >= CKR_FACTOR_LONG)
		CKR_LAUNCH_BLOCK(ckr_factor_cols<G>,
		                 ckr_least(strips, CKR_MOST_BLOCKS), 1024, 0,
		                 env, col1, f, col, norm, env->device);
	else
		CKR_LAUNCH(ckr_factor_short_cols<G>, ckr_blocks(cols),
		           CKR_THREADS, 0, env, col1, f, col, norm,
		           env->device);
	CKR_LAUNCH_BLOCK(ckr_factor_scale,
	                 ckr_least(f.matrices, CKR_MOST_BLOCKS), f.rows
	                 < CKR_THREADS ? CKR_WARP : CKR_THREADS, 0, env, scale,
	                 row1, f.matrices, f.rows, env->device);
}

/* scratch: a number per matrix, two per tile, one.  ORDER WORK. */
template <typename Y, typename G> void
ckr_adafactor(const struct ckr_adafactor *a, Y *y, float *row1, float *col1,
              const ckr_is<Y> *p, const G *g, const float *row,
              const float *col, const float *norm, float *scratch,
              struct ckr_env *env)
{
	int64_t n = a->matrices * a->rows * a->cols;
	int64_t tiles = ckr_square_tiles(n);
	float *size = scratch + a->matrices, *part = size + tiles;
	float *step = part + tiles;
	struct ckr_factored<G> f = { a->matrices, a->rows, a->cols, g, row1,
		col1, scratch };
	const struct ckr_square whole = { p, n };
	const struct ckr_way way = { a->decay, 0, env->group };

	if (n == 0)
		return;
	ckr_square_parts(size, &whole, 1, 0, env);
	if (col)
		ckr_factor_means(f, row1, col1, row, col, norm, scratch, env);
	else
		CKR_LAUNCH(ckr_factor_all<G>, ckr_blocks(n), CKR_THREADS, 0,
		           env, row1, f, row, norm, env->device);
	CKR_LAUNCH_BLOCK(ckr_factor_norm<G>, tiles, CKR_THREADS, 0, env, part,
	                 f, norm, n, env->device);
	CKR_LAUNCH_BLOCK(ckr_factor_step, 1, CKR_THREADS, 0, env, step, size,
	                 part, tiles, n, way, env->device);
	CKR_LAUNCH((ckr_factor_apply<Y, G>),
	           ckr_blocks((n + CKR_UPDATE_PACK - 1) / CKR_UPDATE_PACK),
	           CKR_THREADS, 0, env, y, p, f, norm, step,
	           ckr_rounding(a->types), way, n,
	           ckr_on_16(y) && ckr_on_16(p), env->device);
}

#endif
