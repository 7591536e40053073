/* Sums at indices that may repeat: what goes to one place is added in the order
 * of the indices, so that no addition is atomic.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_SCATTER_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_SCATTER_CUH

#include "cuda_index.cuh"

/* ---- rows ---- */

enum {
	CKR_ADD_WARPS = CKR_THREADS / CKR_WARP,
	CKR_ADD_EACH = 4,               /* indices of a lane at a time */
	CKR_ADD_SCAN = CKR_THREADS * CKR_ADD_EACH,
	CKR_ADD_HITS = 2 * CKR_ADD_SCAN,
	CKR_ADD_LANE = 4,               /* columns of a lane */
	CKR_ADD_COLUMNS = CKR_WARP * CKR_ADD_LANE,
	CKR_ADD_SUMS = 20 << 10,        /* floats */
	CKR_ADD_BLOCKS = 1024,          /* wanted */
};

/* A block has `rows` rows of the result and CKR_ADD_COLUMNS columns of those
 * in shared memory, `parts` times: the hits of a row are dealt out to these in
 * turn.  It looks through all indices and lists its hits. */
struct ckr_scatter {
	int64_t outer, size, nidx, inner;
	int64_t rows, slices, columns;  /* of a block; blocks beside each
	                                 * other, each way */
	int parts, idx_bytes;
	struct ckr_part part;
};

struct ckr_hits {
	uint32_t at[CKR_ADD_HITS];
	uint16_t row[CKR_ADD_HITS];
	int count[CKR_ADD_WARPS];
};

/* Append the hits among indices first .. first + CKR_ADD_SCAN - 1 on rows
 * from..; returns how many there are. */
CKR_DEVICE int
ckr_hits_scan(struct ckr_hits *h, int have, const void *idx, int64_t first,
              int64_t from, const struct ckr_scatter &s, struct ckr_env *env)
{
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	unsigned below = (1u << lane) - 1, mask[CKR_ADD_EACH];
	int64_t row[CKR_ADD_EACH];
	int n = 0, all = have;

	first += warp * CKR_WARP * CKR_ADD_EACH + lane;
	for (int q = 0; q < CKR_ADD_EACH; q++) {
		int64_t i = first + q * CKR_WARP;
		int64_t k = i < s.nidx ? ckr_index(idx, i, s.idx_bytes,
		                                   s.part.whole, env) : -1;

		k = ckr_in_part(&s.part, k);
		row[q] = k >= from && k < from + s.rows ? k - from : -1;
		mask[q] = __ballot_sync(0xffffffffu, row[q] >= 0);
		n += __popc(mask[q]);
	}
	/* counts were read before the last barrier */
	if (lane == 0)
		h->count[warp] = n;
	__syncthreads();
	for (int w = 0; w < CKR_ADD_WARPS; w++) {
		have += w < warp ? h->count[w] : 0;
		all += h->count[w];
	}
	for (int q = 0; q < CKR_ADD_EACH; q++) {
		int to = have + __popc(mask[q] & below);

		if (row[q] >= 0) {
			h->at[to] = (uint32_t)(first + q * CKR_WARP);
			h->row[to] = (uint16_t)row[q];
		}
		have += __popc(mask[q]);
	}
	__syncthreads();
	return all;
}

