/* Attention in float32, of any types and extents: a block has a tile of
 * queries, or of keys, and walks the tiles of the other side.
 *
 * No matrix of all scores exists.  The forward pass keeps the log-sum-exp of
 * every row, from which the backward pass computes the probabilities again
 * (Dao et al., "FlashAttention", 2022): dk and dv in a loop over queries, dq
 * in one over keys, so that nothing is added atomically.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_ATTENTION_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_ATTENTION_CUH

#include "lines.cuh"

enum {
	CKR_TILE = 32,                  /* queries and keys */
	CKR_TILE_COLUMNS = 64,          /* of o, dq, dk, dv of a block */
	CKR_TILE_THREADS = 128,
	CKR_TILE_LD = CKR_TILE_COLUMNS + 1,
};

/* Strides are those of batch, head, row, in elements. */
struct ckr_attention {
	int64_t batch, heads, groups, queries, keys, dim, vdim;
	int64_t q[3], k[3], v[3];
	int64_t mask[4];
	int mask_type;                          /* CKR_NONE: there is none */
	int causal;
	float scale;
	double ratio;
	uint32_t stream;
	/* of a piece of the batch or the heads: heads of the whole, 0 if it is
	 * the whole, and how many (image, head) come before */
	int64_t all, first;
	/* Query i of this replica is query i + before[i >= stretch] of the
	 * `all_queries` that replicas with these samples have together; causal:
	 * query n of these sees keys j <= n + shift. */
	int64_t shift, all_queries, stretch, before[2];
	int type;               /* of q, k, v, o and their gradients */
	int64_t d_o[3], o[3], dq[3], dk[3], dv[3];
};

struct ckr_attention_grad {
	const void *d_o, *q, *k, *v, *o;
	const float *lse;
	const void *mask;
	void *dq, *dk, *dv;                     /* NULL: not wanted */
	int64_t start[3];                       /* where in these it begins */
};

/* Which of all queries this replica's query i is. */
CKR_DEVICE int64_t
ckr_query(const struct ckr_attention &a, int64_t i)
{
	return i + a.before[i >= a.stretch];
}

/* Keys that query i sees. */
CKR_DEVICE int64_t
ckr_visible(const struct ckr_attention &a, int64_t i)
{
	int64_t n = a.causal ? ckr_query(a, i) + 1 + a.shift : a.keys;

	return n < 0 ? 0 : n > a.keys ? a.keys : n;
}

/* The first query that sees key j; causal rows below it do too. */
CKR_DEVICE int64_t
ckr_first_query(const struct ckr_attention &a, int64_t j)
{
	int64_t n = a.causal ? j - a.shift : 0, i = n - a.before[0];

	if (i >= a.stretch) {
		i = n - a.before[1];
		return i < a.stretch ? a.stretch : i;
	}
	return i < 0 ? 0 : i;
}

CKR_DEVICE float
ckr_masked(float x, uint8_t visible)
{
	return visible ? x : -__builtin_inff();
}

template <typename M> CKR_DEVICE float
ckr_masked(float x, M mask)
{
	return x + ckr_get(mask);
}

/* Parameters of a block's scores beside its operands. */
struct ckr_scores {
	const struct ckr_attention &a;
	const void *mask;
	int64_t b, h;
	uint32_t below;
	float keep;                     /* what is not dropped is multiplied */
	const struct ckr_env *env;

	__device__ __forceinline__
	ckr_scores(const struct ckr_attention &at, const void *m, int64_t batch,
	           int64_t head, const struct ckr_env *e)
		: a(at), mask(m), b(batch), h(head), below(0), keep(1.0f),
		  env(e)
	{
		if (a.ratio > 0) {
			below = ckr_drop_below(a.ratio, e);
			keep = ckr_drop_scale(a.ratio, e);
		}
	}

