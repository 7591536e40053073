/* Products of rows with the matrices of their experts.
 *
 * A block per expert lists its rows in their order.  A block then computes one
 * tile of an expert's product: 16-bit floats by tensor cores, float32 by
 * multiplications.  How many tiles an expert has is known on the device alone,
 * so there are blocks for the most that there may be.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_EXPERTS_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_EXPERTS_CUH

#include "mma.cuh"
#include "places.h"

enum {
	CKR_EXPERT_WARPS = CKR_THREADS / CKR_WARP,
	CKR_EXPERT_ROWS = 64,           /* of a tile */
	CKR_EXPERT_COLS = 128,
	CKR_EXPERT_SUMS = CKR_EXPERT_ROWS * CKR_EXPERT_COLS / CKR_THREADS,
};

struct ckr_experts {
	int64_t n, experts;             /* rows; matrices */
	int64_t inner, width;           /* of x and y, or of a and b */
	int64_t all, first;             /* experts; that of the first matrix */
	int tb, idx_bytes;
};

/* ---- rows by expert ---- */

/* The matrix of row i; behind all others: its index is a fault, or its matrix
 * another replica's. */
CKR_DEVICE int64_t
ckr_expert_of(const struct ckr_experts &p, const void *idx, int64_t i,
              struct ckr_env *env)
{
	int64_t e = ckr_index(idx, i, p.idx_bytes, p.all, env) - p.first;

	return e < 0 || e >= p.experts ? p.experts : e;
}

/* How many threads of the block say so, and how many of those before this
 * one. */
CKR_DEVICE int
ckr_count_before(bool yes, int *count, int *all)
{
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	unsigned mask = __ballot_sync(0xffffffffu, yes);
	int before = __popc(mask & ((1u << lane) - 1));

	/* counts of another call may still be read */
	__syncthreads();
	if (lane == 0)
		count[warp] = __popc(mask);
	__syncthreads();
	*all = 0;
	for (int w = 0; w < CKR_EXPERT_WARPS; w++) {
		before += w < warp ? count[w] : 0;
		*all += count[w];
	}
	return before;
}

/* Block e lists the rows of expert e behind those of the experts before it;
 * begin[e]: where. */
CKR_GLOBAL
ckr_expert_sort(int64_t *begin, int64_t *order, const void *idx,
                struct ckr_experts p, struct ckr_env *env)
{
	__shared__ int count[CKR_EXPERT_WARPS];
	int64_t e = blockIdx.x, at = 0;
	int all;

	for (int64_t i0 = 0; i0 < p.n; i0 += CKR_THREADS) {
		int64_t i = i0 + threadIdx.x;
		bool lower = i < p.n && ckr_expert_of(
			p, idx, i, e ? NULL : env) < e;

		ckr_count_before(lower, count, &all);
		at += all;
	}
	if (threadIdx.x == 0)
		begin[e] = at;
	for (int64_t i0 = 0; i0 < p.n; i0 += CKR_THREADS) {
		int64_t i = i0 + threadIdx.x;
		bool mine = i < p.n && ckr_expert_of(p, idx, i, NULL) == e;
		int before = ckr_count_before(mine, count, &all);

		if (mine)
			order[at + before] = i;
		at += all;
	}
	if (threadIdx.x == 0 && e == p.experts)
		begin[e + 1] = at;
}

/* ---- a tile ---- */

/* One side of a product, from the tile's first line on: line i at depth k is
 * x[row(i) * ld + k], or turned x[row(k) * ld + i]; rows are listed or in
 * order. */
template <typename T> struct ckr_expert_side {
	const T *x;
	int64_t ld, lines;
	const int64_t *order;
	bool turned;
};

/* Lines of both sides, a few elements deep: pairs of 16-bit floats for tensor
 * cores. */
template <typename T> struct ckr_expert_panels {
	enum { DEPTH = 32, LD = DEPTH + 8 };
	T a[CKR_EXPERT_ROWS * LD], b[CKR_EXPERT_COLS * LD];

	static __device__ int place(int line, int k, int)
	{
		return line * LD + k;
	}
};

template <> struct ckr_expert_panels<float> {
	enum { DEPTH = 16 };
	float a[CKR_EXPERT_ROWS * DEPTH], b[CKR_EXPERT_COLS * DEPTH];

	static __device__ int place(int line, int k, int lines)
	{
		return k * lines + line;
	}
};

