/* Indexing and data movement by index.  Elements are moved as bytes; an index
 * out of range is a fault of the step and never an access.
 */
#include "index.h"

/* An element, or zeros for one that there is not. */
static inline void
ckr_take(void *to, const void *from, int64_t k, int64_t nbytes)
{
	if (k < 0)
		memset(to, 0, (size_t)nbytes);
	else
		ckr_move(to, (const char *)from + k * nbytes, nbytes);
}

void
ckr_gather(void *y, const void *x, const void *idx, int idx_bytes,
           int64_t outer, int64_t size, int64_t nidx, int64_t row,
           struct ckr_part part, struct ckr_env *env)
{
	CKR_SHARE(outer * nidx * row, collapse(2))
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < nidx; i++)
			ckr_take((char *)y + (o * nidx + i) * row,
			         (const char *)x + o * size * row,
			         ckr_in_part(&part, ckr_index(idx, i, idx_bytes,
			                                      part.whole, env)),
			         row);
}

void
ckr_scatter_add(float *y, const float *acc, const float *upd, const void *idx,
                int idx_bytes, int64_t outer, int64_t size, int64_t nidx,
                int64_t inner, struct ckr_part part, struct ckr_env *env)
{
	int64_t threads = env->threads, n = outer * size;

	CKR_SHARE(n * inner)
	for (int64_t i = acc == y ? n : 0; i < n; i++)
		ckr_take(y + i * inner, acc, acc ? i : -1,
		         inner * (int64_t)sizeof *y);
	CKR_SHARE(outer * nidx * inner)
	for (int64_t t = 0; t < threads; t++) {
		for (int64_t i = 0; i < outer * nidx; i++) {
			int64_t k = ckr_in_part(&part, ckr_index(idx, i % nidx,
				idx_bytes, part.whole, env));
			const float *from = upd + i * inner;
			float *to;

			if (k < 0 || k % threads != t)
				continue;
			to = y + (i / nidx * size + k) * inner;
#pragma omp simd
			for (int64_t j = 0; j < inner; j++)
				to[j] += from[j];
		}
	}
}

void
ckr_gather_elements(void *y, const void *x, const void *idx, int idx_bytes,
                    int size, int rank, int axis, const int64_t *dim,
                    const int64_t *idim, int64_t nidx, struct ckr_env *env)
{
	CKR_SHARE(nidx)
	for (int64_t i = 0; i < nidx; i++) {
		int64_t k = ckr_index(idx, i, idx_bytes, dim[axis], env);

		ckr_take((char *)y + i * size, x, k < 0 ? k
		         : ckr_element(i, rank, idim, dim, axis, k), size);
	}
}

#define CKR_PLAIN(x) (x)

/* how: 1 add, 2 multiply, 3 the larger, 4 the smaller; a NaN wins. */
#define CKR_COMBINE(dtype, stored, type, load, store) \
	case dtype: { \
		stored *at_ = to; \
		const type a_ = load(*at_), b_ = load(*(const stored *)from); \
		*at_ = store(how == 1 ? a_ + b_ : how == 2 ? a_ * b_ \
		             : (how == 3) == (a_ > b_) || a_ != a_ ? a_ : b_); \
		break; \
	}
#define CKR_COMBINE_AS(dtype, type) \
	CKR_COMBINE(dtype, type, type, CKR_PLAIN, (type)CKR_PLAIN)

/* Combine one element with another; dtype as in the ABI. */
static inline void
ckr_add_element(void *to, const void *from, int dtype, int how)
{
	switch (dtype) {
	CKR_COMBINE_AS(CKR_F32, float)
	CKR_COMBINE_AS(CKR_F64, double)
	CKR_COMBINE(CKR_F16, uint16_t, float, ckr_from_f16, ckr_to_f16)
	CKR_COMBINE(CKR_BF16, uint16_t, float, ckr_from_bf16, ckr_to_bf16)
	CKR_COMBINE_AS(CKR_I64, int64_t)
	CKR_COMBINE_AS(CKR_U64, uint64_t)
	CKR_COMBINE_AS(CKR_I32, int32_t)
	CKR_COMBINE_AS(CKR_U32, uint32_t)
	CKR_COMBINE_AS(CKR_I16, int16_t)
	CKR_COMBINE_AS(CKR_U16, uint16_t)
	CKR_COMBINE_AS(CKR_I8, int8_t)
	default:
	CKR_COMBINE_AS(CKR_U8, uint8_t)
	}
}

