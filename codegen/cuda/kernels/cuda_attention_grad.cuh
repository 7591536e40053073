/* Gradients of attention in float32. */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_ATTENTION_GRAD_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_ATTENTION_GRAD_CUH

#include "cuda_attention.cuh"

/* Statistics from which a row's probabilities are recomputed: p = e^(s - m -
 * z).  delta: do times o.  ORDER WORK. */
struct ckr_row_stats {
	float m, z, delta;
};

/* Row t of all heads. */
struct ckr_row_place {
	int64_t b, h, i;

	__device__ __forceinline__
	ckr_row_place(const struct ckr_attention &a, int64_t t)
	{
		int64_t head = ckr_div(t, a.queries);

		b = ckr_div(head, a.heads);
		h = head - b * a.heads;
		i = t - head * a.queries;
	}
};

/* If all scores of a row are far from zero, as under a mask that adds a large
 * number to the whole row, rounding in log-sum-exp loses the number of scores.
 * So the sum is taken again from scores shifted to near zero. */
template <typename T> CKR_DEVICE void
ckr_near_row(struct ckr_row_stats *st, const ckr_scores &of,
             const ckr_rows<T> &q, const ckr_rows<T> &k, int64_t i)
{
	int lane = (int)threadIdx.x % CKR_WARP;
	float m = -__builtin_inff(), sum = 0.0f;

	for (int pass = 0; pass < 2; pass++) {
		for (int64_t j = lane; j < ckr_visible(of.a, i);
		     j += CKR_WARP) {
			float x = 0.0f;

			for (int64_t d = 0; d < q.n; d++)
				x += ckr_get(q.x[d])
					* ckr_get(k.x[j * k.ld + d]);
			x = of.score(x, i, j);
			if (pass)
				sum += ckr_exp(x - m);
			else
				m = x > m ? x : m;
		}
		m = ckr_warp_max(m);
	}
	st->m = m;
	st->z = ckr_log(ckr_warp_sum(sum));
}

/* Rounding does not harm this log-sum-exp, or nothing is visible. */
CKR_DEVICE bool
ckr_is_near(float z)
{
	return (z >= -256.0f && z <= 256.0f) || z == -__builtin_inff();
}

enum { CKR_DELTA_LANES = 8 };           /* of a row */

/* Eight lanes per row: vectors of a head of 64 columns of 16 bits.  whole: o and
 * do are vectors. */
template <typename T> CKR_GLOBAL
ckr_attention_rows(struct ckr_attention a, struct ckr_attention_grad p,
                   struct ckr_row_stats *stats, bool whole,
                   struct ckr_env *env)
{
	enum { N = ckr_vec<T>::N, LANES = CKR_DELTA_LANES,
	       ROWS = CKR_WARP / LANES };
	int lane = (int)threadIdx.x % CKR_WARP, own = lane / LANES;
	int64_t rows = a.batch * a.heads * a.queries;
	int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
		/ CKR_WARP;

	for (int64_t t = warp * ROWS; t < rows;
	     t += (int64_t)gridDim.x * blockDim.x / CKR_WARP * ROWS) {
		struct ckr_row_stats st = { 0.0f, 0.0f, 0.0f };
		ckr_row_place at(a, ckr_least(t + own, rows - 1));
		const T *o = ckr_rows_of<T>(p.o, a.o, at.b, at.h, at.i,
			a.queries, a.vdim).x;
		const T *d_o = ckr_rows_of<T>(p.d_o, a.d_o, at.b, at.h, at.i,
			a.queries, a.vdim).x;

		st.z = p.lse[ckr_least(t + own, rows - 1)];
		for (int64_t j = lane % LANES * N; j < a.vdim; j += LANES * N) {
			float x[N], y[N];

			ckr_fetch<N>(x, o, j, a.vdim, whole);
			ckr_fetch<N>(y, d_o, j, a.vdim, whole);
#pragma unroll
			for (int k = 0; k < N; k++)
				st.delta += x[k] * y[k];
		}
		for (int k = 1; k < LANES; k *= 2)
			st.delta += __shfl_xor_sync(0xffffffffu, st.delta, k);
		/* all lanes for each row that is far */
		for (int r = 0; r < ROWS && t + r < rows; r++) {
			struct ckr_row_stats far = st;
			ckr_row_place of(a, t + r);

			if (ckr_is_near(__shfl_sync(0xffffffffu, st.z,
			                            r * LANES)))
				continue;
			ckr_near_row(&far, ckr_scores(a, p.mask, of.b, of.h,
				env), ckr_rows_of<T>(p.q, a.q, of.b, of.h, of.i,
				a.queries, a.dim), ckr_rows_of<T>(p.k, a.k,
				of.b, of.h / (a.heads / a.groups), 0, a.keys,
				a.dim), of.i);
			st = own == r ? far : st;
		}
		if (lane % LANES == 0 && t + own < rows)
			stats[t + own] = st;
	}
}