/* Where this thread's sum s of the tile is. */
template <typename T> CKR_DEVICE void
ckr_expert_place(int s, int *row, int *col, T)
{
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;

	*row = warp / 4 * 32 + s / 16 * 16 + lane / 4 + s % 4 / 2 * 8;
	*col = warp % 4 * 32 + s % 16 / 4 * 8 + lane % 4 * 2 + s % 2;
}

CKR_DEVICE void
ckr_expert_place(int s, int *row, int *col, float)
{
	*row = threadIdx.x / 16 * 4 + s / 8;
	*col = s % 8 / 4 * 64 + threadIdx.x % 16 * 4 + s % 4;
}

/* V neighbours at a time. */
template <int V, typename T> CKR_DEVICE void
ckr_expert_fill(T *to, int lines, const struct ckr_expert_side<T> &s,
                int64_t k0, int64_t depth)
{
	typedef ckr_expert_panels<T> P;

	for (int i = threadIdx.x; i < lines * P::DEPTH / V; i += CKR_THREADS) {
		int along = (s.turned ? lines : P::DEPTH) / V;
		int line = s.turned ? i % along * V : i / along;
		int k = s.turned ? i / along : i % along * V;
		int64_t row = s.turned ? k0 + k : line;
		ckr_pack<T, V> x = {};

		if (line < s.lines && k0 + k < depth)
			x = ckr_load<V>(s.x + (s.order ? s.order[row] : row)
			                * s.ld + (s.turned ? line : k0 + k));
#pragma unroll
		for (int j = 0; j < V; j++)
			to[P::place(line + (s.turned ? j : 0),
			            k + (s.turned ? 0 : j), lines)] = x.v[j];
	}
}

template <typename T> CKR_DEVICE void
ckr_expert_fill_side(T *to, int lines, const struct ckr_expert_side<T> &s,
                     int64_t k0, int64_t depth)
{
	enum { V = ckr_vec<T>::N };

	if (s.ld % V == 0 && (uintptr_t)s.x % 16 == 0)
		ckr_expert_fill<V>(to, lines, s, k0, depth);
	else
		ckr_expert_fill<1>(to, lines, s, k0, depth);
}

/* Tensor cores: a warp has 32 x 32 of the tile. */
template <typename T> CKR_DEVICE void
ckr_expert_multiply(float *sum, const struct ckr_expert_panels<T> &p)
{
	enum { LD = ckr_expert_panels<T>::LD };
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	const T *a = p.a + (warp / 4 * 32 + lane / 4) * LD + lane % 4 * 2;
	const T *b = p.b + (warp % 4 * 32 + lane / 4) * LD + lane % 4 * 2;

#pragma unroll
	for (int k = 0; k < ckr_expert_panels<T>::DEPTH; k += 16)
#pragma unroll
		for (int m = 0; m < 2; m++) {
			uint32_t f[4];

#pragma unroll
			for (int i = 0; i < 4; i++)
				f[i] = *(const uint32_t *)
					(a + (m * 16 + i % 2 * 8) * LD + k
					 + i / 2 * 8);
#pragma unroll
			for (int n = 0; n < 4; n++) {
				const T *r = b + n * 8 * LD + k;

				ckr_mma(sum + m * 16 + n * 4, f,
				        *(const uint32_t *)r,
				        *(const uint32_t *)(r + 8), T());
			}
		}
}

CKR_DEVICE void
ckr_expert_multiply(float *sum, const struct ckr_expert_panels<float> &p)
{
	const float *a = p.a + threadIdx.x / 16 * 4;
	const float *b = p.b + threadIdx.x % 16 * 4;

#pragma unroll
	for (int k = 0; k < ckr_expert_panels<float>::DEPTH; k++)
#pragma unroll
		for (int s = 0; s < CKR_EXPERT_SUMS; s++)
			sum[s] += a[k * CKR_EXPERT_ROWS + s / 8]
				* b[k * CKR_EXPERT_COLS + s % 8 / 4 * 64
				    + s % 4];
}

/* This thread's sums of a tile. */
template <typename T> CKR_DEVICE void
ckr_expert_sums(float *sum, const struct ckr_expert_side<T> &a,
                const struct ckr_expert_side<T> &b, int64_t depth,
                struct ckr_expert_panels<T> *p)
{
#pragma unroll
	for (int s = 0; s < CKR_EXPERT_SUMS; s++)
		sum[s] = 0.0f;
	for (int64_t k = 0; k < depth; k += ckr_expert_panels<T>::DEPTH) {
		/* the last ones have been used, by the tile before too */
		__syncthreads();
		ckr_expert_fill_side(p->a, CKR_EXPERT_ROWS, a, k, depth);
		ckr_expert_fill_side(p->b, CKR_EXPERT_COLS, b, k, depth);
		__syncthreads();
		ckr_expert_multiply(sum, *p);
	}
}

