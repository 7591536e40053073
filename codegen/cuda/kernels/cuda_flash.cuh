/* Attention of 16-bit floats on tensor cores.
 *
 * A block has 64 rows, a warp 16 of them; the other side's rows pass through
 * shared memory, the next ones copied while the last ones are multiplied.
 * Scores and sums are float32, probabilities are rounded to be multiplied.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_FLASH_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_FLASH_CUH

#include "cuda_attention.cuh"
#include "mma.cuh"

enum {
	CKR_FLASH_ROWS = 64,
	CKR_FLASH_THREADS = 128,
};

/* HD: columns that there is room for.  STEP: rows of the other side. */
template <int HD> struct ckr_flash_size {
	enum { LD = HD + 8, STEP = HD > 64 ? 32 : 64, TILE = STEP * LD,
	       OWN = CKR_FLASH_ROWS * LD, BYTES = 2 * (OWN + 4 * TILE),
	       GRAD_BYTES = BYTES + 2 * OWN };
};

/* Which operands may be read and written as vectors. */
struct ckr_flash_whole {
	bool q, k, v, o, d_o, dq, dk, dv;
};

/* Rows of a head, a tile at a time: where this thread's first pack of the next
 * tile is, of rows of n elements.  whole: packs are vectors.  There are less
 * than 2^31 rows, or the target takes another kernel. */
template <typename T> struct ckr_flash_rows {
	const T *x;
	int64_t ld;
	int n;
	bool whole;
};

/* Rows from i on; HD: columns that there is room for. */
template <int HD, typename T> CKR_DEVICE ckr_flash_rows<T>
ckr_flash_rows_of(const T *x, const int64_t *stride, int64_t b, int64_t h,
                  int64_t i, int64_t n, bool whole)
{
	int64_t row = i + (int)threadIdx.x / (HD / 8);
	int column = (int)threadIdx.x % (HD / 8) * 8;

	return { x + b * stride[0] + h * stride[1] + row * stride[2] + column,
	         stride[2], (int)n - column, whole };
}

/* The next ROWS rows, of which `rows` exist, to shared memory, as a part of a
 * group of copies.  What does not exist is zero, and is not read. */
template <int HD, int ROWS, typename T> CKR_DEVICE void
ckr_flash_copy(T *to, ckr_flash_rows<T> *r, int rows)
{
	enum { LD = ckr_flash_size<HD>::LD, PACKS = HD / 8,
	       STEP = CKR_FLASH_THREADS / PACKS };
	int i = (int)threadIdx.x / PACKS;
	const T *from = r->x;

	to += i * LD + (int)threadIdx.x % PACKS * 8;
	rows -= i;
	if (r->whole) {
		rows = r->n > 0 ? rows : 0;
#pragma unroll
		for (int e = 0; e < ROWS; e += STEP) {
			ckr_copy16(to + e * LD, from, e < rows);
			from += STEP * r->ld;
		}
	} else {
#pragma unroll 1
		for (int e = 0; e < ROWS / STEP * 8; e++) {
			int k = e / 8 * STEP, n = e % 8;

			to[k * LD + n] = k < rows && n < r->n
				? from[k * r->ld + n] : T();
		}
	}
	r->x += ROWS * r->ld;
}

/* s = x y^T: 16 rows of x, a warp's, and 8 N of y. */
template <int HD, int N, typename T> CKR_DEVICE void
ckr_flash_scores(float (*s)[4], const T *x, const T *y)
{
	enum { LD = ckr_flash_size<HD>::LD };
	int lane = (int)threadIdx.x % CKR_WARP;

	x += lane % 16 * LD + lane / 16 * 8;
	y += (lane / 16 * 8 + lane % 8) * LD + lane / 8 % 2 * 8;
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[n][e] = 0.0f;
#pragma unroll
	for (int k = 0; k < HD; k += 16) {
		uint32_t a[4], b[4];

		ckr_matrices(a, x + k, false);
#pragma unroll
		for (int n = 0; n < N; n += 2) {
			ckr_matrices(b, y + n * 8 * LD + k, false);
			ckr_mma(s[n], a, b[0], b[1], T());
			ckr_mma(s[n + 1], a, b[2], b[3], T());
		}
	}
}