/* The probability of a score; none where nothing is visible. */
CKR_DEVICE float
ckr_probability(float s, const struct ckr_row_stats &st)
{
	return st.z == -__builtin_inff() ? 0.0f : ckr_exp(s - st.m - st.z);
}

/* A tile of scores again: s becomes the dropped probabilities, ds the adjoint
 * of the scores.  Who reads them waits first, as ckr_tile_add does. */
template <typename T> CKR_DEVICE void
ckr_tile_adjoint(float *s, float *ds, float *room, const ckr_scores &of,
                 const struct ckr_attention_grad &p,
                 const struct ckr_row_stats *stats, int64_t i0, int64_t j0)
{
	const struct ckr_attention &a = of.a;
	int64_t g = of.h / (a.heads / a.groups);
	int x = (int)threadIdx.x;
	float sc[2][4], dp[2][4];

	ckr_tile_scores(sc, room,
		ckr_rows_of<T>(p.q, a.q, of.b, of.h, i0, a.queries, a.dim),
		ckr_rows_of<T>(p.k, a.k, of.b, g, j0, a.keys, a.dim));
	ckr_tile_scores(dp, room,
		ckr_rows_of<T>(p.d_o, a.d_o, of.b, of.h, i0, a.queries,
		               a.vdim),
		ckr_rows_of<T>(p.v, a.v, of.b, g, j0, a.keys, a.vdim));
	/* barriers in there: s and ds of the tile before have been read */
#pragma unroll
	for (int r = 0; r < 2; r++)
#pragma unroll
		for (int c = 0; c < 4; c++) {
			int n = x / 8 + r * 16, k = x % 8 + c * 8;
			int64_t i = i0 + n, j = j0 + k;
			bool in = i < a.queries && j < ckr_visible(a, i);
			float e = 0.0f, d = 0.0f, by;

			if (in) {
				const struct ckr_row_stats st = stats[
					(of.b * a.heads + of.h) * a.queries
					+ i];

				e = ckr_probability(of.score(sc[r][c], i, j),
				                    st);
				of.kept<1>(&by, i, j);
				d = e * (dp[r][c] * by - st.delta);
				e *= by;
			}
			s[n * CKR_TILE_LD + k] = e;
			ds[n * CKR_TILE_LD + k] = d;
		}
}

template <typename T> CKR_GLOBAL
__launch_bounds__(CKR_TILE_THREADS)
ckr_attention_dq(struct ckr_attention a, struct ckr_attention_grad p,
                 const struct ckr_row_stats *stats, struct ckr_env *env)
{
	__shared__ float room[2 * CKR_TILE * CKR_TILE_LD];
	__shared__ float s[CKR_TILE * CKR_TILE_LD];
	__shared__ float ds[CKR_TILE * CKR_TILE_LD];
	const ckr_place at(blockIdx.x, a.heads, a.queries, a.dim);
	const ckr_scores of(a, p.mask, at.b, at.h, env);
	int64_t g = at.h / (a.heads / a.groups);
	int64_t end = ckr_visible(a, at.tile + CKR_TILE - 1);
	float acc[4][4] = {};

	for (int64_t j = 0; j < end; j += CKR_TILE) {
		ckr_tile_adjoint<T>(s, ds, room, of, p, stats, at.tile, j);
		ckr_tile_add(acc, ds, false, room, ckr_rows_of<T>(p.k, a.k,
			at.b, g, j, a.keys, a.dim), at.column);
	}
	ckr_tile_store((T *)p.dq + p.start[0] + at.b * a.dq[0]
		+ at.h * a.dq[1] + at.tile * a.dq[2], a.dq[2],
		a.queries - at.tile, a.dim, at.column, acc, a.scale);
}