/* Replace elements of `size` bytes, `row` in all, or combine them. */
static inline void
ckr_put_elements(char *to, const char *from, int64_t row, int size,
                 int add_dtype, int how)
{
	if (!add_dtype)
		ckr_move(to, from, row);
	for (int64_t j = 0; add_dtype && j < row; j += size)
		ckr_add_element(to + j, from + j, add_dtype, how);
}

void
ckr_scatter_elements(void *y, const void *x, int64_t n, const void *idx,
                     int idx_bytes, const void *upd, int size, int add_dtype,
                     int how, int rank, int axis, const int64_t *dim,
                     const int64_t *idim, int64_t nidx, struct ckr_env *env)
{
	if (y != x)
		memcpy(y, x, (size_t)(n * size));
	for (int64_t i = 0; i < nidx; i++) {
		int64_t k = ckr_index(idx, i, idx_bytes, dim[axis], env);

		if (k >= 0)
			ckr_put_elements((char *)y + size * ckr_element(i,
				rank, idim, dim, axis, k), (const char *)upd
				+ i * size, size, size, add_dtype, how);
	}
}

void
ckr_gather_nd(void *y, const void *x, const void *idx, int idx_bytes,
              int64_t batch, int64_t nidx, int depth, const int64_t *dim,
              int64_t nslice, int64_t row, struct ckr_env *env)
{
	CKR_SHARE(batch * nidx * row)
	for (int64_t i = 0; i < batch * nidx; i++) {
		int64_t k = ckr_tuple(idx, idx_bytes, i, depth, dim, env);

		ckr_take((char *)y + i * row, x,
		         k < 0 ? k : i / nidx * nslice + k, row);
	}
}

void
ckr_scatter_nd(void *y, const void *x, int64_t nbytes, const void *idx,
               int idx_bytes, const void *upd, int64_t nidx, int depth,
               const int64_t *dim, int64_t row, int size, int add_dtype,
               int how, struct ckr_env *env)
{
	if (y != x)
		memcpy(y, x, (size_t)nbytes);
	for (int64_t i = 0; i < nidx; i++) {
		int64_t k = ckr_tuple(idx, idx_bytes, i, depth, dim, env);

		if (k >= 0)
			ckr_put_elements((char *)y + k * row, (const char *)upd
				+ i * row, row, size, add_dtype, how);
	}
}

void
ckr_pad(void *y, const void *x, int size, int rank, int64_t mode,
        const int64_t *dim, const int64_t *stride, const int64_t *odim,
        const int64_t *begin, const struct ckr_env *env)
{
	int64_t total = 1;

	for (int d = 0; d < rank; d++)
		total *= odim[d];
	CKR_SHARE(total)
	for (int64_t i = 0; i < total; i++) {
		int64_t at = 0, rest = i;

		for (int d = rank - 1; d >= 0; d--) {
			at += stride[d] * ckr_pad_from(rest % odim[d] -
			                               begin[d], dim[d], mode);
			rest /= odim[d];
		}
		ckr_move((char *)y + i * size, (const char *)x + at * size,
		         size);
	}
}

void
ckr_trilu(void *y, const void *x, int size, int64_t outer, int64_t rows,
          int64_t cols, int64_t upper, int64_t k, const struct ckr_env *env)
{
	CKR_SHARE(outer * rows * cols)
	for (int64_t i = 0; i < outer * rows; i++) {
		char *to = (char *)y + i * cols * size;
		const char *from = (const char *)x + i * cols * size;
		int64_t cut = i % rows + k + (upper ? 0 : 1);

		cut = cut < 0 ? 0 : cut > cols ? cols : cut;
		memset(to, 0, (size_t)(cols * size));
		if (upper)
			memcpy(to + cut * size, from + cut * size,
			       (size_t)((cols - cut) * size));
		else
			memcpy(to, from, (size_t)(cut * size));
	}
}
