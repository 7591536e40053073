/* Data movement by index.  Elements are moved as words of as many bytes as
 * their place allows; an index out of range is a fault of the step and never
 * an access.
 *
 * What launches is a template over the env, so that what a model does not call
 * is not compiled.
 */
#ifndef CODEGEN_CUDA_KERNELS_CUDA_INDEX_CUH
#define CODEGEN_CUDA_KERNELS_CUDA_INDEX_CUH

#include "places.h"

/* The statements with W a word of as many bytes as rows of `row` bytes are cut
 * into, where they begin at a and b. */
#define CKR_WORDS_OF(W, a, b, row, ...) do { \
	uintptr_t all_ = (uintptr_t)(a) | (uintptr_t)(b) | (uintptr_t)(row); \
	if (all_ % 16 == 0) { \
		typedef uint4 W; \
		__VA_ARGS__; \
	} else if (all_ % 8 == 0) { \
		typedef uint64_t W; \
		__VA_ARGS__; \
	} else if (all_ % 4 == 0) { \
		typedef uint32_t W; \
		__VA_ARGS__; \
	} else if (all_ % 2 == 0) { \
		typedef uint16_t W; \
		__VA_ARGS__; \
	} else { \
		typedef uint8_t W; \
		__VA_ARGS__; \
	} \
} while (0)

/* ---- copies ---- */

template <typename W> CKR_GLOBAL
ckr_copy_device(W *y, const W *x, int64_t n)
{
	CKR_TASKS(int64_t, t, n)
		y[t] = x[t];
}

template <typename Env> static inline void
ckr_copy(void *y, const void *x, int64_t nbytes, Env *env)
{
	if (y == x)
		return;
	CKR_WORDS_OF(W, y, x, nbytes, {
		int64_t n = nbytes / (int64_t)sizeof(W);

		CKR_EACH(ckr_copy_device<W>, n, env, (W *)y, (const W *)x, n);
	});
}

/* ---- gather ---- */

/* y [outer, nidx, words] from x [outer, size, words], positions of the whole
 * that the part has; zeros elsewhere. */
template <typename W> CKR_GLOBAL
ckr_gather_device(W *y, const W *x, const void *idx, int idx_bytes,
                  int64_t total, int64_t size, int64_t nidx, int64_t words,
                  struct ckr_part part, struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t row = ckr_div(t, words), j = t - row * words;
		int64_t o = ckr_div(row, nidx), i = row - o * nidx;
		int64_t k = ckr_index(idx, i, idx_bytes, part.whole,
		                      o == 0 && j == 0 ? env : NULL);

		k = ckr_in_part(&part, k);
		y[t] = k < 0 ? W() : x[(o * size + k) * words + j];
	}
}

template <typename Env> static inline void
ckr_gather(void *y, const void *x, const void *idx, int idx_bytes,
           int64_t outer, int64_t size, int64_t nidx, int64_t row,
           struct ckr_part part, Env *env)
{
	CKR_WORDS_OF(W, y, x, row, {
		int64_t words = row / (int64_t)sizeof(W);
		int64_t n = outer * nidx * words;

		CKR_EACH(ckr_gather_device<W>, n, env, (W *)y, (const W *)x,
		         idx, idx_bytes, n, size, nidx, words, part,
		         env->device);
	});
}

template <typename W> CKR_GLOBAL
ckr_gather_elements_device(W *y, const W *x, const void *idx, int idx_bytes,
                           int rank, int axis, CKR_ARGUMENT ckr_list dim,
                           CKR_ARGUMENT ckr_list idim, int64_t nidx,
                           struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, nidx) {
		int64_t k = ckr_index(idx, t, idx_bytes, dim.v[axis], env);

		y[t] = k < 0 ? W() : x[ckr_element(t, rank, idim.v, dim.v,
		                                   axis, k)];
	}
}