/* Add the hits of this warp's rows and part. */
template <typename U> CKR_DEVICE void
ckr_hits_add(float *sum, const struct ckr_hits *h, int have, int64_t seen,
             const U *upd, int columns, const struct ckr_scatter &s)
{
	enum { AHEAD = 4 };
	int lane = threadIdx.x % CKR_WARP, warp = threadIdx.x / CKR_WARP;
	int part = warp % s.parts, turn = warp / s.parts;
	int turns = CKR_ADD_WARPS / s.parts;

	sum += part * s.rows * CKR_ADD_COLUMNS;
	for (int first = 0; first < have; first += CKR_WARP) {
		int i = first + lane;
		unsigned mask = __ballot_sync(0xffffffffu, i < have
			&& h->row[i] % turns == turn
			&& (seen + i) % s.parts == part);

		while (mask) {
			float x[AHEAD][CKR_ADD_LANE] = { { 0 } };
			int row[AHEAD], n = 0;

#pragma unroll
			for (int a = 0; a < AHEAD; a++) {
				int hit = first + __ffs(mask) - 1;

				row[a] = mask ? h->row[hit] : -1;
				if (mask)
					for (int q = 0; q < CKR_ADD_LANE; q++) {
						int j = lane + q * CKR_WARP;

						x[a][q] = j < columns
							? ckr_get(upd[h->at[hit]
							  * s.inner + j]) : 0;
					}
				mask &= mask - 1;
				n += row[a] >= 0;
			}
#pragma unroll
			for (int a = 0; a < AHEAD; a++)
				for (int q = 0; q < CKR_ADD_LANE && a < n; q++)
					sum[row[a] * CKR_ADD_COLUMNS + lane
					    + q * CKR_WARP] += x[a][q];
		}
	}
}

/* One block's rows `from`.. and columns `left`.. of matrix o. */
template <typename Y, typename U> CKR_DEVICE void
ckr_scatter_block(Y *y, const Y *acc, const U *upd, const void *idx,
                  int64_t from, int64_t left, const struct ckr_scatter &s,
                  struct ckr_hits *h, float *sum, struct ckr_env *env)
{
	int rows = (int)ckr_least(s.size - from, s.rows), have = 0;
	int columns = (int)ckr_least(s.inner - left, CKR_ADD_COLUMNS);
	int each = (int)s.rows * CKR_ADD_COLUMNS;
	int64_t seen = 0;

	for (int i = threadIdx.x; i < each * s.parts; i += CKR_THREADS) {
		int row = i / CKR_ADD_COLUMNS, j = i % CKR_ADD_COLUMNS;

		sum[i] = acc && row < rows && j < columns
			? ckr_get(acc[(from + row) * s.inner + left + j])
			: 0.0f;
	}
	/* ckr_hits_scan waits for all of that */
	for (int64_t i = 0; i < s.nidx; i += CKR_ADD_SCAN) {
		have = ckr_hits_scan(h, have, idx, i, from, s, env);
		if (have <= CKR_ADD_HITS - CKR_ADD_SCAN
		    && i + CKR_ADD_SCAN < s.nidx)
			continue;
		ckr_hits_add(sum, h, have, seen, upd + left, columns, s);
		seen += have;
		have = 0;
	}
	__syncthreads();
	for (int i = threadIdx.x; i < rows * CKR_ADD_COLUMNS;
	     i += CKR_THREADS) {
		int row = i / CKR_ADD_COLUMNS, j = i % CKR_ADD_COLUMNS;
		float t = sum[i];

		for (int p = 1; p < s.parts; p++)
			t += sum[p * each + i];
		if (j < columns)
			ckr_put(&y[(from + row) * s.inner + left + j], t);
	}
	__syncthreads();
}

template <typename Y, typename U> CKR_GLOBAL
ckr_scatter_device(Y *y, const Y *acc, const U *upd, const void *idx,
                   struct ckr_scatter s, struct ckr_env *env)
{
	CKR_SHARED(struct ckr_hits, h);
	float *sum = (float *)(h + 1);

	CKR_BLOCK_TASKS(t, s.outer * s.slices * s.columns) {
		int64_t o = t / (s.slices * s.columns);
		int64_t r = t / s.columns % s.slices, c = t % s.columns;
		int64_t at = o * s.size * s.inner;

		ckr_scatter_block(y + at, acc ? acc + at : acc,
		                  upd + o * s.nidx * s.inner, idx, r * s.rows,
		                  c * CKR_ADD_COLUMNS, s, h, sum,
		                  t == 0 ? env : NULL);
	}
}