/* Put sums at rows of y, which are listed or in order. */
template <typename T> CKR_DEVICE void
ckr_expert_store(T *y, const float *sum, int64_t rows, int64_t cols,
                 int64_t ld, const int64_t *order)
{
#pragma unroll
	for (int s = 0; s < CKR_EXPERT_SUMS; s++) {
		int row, col;

		ckr_expert_place(s, &row, &col, T());
		if (row < rows && col < cols)
			ckr_put(&y[(order ? order[row] : row) * ld + col],
			        sum[s]);
	}
}

/* ---- products ---- */

/* Tile t of all rows; those behind the last expert have no matrix and become
 * zeros. */
template <typename T> CKR_DEVICE void
ckr_expert_matmul_tile(T *y, const T *x, const T *w, const int64_t *begin,
                       const int64_t *order, const struct ckr_experts &p,
                       int64_t t, int64_t j0,
                       struct ckr_expert_panels<T> *panels)
{
	float sum[CKR_EXPERT_SUMS];
	int64_t e = 0, tiles, at;
	struct ckr_expert_side<T> a = { x, p.inner }, b = { w };

	while (e <= p.experts
	       && t >= (tiles = ckr_ceil_div(begin[e + 1] - begin[e],
	                                     CKR_EXPERT_ROWS))) {
		t -= tiles;
		e++;
	}
	if (e > p.experts)
		return;
	at = begin[e] + t * CKR_EXPERT_ROWS;
	a.lines = ckr_least(begin[e + 1] - at, CKR_EXPERT_ROWS);
	a.order = order + at;
	b.ld = p.tb ? p.inner : p.width;
	b.lines = ckr_least(p.width - j0, CKR_EXPERT_COLS);
	b.turned = !p.tb;
	b.x += e * p.inner * p.width + (p.tb ? j0 * b.ld : j0);
	ckr_expert_sums(sum, a, b, e < p.experts ? p.inner : 0, panels);
	ckr_expert_store(y + j0, sum, a.lines, b.lines, p.width, a.order);
}

template <typename T> CKR_GLOBAL
ckr_expert_matmul_device(T *y, const T *x, const T *w, const int64_t *begin,
                         const int64_t *order, struct ckr_experts p,
                         int64_t tiles)
{
	__shared__ struct ckr_expert_panels<T> panels;
	int64_t across = ckr_ceil_div(p.width, CKR_EXPERT_COLS);

	CKR_BLOCK_TASKS(t, tiles)
		ckr_expert_matmul_tile(y, x, w, begin, order, p, t / across,
		                       t % across * CKR_EXPERT_COLS, &panels);
}

template <typename T> CKR_GLOBAL
ckr_expert_dw_device(T *dw, const T *x, const T *dy, const int64_t *begin,
                     const int64_t *order, struct ckr_experts p, int64_t tiles)
{
	__shared__ struct ckr_expert_panels<T> panels;
	int64_t across = ckr_ceil_div(p.width, CKR_EXPERT_COLS);
	int64_t each = ckr_ceil_div(p.inner, CKR_EXPERT_ROWS) * across;

	CKR_BLOCK_TASKS(t, tiles) {
		float sum[CKR_EXPERT_SUMS];
		int64_t e = t / each, at = t % each;
		int64_t i0 = at / across * CKR_EXPERT_ROWS;
		int64_t j0 = at % across * CKR_EXPERT_COLS;
		const int64_t *rows = order + begin[e];
		struct ckr_expert_side<T> a = { x + i0, p.inner,
			ckr_least(p.inner - i0, CKR_EXPERT_ROWS), rows, true };
		struct ckr_expert_side<T> b = { dy + j0, p.width,
			ckr_least(p.width - j0, CKR_EXPERT_COLS), rows, true };

		ckr_expert_sums(sum, a, b, begin[e + 1] - begin[e], &panels);
		ckr_expert_store(dw + (e * p.inner + i0) * p.width + j0, sum,
		                 a.lines, b.lines, p.width, NULL);
	}
}

/* ---- slots ---- */

