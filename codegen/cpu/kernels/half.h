/* 16-bit floats in memory, float32 in arithmetic: conversions of runs. */
#ifndef CODEGEN_CPU_KERNELS_HALF_H
#define CODEGEN_CPU_KERNELS_HALF_H

#include "cpu.h"
#include "arith.h"

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
