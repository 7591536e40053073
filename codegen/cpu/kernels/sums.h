#ifndef CKR_SUMS_H
#define CKR_SUMS_H

#include "cpu.h"
#include "arith.h"

/* ---- sums of a fixed shape ----
 *
 * 64 lanes in four vectors of 16: element i goes to lane i % 64; what is left
 * after whole blocks goes to the first lanes; then the lanes are halved.
 */
typedef float ckr_lanes
	__attribute__((vector_size(64), aligned(4), may_alias));

static inline float
ckr_fold(const float *lane)
{
	float t[16];

	for (int i = 0; i < 16; i++)
		t[i] = (lane[i] + lane[i + 16]) +
		       (lane[i + 32] + lane[i + 48]);
	for (int w = 8; w > 0; w /= 2)
		for (int i = 0; i < w; i++)
			t[i] += t[i + w];
	return t[0];
}

/* Sum over i of TERM, once with vectors at X and Y (v, w are the operands'
 * vectors) and once for the rest with floats of the same names. */
#define CKR_SUM(name, params, X, Y, TERM) \
static inline float \
name params \
{ \
	ckr_lanes a0 = { 0 }, a1 = { 0 }, a2 = { 0 }, a3 = { 0 }; \
	float lane[64]; \
	int64_t i = 0; \
	for (; i + 64 <= n; i += 64) { \
		const ckr_lanes *x_ = (const ckr_lanes *)((X) + i); \
		const ckr_lanes *y_ = (const ckr_lanes *)((Y) + i); \
		{ ckr_lanes v = x_[0], w = y_[0]; (void)w; a0 += TERM; } \
		{ ckr_lanes v = x_[1], w = y_[1]; (void)w; a1 += TERM; } \
		{ ckr_lanes v = x_[2], w = y_[2]; (void)w; a2 += TERM; } \
		{ ckr_lanes v = x_[3], w = y_[3]; (void)w; a3 += TERM; } \
	} \
	*(ckr_lanes *)lane = a0; \
	*(ckr_lanes *)(lane + 16) = a1; \
	*(ckr_lanes *)(lane + 32) = a2; \
	*(ckr_lanes *)(lane + 48) = a3; \
	for (int64_t j = 0; i + j < n; j++) { \
		float v = (X)[i + j], w = (Y)[i + j]; \
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