/* y [outer, size, inner] = acc, or 0, + upd [outer, nidx, inner] at idx. */
template <typename Y, typename U> static inline void
ckr_scatter_add(Y *y, const ckr_is<Y> *acc, const U *upd, const void *idx,
                int idx_bytes, int64_t outer, int64_t size, int64_t nidx,
                int64_t inner, struct ckr_part part, struct ckr_env *env)
{
	struct ckr_scatter s = { outer, size, nidx, inner };
	int64_t blocks, bytes, most = CKR_ADD_SUMS / CKR_ADD_COLUMNS;

	if (outer * size * inner == 0)
		return;
	s.columns = ckr_ceil_div(inner, CKR_ADD_COLUMNS);
	s.rows = ckr_ceil_div(size * s.columns * outer, CKR_ADD_BLOCKS);
	s.rows = ckr_least(ckr_least(s.rows, most), size);
	s.slices = ckr_ceil_div(size, s.rows);
	s.parts = s.rows > 4 ? 1 : s.rows > 2 ? 2 : s.rows > 1 ? 4 : 8;
	s.idx_bytes = idx_bytes;
	s.part = part;
	blocks = ckr_least(outer * s.slices * s.columns, INT32_MAX);
	bytes = sizeof(struct ckr_hits)
		+ s.parts * s.rows * CKR_ADD_COLUMNS * (int64_t)sizeof(float);
	CKR_LAUNCH_BLOCK((ckr_scatter_device<Y, U>), blocks, CKR_THREADS,
	                 bytes, env, y, acc, upd, idx, s, env->device);
}

/* ---- elements ---- */

template <typename T> CKR_DEVICE T ckr_value(T x) { return x; }
CKR_DEVICE float ckr_value(ckr_bf16 x) { return ckr_get(x); }
CKR_DEVICE float ckr_value(ckr_f16 x) { return ckr_get(x); }
template <typename T> CKR_DEVICE void
ckr_assign(T *y, T x)
{
	*y = x;
}
CKR_DEVICE void ckr_assign(ckr_bf16 *y, float x) { ckr_put(y, x); }
CKR_DEVICE void ckr_assign(ckr_f16 *y, float x) { ckr_put(y, x); }

/* how: 0 replace, 1 add, 2 multiply, 3 the larger, 4 the smaller; a NaN
 * wins. */
template <typename T> CKR_DEVICE void
ckr_combine(T *to, T from, int how)
{
	auto a = ckr_value(*to), b = ckr_value(from);
	typedef decltype(a) A;

	if (how == 0)
		*to = from;
	else
		ckr_assign(to, (A)(how == 1 ? a + b : how == 2 ? a * b
			: (how == 3) == (a > b) || a != a ? a : b));
}

/* The statement with T the type of this number. */
#define CKR_TYPES(dtype, T, ...) do { \
	switch (dtype) { \
	case CKR_F32: { typedef float T; __VA_ARGS__; break; } \
	case CKR_F64: { typedef double T; __VA_ARGS__; break; } \
	case CKR_F16: { typedef ckr_f16 T; __VA_ARGS__; break; } \
	case CKR_BF16: { typedef ckr_bf16 T; __VA_ARGS__; break; } \
	case CKR_I64: { typedef int64_t T; __VA_ARGS__; break; } \
	case CKR_U64: { typedef uint64_t T; __VA_ARGS__; break; } \
	case CKR_I32: { typedef int32_t T; __VA_ARGS__; break; } \
	case CKR_U32: { typedef uint32_t T; __VA_ARGS__; break; } \
	case CKR_I16: { typedef int16_t T; __VA_ARGS__; break; } \
	case CKR_U16: { typedef uint16_t T; __VA_ARGS__; break; } \
	case CKR_I8: { typedef int8_t T; __VA_ARGS__; break; } \
	default: { typedef uint8_t T; __VA_ARGS__; } \
	} \
} while (0)

static inline int
ckr_word_type(int size)
{
	return size == 8 ? CKR_U64 : size == 4 ? CKR_U32
	     : size == 2 ? CKR_U16 : CKR_U8;
}

