/* 16-bit floats in memory, float32 in arithmetic: conversions of runs. */
#ifndef CODEGEN_CPU_KERNELS_HALF_H
#define CODEGEN_CPU_KERNELS_HALF_H

#include "cpu.h"
#include "arith.h"

/* Bytes of an element of the type: CKR_F32 or of 16 bits. */
static inline int64_t
ckr_size(int type)
{
	return type == CKR_F32 ? 4 : 2;
}

/* Element i. */
static inline void *
ckr_item(const void *x, int type, int64_t i)
{
	return (char *)x + i * ckr_size(type);
}

static inline void
ckr_zeros(void *to, int type, int64_t n)
{
	if (n > 0)
		memset(to, 0, (size_t)(n * ckr_size(type)));
}

/* y = alpha op(a) op(b) + beta y, where a parallel region may be open.  a and b
 * are float32, or bf16 where env.bgemm is there; y is float32. */
static inline void
ckr_product(int type, int ta, int tb, int64_t m, int64_t n, int64_t k,
            float alpha, const void *a, int64_t lda, const void *b,
            int64_t ldb, float beta, float *y, int64_t ldy,
            const struct ckr_env *env)
{
	if (type == CKR_BF16)
		env->bgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, y,
		           ldy);
	else
		ckr_sgemm(env)(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, y,
		               ldy);
}

/* to[0..n-1] = from[at..at+n-1], elements of this type (CKR_F32 too). */
static inline void
ckr_widen(float *to, const void *from, int type, int64_t at, int64_t n)
{
	const uint16_t *h = (const uint16_t *)from + at;

	if (type == CKR_F32) {
		memcpy(to, (const float *)from + at, (size_t)n * sizeof *to);
	} else if (type == CKR_BF16) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_bf16(h[i]);
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			to[i] = ckr_from_f16(h[i]);
	}
}

static inline void
ckr_narrow(void *to, int type, int64_t at, const float *from, int64_t n)
{
	uint16_t *h = (uint16_t *)to + at;

	if (type == CKR_F32) {
		memcpy((float *)to + at, from, (size_t)n * sizeof *from);
	} else if (type == CKR_BF16) {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			h[i] = ckr_to_bf16(from[i]);
	} else {
#pragma omp simd
		for (int64_t i = 0; i < n; i++)
			h[i] = ckr_to_f16(from[i]);
	}
}

/* x[0..n-1] in the place of its first half. */
static inline void
ckr_narrow_over(float *x, int type, int64_t n)
{
	uint16_t part[256];

	for (int64_t i = 0; i < n; i += 256) {
		int64_t m = n - i < 256 ? n - i : 256;

		ckr_narrow(part, type, 0, x + i, m);
		memcpy((uint16_t *)x + i, part, (size_t)m * sizeof *part);
	}
}

static inline int64_t
ckr_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Row at x[at..at+n-1], as it lies or widened to the buffer; NULL: none. */
static inline const float *
ckr_row(float *buffer, const void *x, int type, int64_t at, int64_t n)
{
	if (type == CKR_F32 || !x)
		return x ? (const float *)x + at : NULL;
	ckr_widen(buffer, x, type, at, n);
	return buffer;
}

/* Memory in which a row of y[at..] is computed; ckr_row_put() stores it. */
static inline float *
ckr_row_new(float *buffer, void *y, int type, int64_t at)
{
	return !y ? NULL : type == CKR_F32 ? (float *)y + at : buffer;
}

static inline void
ckr_row_put(void *y, int type, int64_t at, const float *row, int64_t n)
{
	if (y && type != CKR_F32)
		ckr_narrow(y, type, at, row, n);
}

/* y += x. */
static inline void
ckr_add(float *y, const float *x, int64_t n, const struct ckr_env *env)
{
#pragma omp parallel for simd num_threads(env->threads) if (n > CKR_SMALL)
	for (int64_t i = 0; i < n; i++)
		y[i] += x[i];
}

#endif