	/* The score of (i, j) from the product of its rows. */
	__device__ __forceinline__ float
	score(float x, int64_t i, int64_t j) const
	{
		x *= a.scale;
		if (a.mask_type != CKR_NONE && i < a.queries && j < a.keys)
			x = masked(x, b * a.mask[0] + h * a.mask[1]
			           + i * a.mask[2] + j * a.mask[3]);
		return j < ckr_visible(a, i) && i < a.queries
		     ? x : -__builtin_inff();
	}

	__device__ __forceinline__ float
	masked(float x, int64_t at) const
	{
		if (a.mask_type == CKR_BOOL)
			return ckr_masked(x, ((const uint8_t *)mask)[at]);
		CKR_FLOATS(a.mask_type, M,
		           return ckr_masked(x, ((const M *)mask)[at]));
	}

	/* What the probabilities of (i, j) .. (i, j + N - 1) are multiplied
	 * with. */
	template <int N> __device__ __forceinline__ void
	kept(float *by, int64_t i, int64_t j) const
	{
		int64_t at = b * (a.all ? a.all : a.heads) + h + a.first;
		uint32_t w[N];

		if (!below) {
			for (int n = 0; n < N; n++)
				by[n] = 1.0f;
			return;
		}
		ckr_draw<N>(w, (uint64_t)((at * a.all_queries + ckr_query(a, i))
		                         * a.keys + j),
		            a.stream, env);
#pragma unroll
		for (int n = 0; n < N; n++)
			by[n] = w[n] >= below ? keep : 0.0f;
	}
};

/* ---- tiles of float32 in shared memory ---- */

/* Rows of a head: `rows` of them exist, of n elements. */
template <typename T> struct ckr_rows {
	const T *x;
	int64_t ld, rows, n;
};

/* Columns c .. c + width - 1 of 32 rows; what does not exist is 0. */
template <typename T> CKR_DEVICE void
ckr_tile_load(float *to, const ckr_rows<T> &r, int64_t c, int width)
{
	for (int e = (int)threadIdx.x; e < CKR_TILE * width;
	     e += CKR_TILE_THREADS) {
		int i = e / width, j = e % width;

		to[i * CKR_TILE_LD + j] = i < r.rows && c + j < r.n
			? ckr_get(r.x[i * r.ld + c + j]) : 0.0f;
	}
}

/* Products of all rows of x with all of y: a thread has rows i0 and i0 + 16,
 * columns j0 + 8 c. */
template <typename T> CKR_DEVICE void
ckr_tile_scores(float s[2][4], float *room, const ckr_rows<T> &x,
                const ckr_rows<T> &y)
{
	int i0 = (int)threadIdx.x / 8, j0 = (int)threadIdx.x % 8;
	float *p = room, *q = room + CKR_TILE * CKR_TILE_LD;

#pragma unroll
	for (int r = 0; r < 2; r++)
#pragma unroll
		for (int c = 0; c < 4; c++)
			s[r][c] = 0.0f;
	for (int64_t d = 0; d < x.n; d += CKR_TILE) {
		__syncthreads();
		ckr_tile_load(p, x, d, CKR_TILE);
		ckr_tile_load(q, y, d, CKR_TILE);
		__syncthreads();
#pragma unroll 8
		for (int k = 0; k < CKR_TILE; k++)
#pragma unroll
			for (int r = 0; r < 2; r++)
#pragma unroll
				for (int c = 0; c < 4; c++)
					s[r][c] += p[(i0 + r * 16) * CKR_TILE_LD
					           + k] * q[(j0 + c * 8)
					           * CKR_TILE_LD + k];
	}
}

/* acc += op(s) y, of columns c0 .. c0 + 63 of y: a thread has rows i0 + 8 r,
 * columns j0 + 16 c.  trans: s is [32 of y, 32]. */
template <typename T> CKR_DEVICE void
ckr_tile_add(float acc[4][4], const float *s, bool trans, float *room,
             const ckr_rows<T> &y, int64_t c0)
{
	int i0 = (int)threadIdx.x / 16, j0 = (int)threadIdx.x % 16;
	int along = trans ? 1 : CKR_TILE_LD, step = trans ? CKR_TILE_LD : 1;

	__syncthreads();
	ckr_tile_load(room, y, c0, CKR_TILE_COLUMNS);
	__syncthreads();
#pragma unroll 4
	for (int k = 0; k < CKR_TILE; k++)
#pragma unroll
		for (int r = 0; r < 4; r++)
#pragma unroll
			for (int c = 0; c < 4; c++)
				acc[r][c] += s[(i0 + r * 8) * along + k * step]
					* room[k * CKR_TILE_LD + j0 + c * 16];
}