template <typename Env> static inline void
ckr_gather_elements(void *y, const void *x, const void *idx, int idx_bytes,
                    int size, int rank, int axis, const int64_t *dim,
                    const int64_t *idim, int64_t nidx, Env *env)
{
	CKR_WORDS_OF(W, y, x, size,
		CKR_EACH(ckr_gather_elements_device<W>, nidx, env, (W *)y,
		         (const W *)x, idx, idx_bytes, rank, axis,
		         ckr_list_of(dim, rank), ckr_list_of(idim, rank), nidx,
		         env->device));
}

template <typename W> CKR_GLOBAL
ckr_gather_nd_device(W *y, const W *x, const void *idx, int idx_bytes,
                     int64_t total, int64_t nidx, int depth,
                     CKR_ARGUMENT ckr_list dim, int64_t nslice, int64_t words,
                     struct ckr_env *env)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t i = ckr_div(t, words), j = t - i * words;
		int64_t k = ckr_tuple(idx, idx_bytes, i, depth, dim.v,
		                      j == 0 ? env : NULL);

		y[t] = k < 0 ? W() : x[(ckr_div(i, nidx) * nslice + k) * words
		                       + j];
	}
}

template <typename Env> static inline void
ckr_gather_nd(void *y, const void *x, const void *idx, int idx_bytes,
              int64_t batch, int64_t nidx, int depth, const int64_t *dim,
              int64_t nslice, int64_t row, Env *env)
{
	CKR_WORDS_OF(W, y, x, row, {
		int64_t words = row / (int64_t)sizeof(W);
		int64_t n = batch * nidx * words;

		CKR_EACH(ckr_gather_nd_device<W>, n, env, (W *)y, (const W *)x,
		         idx, idx_bytes, n, nidx, depth,
		         ckr_list_of(dim, depth), nslice, words, env->device);
	});
}

/* ---- by place ---- */

struct ckr_padding {
	struct ckr_list dim, stride, odim, begin;
	int rank;
	int64_t mode;
};

template <typename W> CKR_GLOBAL
ckr_pad_device(W *y, const W *x, int64_t total, CKR_ARGUMENT ckr_padding p)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t at = 0, rest = t;

		for (int d = p.rank - 1; d >= 0; d--) {
			int64_t q = ckr_div(rest, p.odim.v[d]);

			at += p.stride.v[d]
				* ckr_pad_from(rest - q * p.odim.v[d]
				               - p.begin.v[d], p.dim.v[d],
				               p.mode);
			rest = q;
		}
		y[t] = x[at];
	}
}

template <typename Env> static inline void
ckr_pad(void *y, const void *x, int size, int rank, int64_t mode,
        const int64_t *dim, const int64_t *stride, const int64_t *odim,
        const int64_t *begin, Env *env)
{
	struct ckr_padding p = { ckr_list_of(dim, rank),
		ckr_list_of(stride, rank), ckr_list_of(odim, rank),
		ckr_list_of(begin, rank), rank, mode };
	int64_t n = 1;

	for (int d = 0; d < rank; d++)
		n *= odim[d];
	CKR_WORDS_OF(W, y, x, size,
		CKR_EACH(ckr_pad_device<W>, n, env, (W *)y, (const W *)x, n,
		         p));
}

template <typename W> CKR_GLOBAL
ckr_trilu_device(W *y, const W *x, int64_t total, int64_t rows, int64_t cols,
                 int64_t upper, int64_t k)
{
	CKR_TASKS(int64_t, t, total) {
		int64_t i = ckr_div(t, cols), j = t - i * cols;
		int64_t cut = i - ckr_div(i, rows) * rows + k + !upper;

		y[t] = (j >= cut) == (upper != 0) ? x[t] : W();
	}
}

template <typename Env> static inline void
ckr_trilu(void *y, const void *x, int size, int64_t outer, int64_t rows,
          int64_t cols, int64_t upper, int64_t k, Env *env)
{
	int64_t n = outer * rows * cols;

	CKR_WORDS_OF(W, y, x, size,
		CKR_EACH(ckr_trilu_device<W>, n, env, (W *)y, (const W *)x, n,
		         rows, cols, upper, k));
}

#include "cuda_scatter.cuh"

#endif