struct ckr_slots {
	int64_t n, all, replicas, room;
	int drop, idx_bytes;
};

/* Into a list of int64 or int32, if there is one. */
CKR_DEVICE void
ckr_put_index(void *to, int64_t i, int nbytes, int64_t e)
{
	if (to && nbytes == 8)
		((int64_t *)to)[i] = e;
	else if (to)
		((int32_t *)to)[i] = (int32_t)e;
}

/* Block d fills the slots of replica d with rows in their order, then those
 * that are left; rows whose index is a fault are those of the first block. */
CKR_GLOBAL
ckr_expert_slots_device(int64_t *slot, int64_t *row, void *expert,
                        const void *idx, struct ckr_slots p,
                        struct ckr_env *env)
{
	__shared__ int count[CKR_EXPERT_WARPS];
	int64_t d = blockIdx.x, each = ckr_div(p.all, p.replicas), at = 0;
	int64_t slots = p.replicas * p.room, first = d * p.room;
	int all;

	for (int64_t i0 = 0; i0 < p.n; i0 += CKR_THREADS) {
		int64_t i = i0 + threadIdx.x;
		int64_t e = i < p.n ? ckr_index(idx, i, p.idx_bytes, p.all,
		                                d ? NULL : env) : -1;
		bool mine = e >= 0 && ckr_div(e, each) == d;
		int64_t s = at + ckr_count_before(mine, count, &all);

		if (mine && s < p.room) {
			ckr_put_index(row, first + s, 8, i);
			ckr_put_index(expert, first + s, p.idx_bytes, e);
		}
		if (mine || (d == 0 && e < 0 && i < p.n))
			ckr_put_index(slot, i, 8, mine && s < p.room
			              ? first + s : slots);
		at += all;
	}
	for (int64_t s = at + threadIdx.x; s < p.room; s += CKR_THREADS) {
		ckr_put_index(row, first + s, 8, p.n);
		ckr_put_index(expert, first + s, p.idx_bytes,
		              (d + 1 < p.replicas ? d + 1 : 0) * each);
	}
	if (threadIdx.x == 0 && at > p.room && !p.drop)
		ckr_fault(env, CKR_BAD_CAPACITY, 0, ckr_ceil_div(
			100 * at * p.replicas, p.n));
}

/* ---- calls; workspace: begin, then order ---- */

template <typename Env> static inline void
ckr_expert_slots(const struct ckr_slots *p, int64_t *slot, int64_t *row,
                 void *expert, const void *idx, Env *env)
{
	CKR_EACH_BLOCK(ckr_expert_slots_device, p->replicas, CKR_THREADS, 0,
	               env, slot, row, expert, idx, *p, env->device);
}

template <typename Env> static inline void
ckr_expert_rows(const struct ckr_experts *p, const void *idx, int64_t *begin,
                Env *env)
{
	CKR_EACH_BLOCK(ckr_expert_sort, p->experts + 1, CKR_THREADS, 0, env,
	               begin, begin + p->experts + 2, idx, *p, env->device);
}

template <typename T, typename Env> static inline void
ckr_expert_matmul(const struct ckr_experts *p, T *y, const T *x, const T *w,
                  const void *idx, void *workspace, Env *env)
{
	int64_t *begin = (int64_t *)workspace;
	int64_t tiles = (ckr_ceil_div(p->n, CKR_EXPERT_ROWS) + p->experts + 1)
		* ckr_ceil_div(p->width, CKR_EXPERT_COLS);

	if (p->n == 0)
		return;
	ckr_expert_rows(p, idx, begin, env);
	CKR_EACH_BLOCK(ckr_expert_matmul_device<T>, tiles, CKR_THREADS, 0, env,
	               y, x, w, begin, begin + p->experts + 2, *p, tiles);
}

template <typename T, typename Env> static inline void
ckr_expert_dw(const struct ckr_experts *p, T *dw, const T *a, const T *b,
              const void *idx, void *workspace, Env *env)
{
	int64_t *begin = (int64_t *)workspace;
	int64_t tiles = p->experts * ckr_ceil_div(p->inner, CKR_EXPERT_ROWS)
		* ckr_ceil_div(p->width, CKR_EXPERT_COLS);

	ckr_expert_rows(p, idx, begin, env);
	CKR_EACH_BLOCK(ckr_expert_dw_device<T>, tiles, CKR_THREADS, 0, env, dw,
	               a, b, begin, begin + p->experts + 2, *p, tiles);
}

#endif