template <typename T> CKR_DEVICE void
ckr_tile_store(T *y, int64_t ld, int64_t rows, int64_t n, int64_t c0,
               float acc[4][4], float by)
{
	int i0 = (int)threadIdx.x / 16, j0 = (int)threadIdx.x % 16;

	for (int r = 0; r < 4; r++)
		for (int c = 0; c < 4; c++) {
			int64_t i = i0 + r * 8, j = c0 + j0 + c * 16;

			if (i < rows && j < n)
				ckr_put(&y[i * ld + j], acc[r][c] * by);
		}
}

/* Rows from i on of a head, of n elements. */
template <typename T> CKR_DEVICE ckr_rows<T>
ckr_rows_of(const void *x, const int64_t *stride, int64_t b, int64_t h,
            int64_t i, int64_t rows, int64_t n)
{
	return { (const T *)x + b * stride[0] + h * stride[1] + i * stride[2],
		stride[2], rows - i, n };
}

/* Which tile of which head a block has, and which columns of the result. */
struct ckr_place {
	int64_t b, h, tile, column;

	__device__ __forceinline__
	ckr_place(int64_t t, int64_t heads, int64_t rows, int64_t columns)
	{
		int64_t tiles = (rows + CKR_TILE - 1) / CKR_TILE;
		int64_t across = (columns + CKR_TILE_COLUMNS - 1)
			/ CKR_TILE_COLUMNS;

		across = across < 1 ? 1 : across;
		column = t % across * CKR_TILE_COLUMNS;
		t /= across;
		tile = t % tiles * CKR_TILE;
		h = t / tiles % heads;
		b = t / tiles / heads;
	}
};

static inline int64_t
ckr_places(int64_t heads, int64_t rows, int64_t columns)
{
	int64_t across = (columns + CKR_TILE_COLUMNS - 1) / CKR_TILE_COLUMNS;

	return heads * ((rows + CKR_TILE - 1) / CKR_TILE)
	       * (across < 1 ? 1 : across);
}

/* ---- forward ---- */

struct ckr_softmax_state {
	float m[CKR_TILE], l[CKR_TILE], alpha[CKR_TILE];
};

/* Row r of scores, a warp's: to probabilities relative to the largest so far;
 * alpha: what makes those before relative to it. */
CKR_DEVICE void
ckr_tile_softmax(struct ckr_softmax_state *t, int r, float *s,
                 const ckr_scores &of, int64_t i, int64_t j)
{
	int lane = (int)threadIdx.x % CKR_WARP;
	float x = s[lane], was = t->m[r], top = ckr_warp_max(x), ref, sum, by;

	top = top > was ? top : was;
	ref = top == -__builtin_inff() ? 0.0f : top;
	x = ckr_exp(x - ref);
	sum = ckr_warp_sum(x);
	of.kept<1>(&by, i, j + lane);
	s[lane] = x * by;
	__syncwarp();                   /* all lanes have read m[r] */
	if (lane == 0) {
		t->alpha[r] = ckr_exp(was - ref);
		t->l[r] = t->l[r] * t->alpha[r] + sum;
		t->m[r] = top;
	}
}

template <typename T> CKR_GLOBAL
__launch_bounds__(CKR_TILE_THREADS, 4)
ckr_attention_kernel(struct ckr_attention a, T *o, float *lse, const T *q,
                     const T *k, const T *v, const void *mask,
                     struct ckr_env *env)
{
	__shared__ float room[2 * CKR_TILE * CKR_TILE_LD];
	__shared__ float s[CKR_TILE * CKR_TILE_LD];
	__shared__ struct ckr_softmax_state t;
	const ckr_place at(blockIdx.x, a.heads, a.queries, o ? a.vdim : 0);
	int64_t g = at.h / (a.heads / a.groups), first = at.tile;
	const ckr_scores of(a, mask, at.b, at.h, env);
	int64_t end = ckr_visible(a, first + CKR_TILE - 1);
	int x = (int)threadIdx.x, w = x / CKR_WARP;
	float acc[4][4] = {};