/* acc += p y: 8 N columns of p, rows of y. */
template <int HD, int N, typename T> CKR_DEVICE void
ckr_flash_add(float (*acc)[4], const float (*p)[4], const T *y)
{
	enum { LD = ckr_flash_size<HD>::LD };
	int lane = (int)threadIdx.x % CKR_WARP;

	y += lane % 16 * LD + lane / 16 * 8;
#pragma unroll
	for (int k = 0; k < N; k += 2) {
		uint32_t a[4], b[4];

		a[0] = ckr_pair(p[k][0], p[k][1], T());
		a[1] = ckr_pair(p[k][2], p[k][3], T());
		a[2] = ckr_pair(p[k + 1][0], p[k + 1][1], T());
		a[3] = ckr_pair(p[k + 1][2], p[k + 1][3], T());
#pragma unroll
		for (int n = 0; n < HD / 8; n += 2) {
			ckr_matrices(b, y + k * 8 * LD + n * 8, true);
			ckr_mma(acc[n], a, b[0], b[1], T());
			ckr_mma(acc[n + 1], a, b[2], b[3], T());
		}
	}
}

/* A warp's 16 rows, times by[0 .. 1], through its part of shared memory. */
template <int HD, typename T> CKR_DEVICE void
ckr_flash_store(T *y, int64_t ld, int64_t rows, int64_t columns,
                const float (*acc)[4], const float *by, T *room, bool whole)
{
	enum { LD = ckr_flash_size<HD>::LD, PACKS = HD / 8 };
	int lane = (int)threadIdx.x % CKR_WARP;

	__syncwarp();
#pragma unroll
	for (int n = 0; n < HD / 8; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			ckr_put(&room[(lane / 4 + e / 2 * 8) * LD + n * 8
			              + lane % 4 * 2 + e % 2],
			        acc[n][e] * by[e / 2]);
	__syncwarp();
#pragma unroll
	for (int e = lane; e < 16 * PACKS; e += CKR_WARP) {
		int i = e / PACKS, j = e % PACKS * 8;
		const T *from = room + i * LD + j;

		if (i >= rows || j >= columns)
			continue;
		if (whole)
			ckr_store<8>(y + i * ld + j, ckr_load<8>(from));
		for (int n = 0; !whole && n < 8 && j + n < columns; n++)
			y[i * ld + j + n] = from[n];
	}
}

/* ---- masks ---- */

/* Of the two rows of a thread: the first column that is visible, and how many
 * are. */
struct ckr_flash_span {
	int from[2], n[2];

	__device__ __forceinline__ bool
	has(int r, int column) const
	{
		return (unsigned)(column - from[r]) < (unsigned)n[r];
	}
};

/* Add the mask: at[r] is that of row r, which is `step` from column to column.
 * It advances, as products of step would take registers of the whole loop. */
template <int N, typename M> CKR_DEVICE void
ckr_flash_add_mask(float (*s)[4], const M **at, int64_t step,
                   const struct ckr_flash_span &span, int column)
{
#pragma unroll
	for (int n = 0; n < N; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++)
			if (span.has(e / 2, column + n * 8 + e % 2))
				s[n][e] = ckr_masked(s[n][e],
					at[e / 2][e % 2 ? step : 0]);
		at[0] += 8 * step;
		at[1] += 8 * step;
	}
}

template <int N, typename M> CKR_DEVICE void
ckr_flash_mask_of(float (*s)[4], const ckr_scores &of, const int64_t *step,
                  const struct ckr_flash_span &span, int row, int column)
{
	const M *from = (const M *)of.mask + of.b * of.a.mask[0]
		+ of.h * of.a.mask[1] + row * step[0] + column * step[1];
	const M *at[2] = { from, from + 8 * step[0] };

	ckr_flash_add_mask<N>(s, at, step[1], span, column);
}

/* Products to scores, of a thread's rows from `row` on and columns from
 * `column` on.  KEYS: columns are keys. */
template <int N, int KEYS> CKR_DEVICE void
ckr_flash_mask(float (*s)[4], const ckr_scores &of,
               const struct ckr_flash_span &span, int row, int column)
{
	const int64_t step[2] = { of.a.mask[KEYS ? 2 : 3],
	                          of.a.mask[KEYS ? 3 : 2] };

#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[n][e] = span.has(e / 2, column + n * 8 + e % 2)
				? s[n][e] * of.a.scale : -__builtin_inff();
	if (of.a.mask_type == CKR_BOOL)
		ckr_flash_mask_of<N, uint8_t>(s, of, step, span, row, column);
	else if (of.a.mask_type != CKR_NONE)
		CKR_FLOATS(of.a.mask_type, M, (ckr_flash_mask_of<N, M>(s, of,
			step, span, row, column)));
}

/* Bit 4 n + e: element e of s[n], of a thread's rows from `row` on and columns
 * from `column` on, is not dropped.  One function of random words, and not one
 * for each element, leaves registers and instructions to the rest. */
