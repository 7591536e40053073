/* Sums in a fixed order, whatever the number of threads. */
#ifndef CODEGEN_CPU_KERNELS_SUMS_H
#define CODEGEN_CPU_KERNELS_SUMS_H

#include "cpu.h"
#include "arith.h"

/* ---- sums of a fixed shape ----
 *
 * 64 lanes, in vectors as wide as the machine's: element i goes to lane i % 64,
 * and then the lanes are halved, so that how wide vectors are does not show.
 */
#if defined(__AVX512F__)
enum { CKR_WIDE = 16 };
#elif defined(__AVX__)
enum { CKR_WIDE = 8 };
#else
enum { CKR_WIDE = 4 };
#endif
typedef float ckr_lanes
	__attribute__((vector_size(4 * CKR_WIDE), aligned(4), may_alias));

static inline float
ckr_fold(const float *lane)
{
	float t[16];

#pragma omp simd
	for (int i = 0; i < 16; i++)
		t[i] = (lane[i] + lane[i + 16])
			+ (lane[i + 32] + lane[i + 48]);
#pragma omp simd
	for (int i = 0; i < 8; i++)
		t[i] += t[i + 8];
#pragma omp simd
	for (int i = 0; i < 4; i++)
		t[i] += t[i + 4];
	return (t[0] + t[2]) + (t[1] + t[3]);
}

/* Sum over i of TERM, with vectors at X and Y (v, w are the operands'
 * vectors) and for less than one with floats of the same names. */
#define CKR_SUM(name, params, X, Y, TERM) \
static inline float \
name params \
{ \
	ckr_lanes a[64 / CKR_WIDE] = { 0 }; \
	float lane[64]; \
	int64_t i = 0; \
	for (; i + 64 <= n; i += 64) { \
		const ckr_lanes *x_ = (const ckr_lanes *)((X) + i); \
		const ckr_lanes *y_ = (const ckr_lanes *)((Y) + i); \
		_Pragma("GCC unroll 16") \
		for (int k = 0; k < 64 / CKR_WIDE; k++) { \
			ckr_lanes v = x_[k], w = y_[k]; \
			(void)w; \
			a[k] += TERM; \
		} \
	} \
	memcpy(lane, a, sizeof lane); \
	for (int64_t j = 0; i + CKR_WIDE <= n; i += CKR_WIDE, j += CKR_WIDE) { \
		ckr_lanes v = *(const ckr_lanes *)((X) + i); \
		ckr_lanes w = *(const ckr_lanes *)((Y) + i); \
		(void)w; \
		*(ckr_lanes *)(lane + j) += TERM; \
	} \
	for (int64_t j = i % 64; i < n; i++, j++) { \
		float v = (X)[i], w = (Y)[i]; \
		(void)w; \
		lane[j] += TERM; \
	} \
	return ckr_fold(lane); \
}

CKR_SUM(ckr_sum, (const float *x, int64_t n), x, x, v)
CKR_SUM(ckr_dot, (const float *x, const float *y, int64_t n), x, y, v * w)
CKR_SUM(ckr_sum_squares, (const float *x, int64_t n), x, x, v * v)
CKR_SUM(ckr_sum_deviations, (const float *x, int64_t n, float mean), x, x,
        (v - mean) * (v - mean))

static inline float
ckr_max_of(const float *x, int64_t n)
{
	float m = -__builtin_inff();

#pragma omp simd reduction(max: m)
	for (int64_t i = 0; i < n; i++)
		m = x[i] > m ? x[i] : m;
	if (m > -3.40282347e38f)
		return m;
	/* clang's lanes start at the least finite number instead */
	m = -__builtin_inff();
	for (int64_t i = 0; i < n; i++)
		m = x[i] > m ? x[i] : m;
	return m;
}

/* Sum of e^(x - m) without storing it. */
static inline float
ckr_sum_exp(const float *x, int64_t n, float m)
{
	float lane[64] = { 0 };
	int64_t i = 0;

	for (; i + 64 <= n; i += 64) {
#pragma omp simd
		for (int j = 0; j < 64; j++)
			lane[j] += ckr_exp(x[i + j] - m);
	}
	for (int64_t j = 0; i + j < n; j++)
		lane[j] += ckr_exp(x[i + j] - m);
	return ckr_fold(lane);
}

#endif