/* A task is a line of the indices along the axis: others go elsewhere. */
template <typename T> CKR_GLOBAL
ckr_scatter_elements_device(T *y, const T *upd, const void *idx, int idx_bytes,
                            int how, int rank, int axis,
                            CKR_ARGUMENT ckr_list dim,
                            CKR_ARGUMENT ckr_list idim, int64_t lines,
                            struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, lines) {
		int64_t rest = t, at = 0, to = 0, step = 1, ostep = 1;
		int64_t along = 1, oalong = 1;

		for (int d = rank - 1; d >= 0; d--) {
			int64_t i = d == axis ? 0 : rest % idim.v[d];

			along = d == axis ? step : along;
			oalong = d == axis ? ostep : oalong;
			rest = d == axis ? rest : rest / idim.v[d];
			at += i * step;
			to += i * ostep;
			step *= idim.v[d];
			ostep *= dim.v[d];
		}
		for (int64_t j = 0; j < idim.v[axis]; j++, at += along) {
			int64_t k = ckr_index(idx, at, idx_bytes, dim.v[axis],
			                      env);

			if (k >= 0)
				ckr_combine(&y[to + k * oalong], upd[at], how);
		}
	}
}

template <typename Env> static inline void
ckr_scatter_elements(void *y, const void *x, int64_t n, const void *idx,
                     int idx_bytes, const void *upd, int size, int add_dtype,
                     int how, int rank, int axis, const int64_t *dim,
                     const int64_t *idim, int64_t nidx, Env *env)
{
	int64_t lines = nidx ? nidx / idim[axis] : 0;

	ckr_copy(y, x, n * size, env);
	if (lines == 0)
		return;
	CKR_TYPES(add_dtype ? add_dtype : ckr_word_type(size), T,
		CKR_EACH(ckr_scatter_elements_device<T>, lines, env, (T *)y,
		         (const T *)upd, idx, idx_bytes, how, rank, axis,
		         ckr_list_of(dim, rank), ckr_list_of(idim, rank), lines,
		         env->device));
}

enum { CKR_ND_TASKS = 1 << 14 };        /* wanted */

/* A task has element j of those slices whose number is `turn` modulo
 * turns. */
template <typename T> CKR_GLOBAL
ckr_scatter_nd_device(T *y, const T *upd, const void *idx, int idx_bytes,
                      int64_t nidx, int depth, CKR_ARGUMENT ckr_list dim,
                      int64_t row, int64_t turns, int how, struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, row * turns) {
		int64_t turn = ckr_div(t, row), j = t - turn * row;

		for (int64_t i = 0; i < nidx; i++) {
			int64_t k = ckr_tuple(idx, idx_bytes, i, depth, dim.v,
			                      t == 0 ? env : NULL);

			if (k >= 0 && k - ckr_div(k, turns) * turns == turn)
				ckr_combine(&y[k * row + j], upd[i * row + j],
				            how);
		}
	}
}

template <typename Env> static inline void
ckr_scatter_nd(void *y, const void *x, int64_t nbytes, const void *idx,
               int idx_bytes, const void *upd, int64_t nidx, int depth,
               const int64_t *dim, int64_t row, int size, int add_dtype,
               int how, Env *env)
{
	int64_t n = row / size, turns = 1, slices = 1;

	ckr_copy(y, x, nbytes, env);
	if (nidx == 0 || n == 0)
		return;
	for (int d = 0; d < depth; d++)
		slices *= dim[d];
	turns = ckr_least(ckr_ceil_div(CKR_ND_TASKS, n), slices);
	CKR_TYPES(add_dtype ? add_dtype : ckr_word_type(size), T,
		CKR_EACH(ckr_scatter_nd_device<T>, n * turns, env, (T *)y,
		         (const T *)upd, idx, idx_bytes, nidx, depth,
		         ckr_list_of(dim, depth), n, turns, how, env->device));
}

#endif