template <int N, int KEYS> CKR_DEVICE uint32_t
ckr_flash_kept(const ckr_scores &of, int row, int column)
{
	uint32_t bits = 0;

#pragma unroll 1
	for (int k = 0; k < 4 * N; k += 2) {
		int r = row + k / 2 % 2 * 8, c = column + k / 4 * 8;
		float by[2];

		if (KEYS) {
			of.kept<2>(by, r, c);
		} else {
			of.kept<1>(by, c, r);
			of.kept<1>(by + 1, c + 1, r);
		}
		bits |= (by[0] != 0.0f ? 1u : 0) << k;
		bits |= (by[1] != 0.0f ? 2u : 0) << k;
	}
	return bits;
}

/* Keys that are visible to queries i and i + 8. */
CKR_DEVICE struct ckr_flash_span
ckr_flash_keys(const struct ckr_attention &a, int64_t i)
{
	struct ckr_flash_span s = {};

	for (int r = 0; r < 2; r++)
		s.n[r] = i + 8 * r < a.queries
		       ? (int)ckr_visible(a, i + 8 * r) : 0;
	return s;
}

/* How many tiles of keys are visible to query i and all that follow, and need
 * nothing but to be scaled. */
CKR_DEVICE int
ckr_flash_plain(const struct ckr_attention &a, int64_t i, int step)
{
	return a.mask_type == CKR_NONE && a.scale > 0.0f
	     ? (int)ckr_visible(a, i) / step : 0;
}

/* ---- forward ---- */

/* A thread's part of two rows, of which four lanes have a quarter each. */
template <int HD> struct ckr_flash_state {
	float acc[HD / 8][4], m[2], l[2];
};

/* Scores to probabilities relative to the largest so far.  A score is s times
 * scale, or s if it has been masked. */
template <int HD, int N> CKR_DEVICE void
ckr_flash_softmax(struct ckr_flash_state<HD> *t, float (*s)[4], float scale,
                  bool masked)
{
	float factor = (masked ? 1.0f : scale) * CKR_LOG2E;

#pragma unroll
	for (int r = 0; r < 2; r++) {
		float m = -__builtin_inff(), ref, by, less;

#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int e = 2 * r; e < 2 * r + 2; e++)
				m = fmaxf(m, s[n][e]);
		for (int k = 1; k < 4; k *= 2)
			m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, k));
		m = fmaxf(t->m[r], masked ? m : m * scale);
		ref = m == -__builtin_inff() ? 0.0f : m;
		by = ckr_exp2((t->m[r] - ref) * CKR_LOG2E);
		t->m[r] = m;
		t->l[r] *= by;
#pragma unroll
		for (int n = 0; n < HD / 8; n++)
			t->acc[n][2 * r] *= by, t->acc[n][2 * r + 1] *= by;
		less = masked ? 0.0f : ref * CKR_LOG2E;
		if (masked)
#pragma unroll
			for (int n = 0; n < N; n++)
				s[n][2 * r] -= ref, s[n][2 * r + 1] -= ref;
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int e = 2 * r; e < 2 * r + 2; e++) {
				s[n][e] = ckr_exp2(__builtin_fmaf(s[n][e],
					factor, -less));
				t->l[r] += s[n][e];
			}
	}
}

template <int N> CKR_DEVICE void
ckr_flash_drop(float (*s)[4], const ckr_scores &of, int row, int column)
{
	uint32_t kept;

	if (!of.below)
		return;
	kept = ckr_flash_kept<N, 1>(of, row, column);
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int e = 0; e < 4; e++)
			s[n][e] *= kept >> (4 * n + e) & 1 ? of.keep : 0.0f;
}

/* Row results of a thread: what o is multiplied with, log-sum-exp. */
template <int HD> CKR_DEVICE void
ckr_flash_finish(struct ckr_flash_state<HD> *t, float *by, float *lse)
{
#pragma unroll
	for (int r = 0; r < 2; r++) {
		for (int k = 1; k < 4; k *= 2)
			t->l[r] += __shfl_xor_sync(0xffffffffu, t->l[r], k);
		/* without a visible key what lies in o is nothing */
		by[r] = t->l[r] == 0.0f ? 0.0f : 1.0f / t->l[r];
		lse[r] = t->l[r] == 0.0f ? -__builtin_inff()
		                         : t->m[r] + ckr_log(t->l[r]);
	}
}