template <typename T> CKR_GLOBAL
__launch_bounds__(CKR_TILE_THREADS, 3)
ckr_attention_dkv(struct ckr_attention a, struct ckr_attention_grad p,
                  const struct ckr_row_stats *stats, struct ckr_env *env)
{
	__shared__ float room[2 * CKR_TILE * CKR_TILE_LD];
	__shared__ float s[CKR_TILE * CKR_TILE_LD];
	__shared__ float ds[CKR_TILE * CKR_TILE_LD];
	const ckr_place at(blockIdx.x, a.groups, a.keys,
	                   a.dim > a.vdim ? a.dim : a.vdim);
	int64_t per = a.heads / a.groups, c = at.column;
	int64_t first = ckr_first_query(a, at.tile) / CKR_TILE * CKR_TILE;
	float dk[4][4] = {}, dv[4][4] = {};

	for (int64_t h = at.h * per; h < (at.h + 1) * per; h++) {
		const ckr_scores of(a, p.mask, at.b, h, env);

		for (int64_t i = first; i < a.queries; i += CKR_TILE) {
			ckr_tile_adjoint<T>(s, ds, room, of, p, stats, i,
			                    at.tile);
			if (p.dk && c < a.dim)
				ckr_tile_add(dk, ds, true, room,
					ckr_rows_of<T>(p.q, a.q, at.b, h, i,
					a.queries, a.dim), c);
			if (p.dv && c < a.vdim)
				ckr_tile_add(dv, s, true, room,
					ckr_rows_of<T>(p.d_o, a.d_o, at.b, h,
					i, a.queries, a.vdim), c);
		}
	}
	if (p.dk)
		ckr_tile_store((T *)p.dk + p.start[1] + at.b * a.dk[0]
			+ at.h * a.dk[1] + at.tile * a.dk[2], a.dk[2],
			a.keys - at.tile, a.dim, c, dk, a.scale);
	if (p.dv)
		ckr_tile_store((T *)p.dv + p.start[2] + at.b * a.dv[0]
			+ at.h * a.dv[1] + at.tile * a.dv[2], a.dv[2],
			a.keys - at.tile, a.vdim, c, dv, 1.0f);
}

template <typename T> void
ckr_tile_grad(const struct ckr_attention *a,
              const struct ckr_attention_grad *p,
              const struct ckr_row_stats *stats, struct ckr_env *env)
{
	int64_t wide = a->dim > a->vdim ? a->dim : a->vdim;
	int64_t k = ckr_places(a->batch * a->groups, a->keys, wide);
	int64_t q = ckr_places(a->batch * a->heads, a->queries, a->dim);

	if ((p->dk || p->dv) && k > 0)
		CKR_LAUNCH_BLOCK(ckr_attention_dkv<T>, k, CKR_TILE_THREADS, 0,
		                 env, *a, *p, stats, env->device);
	if (p->dq && q > 0)
		CKR_LAUNCH_BLOCK(ckr_attention_dq<T>, q, CKR_TILE_THREADS, 0,
		                 env, *a, *p, stats, env->device);
}

/* The kernels on tensor cores. */
template <typename T, int HD> void
ckr_flash_grad(const struct ckr_attention *, const struct ckr_attention_grad *,
               const struct ckr_row_stats *, struct ckr_env *);

template <typename T, int HD> void
ckr_attention_grad(const struct ckr_attention *a,
                   const struct ckr_attention_grad *p,
                   struct ckr_row_stats *stats, struct ckr_env *env)
{
	int64_t rows = a->batch * a->heads * a->queries;
	bool whole = ckr_flash_vectors((const T *)p->o, a->o, a->vdim)
	             && ckr_flash_vectors((const T *)p->d_o, a->d_o, a->vdim);

	if (rows > 0)
		CKR_LAUNCH_BLOCK(ckr_attention_rows<T>,
		                 ckr_blocks(rows * CKR_DELTA_LANES),
		                 CKR_THREADS, 0, env, *a, *p, stats, whole,
		                 env->device);
	if constexpr (HD > 0)
		ckr_flash_grad<T, HD>(a, p, stats, env);
	else
		ckr_tile_grad<T>(a, p, stats, env);
}

#include "cuda_flash_grad.cuh"

#endif