	if (x < CKR_TILE)
		t.m[x] = -__builtin_inff(), t.l[x] = 0.0f;
	for (int64_t j = 0; j < end; j += CKR_TILE) {
		float sc[2][4];

		ckr_tile_scores(sc, room, ckr_rows_of<T>(q, a.q, at.b, at.h,
			first, a.queries, a.dim), ckr_rows_of<T>(k, a.k, at.b,
			g, j, a.keys, a.dim));
#pragma unroll
		for (int r = 0; r < 2; r++)
#pragma unroll
			for (int c = 0; c < 4; c++) {
				int p = x / 8 + r * 16, n = x % 8 + c * 8;

				s[p * CKR_TILE_LD + n] = of.score(sc[r][c],
					first + p, j + n);
			}
		__syncthreads();
		for (int r = w; r < CKR_TILE; r += CKR_TILE_THREADS / CKR_WARP)
			ckr_tile_softmax(&t, r, s + r * CKR_TILE_LD, of,
			                 first + r, j);
		__syncthreads();
		for (int r = 0; r < 4; r++)
			for (int c = 0; c < 4; c++)
				acc[r][c] *= t.alpha[x / 16 + r * 8];
		if (o)
			ckr_tile_add(acc, s, false, room,
				ckr_rows_of<T>(v, a.v, at.b, g, j, a.keys,
				a.vdim), at.column);
	}
	__syncthreads();
	for (int r = 0; r < 4; r++) {
		float l = t.l[x / 16 + r * 8];

		/* without a visible key what lies in o is nothing */
		for (int c = 0; c < 4; c++)
			acc[r][c] *= l == 0.0f ? 0.0f : 1.0f / l;
	}
	if (o)
		ckr_tile_store(o + at.b * a.o[0] + at.h * a.o[1] + first
			* a.o[2], a.o[2], a.queries - first, a.vdim, at.column,
			acc, 1.0f);
	if (lse && at.column == 0 && x < CKR_TILE && first + x < a.queries)
		lse[(at.b * a.heads + at.h) * a.queries + first + x] =
			t.l[x] == 0.0f ? -__builtin_inff()
			: t.m[x] + ckr_log(t.l[x]);
}

/* Whether rows of n elements, so far apart, are vectors. */
template <typename T> bool
ckr_flash_vectors(const T *x, const int64_t *stride, int64_t n)
{
	return ckr_on_16(x) && n % 8 == 0 && stride[0] % 8 == 0
	       && stride[1] % 8 == 0 && stride[2] % 8 == 0;
}

/* The kernels on tensor cores. */
template <typename T, int HD> void
ckr_flash(const struct ckr_attention *, T *, float *, const T *, const T *,
          const T *, const void *, struct ckr_env *);

/* HD: of the kernels on tensor cores, the columns that they have room for; 0:
 * float32. */
template <typename T, int HD> void
ckr_attention(const struct ckr_attention *a, ckr_is<T> *o, float *lse,
              const T *q, const T *k, const T *v, const void *mask,
              const void *, struct ckr_env *env)
{
	int64_t blocks = ckr_places(a->batch * a->heads, a->queries,
	                            o ? a->vdim : 0);

	if constexpr (HD > 0)
		ckr_flash<T, HD>(a, o, lse, q, k, v, mask, env);
	else if (blocks > 0)
		CKR_LAUNCH_BLOCK(ckr_attention_kernel<T>, blocks,
		                 CKR_TILE_THREADS, 0, env, *a, o, lse, q, k, v,
		                 mask, env->device);
}

#include "cuda_flash.cuh"

#endif