template <typename T, int HD> CKR_GLOBAL
__launch_bounds__(CKR_FLASH_THREADS, HD > 64 ? 2 : 3)
ckr_flash_kernel(struct ckr_attention a, T *o, float *lse, const T *q,
                 const T *k, const T *v, const void *mask,
                 struct ckr_flash_whole whole, struct ckr_env *env)
{
	typedef ckr_flash_size<HD> size;
	enum { STEP = size::STEP, N = STEP / 8 };
	CKR_SHARED(T, room);
	int64_t tiles = (a.queries + CKR_FLASH_ROWS - 1) / CKR_FLASH_ROWS;
	int64_t first = (tiles - 1 - blockIdx.x % tiles) * CKR_FLASH_ROWS;
	int64_t h = blockIdx.x / tiles % a.heads, b = blockIdx.x / tiles
		/ a.heads, g = h / (a.heads / a.groups);
	int steps = (int)ckr_ceil_div(ckr_visible(a, first + CKR_FLASH_ROWS
		- 1), STEP);
	int w = (int)threadIdx.x / CKR_WARP, lane = (int)threadIdx.x % CKR_WARP;
	int i = (int)first + w * 16, row = i + lane / 4;
	int plain = ckr_flash_plain(a, i, STEP);
	const ckr_scores of(a, mask, b, h, env);
	const struct ckr_flash_span span = ckr_flash_keys(a, row);
	T *own = room + w * 16 * size::LD, *other = room + size::OWN;
	ckr_flash_rows<T> ks = ckr_flash_rows_of<HD>(k, a.k, b, g, 0, a.dim,
		whole.k);
	ckr_flash_rows<T> vs = ckr_flash_rows_of<HD>(v, a.v, b, g, 0, a.vdim,
		whole.v);
	ckr_flash_rows<T> qs = ckr_flash_rows_of<HD>(q, a.q, b, h, first,
		a.dim, whole.q);
	struct ckr_flash_state<HD> t = {};
	float by[2], z[2];

	t.m[0] = t.m[1] = -__builtin_inff();
	ckr_flash_copy<HD, CKR_FLASH_ROWS>(room, &qs, (int)(a.queries - first));
	for (int n = -1; n < steps; n++) {
		T *now = other + n % 2 * 2 * size::TILE;
		T *then = other + (n + 1) % 2 * 2 * size::TILE;
		bool masked = n >= plain;
		float s[N][4];

		if (n + 1 < steps) {
			int left = (int)a.keys - (n + 1) * STEP;

			ckr_flash_copy<HD, STEP>(then, &ks, left);
			ckr_flash_copy<HD, STEP>(then + size::TILE, &vs, left);
		}
		ckr_copies_end();
		if (n < 0)
			continue;
		ckr_copies_wait<1>();
		__syncthreads();
		ckr_flash_scores<HD, N>(s, own, now);
		if (masked)
			ckr_flash_mask<N, 1>(s, of, span, row,
			                     n * STEP + lane % 4 * 2);
		ckr_flash_softmax<HD, N>(&t, s, a.scale, masked);
		ckr_flash_drop<N>(s, of, row, n * STEP + lane % 4 * 2);
		ckr_flash_add<HD, N>(t.acc, s, now + size::TILE);
		__syncthreads();
	}
	ckr_flash_finish(&t, by, z);
	for (int r = 0; lse && r < 2; r++)
		if (lane % 4 == 0 && row + r * 8 < a.queries)
			lse[(b * a.heads + h) * a.queries + row + r * 8] = z[r];
	ckr_copies_wait<0>();
	__syncthreads();
	if (o)
		ckr_flash_store<HD>(o + b * a.o[0] + h * a.o[1] + i * a.o[2],
			a.o[2], a.queries - i, a.vdim, t.acc, by, own,
			whole.o);
}

template <typename T, int HD> void
ckr_flash(const struct ckr_attention *a, T *o, float *lse, const T *q,
          const T *k, const T *v, const void *mask, struct ckr_env *env)
{
	struct ckr_flash_whole whole = {};
	int64_t tiles = (a->queries + CKR_FLASH_ROWS - 1) / CKR_FLASH_ROWS;

	whole.q = ckr_flash_vectors(q, a->q, a->dim);
	whole.k = ckr_flash_vectors(k, a->k, a->dim);
	whole.v = ckr_flash_vectors(v, a->v, a->vdim);
	whole.o = ckr_flash_vectors(o, a->o, a->vdim);
	if (a->batch * a->heads * tiles > 0)
		CKR_LAUNCH_BLOCK((ckr_flash_kernel<T, HD>),
		                 a->batch * a->heads * tiles,
		                 CKR_FLASH_THREADS, ckr_flash_size<HD>::BYTES,
		                 env, *a, o, lse, q, k, v, mask, whole,
		                 env->device);
}

#endif
