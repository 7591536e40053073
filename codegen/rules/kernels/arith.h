/* Arithmetic of generated kernels on all machines.
 *
 * All functions are branch-free, so that a loop marked `omp simd` runs them
 * in lanes; a lane computes exactly what the scalar call computes.  fma is
 * written where it is meant; the compiler must not contract (see the flags
 * above).  Polynomials: Chebyshev fits of our own, errors as noted (relative,
 * before rounding).
 */
#ifndef CODEGEN_RULES_KERNELS_ARITH_H
#define CODEGEN_RULES_KERNELS_ARITH_H

#include <math.h>
#include <string.h>

CKR_LANE float
ckr_bits_float(uint32_t u)
{
	union { uint32_t u; float f; } x = { u };

	return x.f;
}

CKR_LANE uint32_t
ckr_float_bits(float f)
{
	union { float f; uint32_t u; } x = { f };

	return x.u;
}

/* 1.5 * 2^23: adding it rounds to an integer, held in the low bits. */
#define CKR_ROUND 12582912.0f

/* e^x.  error 9e-9; overflows to infinity, underflows through subnormals. */
CKR_LANE float
ckr_exp(float x)
{
	float t, f, r, q, y;
	int32_t n, half;

	x = x > 89.0f ? 89.0f : x;
	x = x < -104.0f ? -104.0f : x;
	t = __builtin_fmaf(x, 1.44269504f, CKR_ROUND);
	n = (int32_t)(ckr_float_bits(t) - ckr_float_bits(CKR_ROUND));
	f = t - CKR_ROUND;
	r = __builtin_fmaf(f, -0.693359375f, x);
	r = __builtin_fmaf(f, 2.12194440e-4f, r);
	q = 0.00139276849581f;
	q = __builtin_fmaf(q, r, 0.00836438069329f);
	q = __builtin_fmaf(q, r, 0.0416665454158f);
	q = __builtin_fmaf(q, r, 0.166665696281f);
	q = __builtin_fmaf(q, r, 0.5f);
	y = __builtin_fmaf(q, r * r, r) + 1.0f;
	half = n >> 1;
	y *= ckr_bits_float((uint32_t)(half + 127) << 23);
	return y * ckr_bits_float((uint32_t)(n - half + 127) << 23);
}

/* Natural logarithm.  error 1e-8 outside a neighbourhood of 1, where the
 * result is f - f^2/2 + ... with f exact. */
CKR_LANE float
ckr_log(float x)
{
	float small = x < 1.17549435e-38f ? 8388608.0f : 1.0f;
	uint32_t u = ckr_float_bits(x * small);
	int32_t k = (int32_t)(u - 0x3f3504f3) >> 23;
	float e = (float)k - (small > 1.0f ? 23.0f : 0.0f);
	float f = ckr_bits_float(u - ((uint32_t)k << 23)) - 1.0f;
	float q = 0.0696975398208f, z = f * f, y;

	q = __builtin_fmaf(q, f, -0.114791880867f);
	q = __builtin_fmaf(q, f, 0.116857959393f);
	q = __builtin_fmaf(q, f, -0.124257767228f);
	q = __builtin_fmaf(q, f, 0.142490327308f);
	q = __builtin_fmaf(q, f, -0.166677982765f);
	q = __builtin_fmaf(q, f, 0.200007163044f);
	q = __builtin_fmaf(q, f, -0.24999997001f);
	q = __builtin_fmaf(q, f, 0.33333331178f);
	y = __builtin_fmaf(e, -2.12194440e-4f, q * (z * f));
	y = __builtin_fmaf(z, -0.5f, y);
	y = __builtin_fmaf(e, 0.693359375f, y + f);
	y = x == __builtin_inff() ? x : y;
	y = x == 0.0f ? -__builtin_inff() : y;
	y = x < 0.0f ? __builtin_nanf("") : y;
	return x != x ? x : y;
}

/* Softmax of a row in which nothing is visible, all of it -inf, is zeros, as
 * attention has it: a row's maximum, and what its sum s comes to. */
CKR_LANE float
ckr_row_top(float m)
{
	return m < -3.40282347e38f ? -3.40282347e38f : m;
}

CKR_LANE float
ckr_row_end(float m, float s, int log)
{
	return s == 0.0f ? 0.0f : log ? m + ckr_log(s) : 1.0f / s;
}

/* Odd polynomial below 0.625 (error 2e-8), 1 - 2 / (e^2x + 1) above. */
CKR_LANE float
ckr_tanh(float x)
{
	float a = __builtin_fabsf(x), z = x * x;
	float q = -0.00609629952288f, far, near;

	q = __builtin_fmaf(q, z, 0.0209968940371f);
	q = __builtin_fmaf(q, z, -0.0538508495203f);
	q = __builtin_fmaf(q, z, 0.13332769342f);
	q = __builtin_fmaf(q, z, -0.333333289402f);
	near = __builtin_fmaf(q * z, x, x);
	far = 1.0f - 2.0f / (ckr_exp(2.0f * a) + 1.0f);
	far = x < 0.0f ? -far : far;
	return a < 0.625f ? near : far;
}

/* x * P(x^2) below 1 (error 1e-9), 1 - e^-Q(x) above (error 4e-9). */
CKR_LANE float
ckr_erf(float x)
{
	float a = __builtin_fabsf(x), z = x * x, t, p, q, far, near;

	p = 7.87587506268e-5f;
	p = __builtin_fmaf(p, z, -0.000801686428716f);
	p = __builtin_fmaf(p, z, 0.00518908742343f);
	p = __builtin_fmaf(p, z, -0.0268542120106f);
	p = __builtin_fmaf(p, z, 0.112835947152f);
	p = __builtin_fmaf(p, z, -0.376126266667f);
	p = __builtin_fmaf(p, z, 0.12837916585f);
	near = __builtin_fmaf(p, x, x);
	t = (a > 4.0f ? 4.0f : a) - 2.0f;
	q = -1.64306365569e-6f;
	q = __builtin_fmaf(q, t, 1.98748401342e-5f);
	q = __builtin_fmaf(q, t, -0.000135314878914f);
	q = __builtin_fmaf(q, t, 0.000733268196521f);
	q = __builtin_fmaf(q, t, -0.00357087592152f);
	q = __builtin_fmaf(q, t, 0.0164647700901f);
	q = __builtin_fmaf(q, t, 0.923750850065f);
	q = __builtin_fmaf(q, t, 4.41816084688f);
	q = __builtin_fmaf(q, t, 5.36494126767f);
	far = 1.0f - ckr_exp(-q);
	far = x < 0.0f ? -far : far;
	return a < 1.0f ? near : far;
}

/* sin and cos reduce in double precision: right to the last bits for any
 * argument below 1e9. */
CKR_LANE float
ckr_sincos(float x, int quarter)
{
	double n = (double)x * 0.63661977236758134 + 6755399441055744.0;
	union { double d; uint64_t u; } b = { n };
	uint32_t k = (uint32_t)b.u + (uint32_t)quarter;
	float r, z, s, c, y;

	n -= 6755399441055744.0;
	r = (float)__builtin_fma(n, -6.1232339957367660e-17,
	                         __builtin_fma(n, -1.5707963267948966,
	                                       (double)x));
	z = r * r;
	s = 2.72438119753e-6f;
	s = __builtin_fmaf(s, z, -0.00019840039113f);
	s = __builtin_fmaf(s, z, 0.00833333178567f);
	s = __builtin_fmaf(s, z, -0.166666666636f);
	s = __builtin_fmaf(s * z, r, r);
	c = -2.72958563391e-7f;
	c = __builtin_fmaf(c, z, 2.48005606306e-5f);
	c = __builtin_fmaf(c, z, -0.00138888875977f);
	c = __builtin_fmaf(c, z, 0.0416666666641f);
	c = __builtin_fmaf(c, z * z, __builtin_fmaf(z, -0.5f, 1.0f));
	y = k & 1 ? c : s;
	return k & 2 ? -y : y;
}

CKR_LANE float
ckr_sin(float x)
{
	return ckr_sincos(x, 0);
}

CKR_LANE float
ckr_cos(float x)
{
	return ckr_sincos(x, 1);
}

CKR_LANE float
ckr_sigmoid(float x)
{
	return 1.0f / (1.0f + ckr_exp(-x));
}

/* log(1 + e^x); the quotient corrects the rounding of 1 + t. */
CKR_LANE float
ckr_softplus(float x)
{
	float t = ckr_exp(-__builtin_fabsf(x)), u = 1.0f + t;
	float l = u == 1.0f ? t : ckr_log(u) * (t / (u - 1.0f));

	return (x > 0.0f ? x : 0.0f) + (x != x ? x : l);
}

CKR_LANE float
ckr_relu(float x)
{
	return x < 0.0f ? 0.0f : x;
}

CKR_LANE float
ckr_silu(float x)
{
	return x / (1.0f + ckr_exp(-x));
}

CKR_LANE float
ckr_silu_grad(float x, float dy)
{
	float s = ckr_sigmoid(x);

	return dy * (s * (1.0f + x * (1.0f - s)));
}

/* The normal distribution below x, given e = e^(-x^2 / 2): of either tail e *
 * t * P(t), t = 1 / (1 + 0.3 |x| / sqrt 2).  error 2e-8, of the tail. */
CKR_LANE float
ckr_normal_below(float x, float e)
{
	float t = 1.0f / (1.0f + 0.212132034f * __builtin_fabsf(x));
	float p = -0.0647613778710f, tail;

	p = __builtin_fmaf(p, t, 0.242781236768f);
	p = __builtin_fmaf(p, t, -0.256138294935f);
	p = __builtin_fmaf(p, t, 0.273859143257f);
	p = __builtin_fmaf(p, t, -0.0473247766495f);
	p = __builtin_fmaf(p, t, 0.107462786138f);
	p = __builtin_fmaf(p, t, 0.0741696506739f);
	p = __builtin_fmaf(p, t, 0.0853576064110f);
	p = __builtin_fmaf(p, t, 0.0845940038562f);
	tail = e * (t * p);
	return x < 0.0f ? tail : 1.0f - tail;
}

CKR_LANE float
ckr_gelu(float x)
{
	return x * ckr_normal_below(x, ckr_exp(-0.5f * x * x));
}

CKR_LANE float
ckr_gelu_grad(float x, float dy)
{
	float e = ckr_exp(-0.5f * x * x);

	return dy * (ckr_normal_below(x, e) + x * (0.398942280f * e));
}

/* x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3). */
CKR_LANE float
ckr_gelu_tanh(float x)
{
	float u = x * (1.0f + 0.044715f * x * x);

	return x / (1.0f + ckr_exp(-1.59576912f * u));
}

CKR_LANE float
ckr_gelu_tanh_grad(float x, float dy)
{
	float z = 0.044715f * x * x;
	float s = ckr_sigmoid(1.59576912f * x * (1.0f + z));
	float du = 1.59576912f * (1.0f + 3.0f * z);

	return dy * (s + x * (s * (1.0f - s)) * du);
}

/* ---- in double precision, rounded once ---- */

/* Binary logarithm of a normal number; 2 / ln 2 * atanh((m - 1) / (m + 1)),
 * m the significand around 1.  error 2e-12. */
CKR_LANE double
ckr_log2_wide(double a)
{
	union { double d; uint64_t u; } b = { a };
	int32_t k = (int32_t)((uint32_t)(b.u >> 32) - 0x3fe6a09eu) >> 20;
	double s, z, q = 1.0 / 13;

	b.u -= (uint64_t)(uint32_t)k << 52;
	s = (b.d - 1.0) / (b.d + 1.0);
	z = s * s;
	q = q * z + 1.0 / 11;
	q = q * z + 1.0 / 9;
	q = q * z + 1.0 / 7;
	q = q * z + 1.0 / 5;
	q = q * z + 1.0 / 3;
	q = q * z + 1.0;
	return (double)k + 2.8853900817779268 * (s * q);
}

/* 2^z for |z| < 1000; a Taylor series.  error 3e-10. */
CKR_LANE double
ckr_exp2_wide(double z)
{
	union { double d; uint64_t u; } n = { z + 6755399441055744.0 }, two;
	double t = (z - (n.d - 6755399441055744.0)) * 0.69314718055994531;
	double q = 1.0 / 40320;

	two.u = (uint64_t)((uint32_t)n.u + 1023u) << 52;
	q = q * t + 1.0 / 5040;
	q = q * t + 1.0 / 720;
	q = q * t + 1.0 / 120;
	q = q * t + 1.0 / 24;
	q = q * t + 1.0 / 6;
	q = q * t + 0.5;
	q = q * t + 1.0;
	q = q * t + 1.0;
	return q * two.d;
}

/* What C's pow says of zeros, infinities, NaN and negative numbers. */
CKR_LANE float
ckr_pow(float x, float y)
{
	float inf = __builtin_inff(), a = __builtin_fabsf(x), r;
	double z = (double)y * ckr_log2_wide((double)a);
	int whole = y == __builtin_floorf(y), odd;

	odd = whole && 0.5f * y != __builtin_floorf(0.5f * y);
	z = z > -160.0 ? z : -160.0;            /* and NaN */
	z = z < 160.0 ? z : 160.0;
	r = (float)ckr_exp2_wide(z);
	r = a == 0.0f || a == inf ? ((a == inf) == (y > 0.0f) ? inf : 0.0f)
	                          : r;
	r = a == 1.0f ? 1.0f : r;
	r = x < 0.0f && a < inf && !whole ? __builtin_nanf("") : r;
	r = odd && (ckr_float_bits(x) >> 31) ? -r : r;
	r = x != x || y != y ? x + y : r;
	return y == 0.0f || x == 1.0f ? 1.0f : r;
}

/* atan t = t - t^3/3 + ... after pi/2 - atan 1/t or pi/4 + atan (t - 1) /
 * (t + 1).  error 1e-10. */
CKR_LANE float
ckr_atan(float x)
{
	double a = (double)__builtin_fabsf(x), t, z, q = 1.0 / 21;
	int far = a > 2.4142135623730950, near = a < 0.4142135623730950;

	t = far ? -1.0 / a : near ? a : (a - 1.0) / (a + 1.0);
	z = t * t;
	q = 1.0 / 19 - q * z;
	q = 1.0 / 17 - q * z;
	q = 1.0 / 15 - q * z;
	q = 1.0 / 13 - q * z;
	q = 1.0 / 11 - q * z;
	q = 1.0 / 9 - q * z;
	q = 1.0 / 7 - q * z;
	q = 1.0 / 5 - q * z;
	q = 1.0 / 3 - q * z;
	t = t - q * z * t + (far ? 1.5707963267948966
	                         : near ? 0.0 : 0.78539816339744831);
	return (float)(x < 0.0f ? -t : x == 0.0f ? (double)x : t);
}

/* log(a + sqrt(a^2 + 1)), a - a^3/6 near zero.  error 1e-11. */
CKR_LANE float
ckr_asinh(float x)
{
	double a = (double)__builtin_fabsf(x);
	double y = ckr_log2_wide(a + __builtin_sqrt(a * a + 1.0)) *
	           0.69314718055994531;

	y = a < 1e-3 ? a - a * a * a * (1.0 / 6) : y;
	y = x < 0.0f || x == 0.0f ? (x == 0.0f ? (double)x : -y) : y;
	return a < (double)__builtin_inff() ? (float)y : x;
}

CKR_LANE float
ckr_sign(float x)
{
	return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

/* A NaN wins, from either side. */
CKR_LANE float
ckr_max(float a, float b)
{
	return a > b || a != a ? a : b;
}

CKR_LANE float
ckr_min(float a, float b)
{
	return a < b || a != a ? a : b;
}

/* The remainder with the divisor's sign. */
CKR_LANE float
ckr_mod(float a, float b)
{
	float r = fmodf(a, b);

	return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}

CKR_LANE double
ckr_mod_d(double a, double b)
{
	double r = fmod(a, b);

	return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

/* Integer division by zero gives 0 instead of a trap. */
CKR_LANE int64_t
ckr_idiv(int64_t a, int64_t b)
{
	if (b == -1)
		return (int64_t)(0 - (uint64_t)a);
	return b ? a / b : 0;
}

CKR_LANE int64_t
ckr_irem(int64_t a, int64_t b)
{
	return b && b != -1 ? a % b : 0;
}

CKR_LANE int64_t
ckr_imod(int64_t a, int64_t b)
{
	int64_t r = ckr_irem(a, b);

	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

CKR_LANE int64_t
ckr_ipow(int64_t a, int64_t b)
{
	uint64_t y = 1, f = (uint64_t)a;

	if (b < 0)
		return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
	for (; b; b >>= 1, f *= f)
		if (b & 1)
			y *= f;
	return (int64_t)y;
}

/* ---- 16-bit floats ---- */

CKR_LANE float
ckr_from_bf16(uint16_t h)
{
	return ckr_bits_float((uint32_t)h << 16);
}

/* A machine may have instructions for these.  All NaNs become 0x7fff, as GPUs
 * have it. */
#ifndef CKR_CONVERSIONS

CKR_LANE uint16_t
ckr_to_bf16(float f)
{
	uint32_t u = ckr_float_bits(f);
	uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return (uint16_t)(f != f ? 0x7fff : r);
}

CKR_LANE float
ckr_from_f16(uint16_t h)
{
	uint32_t u = (uint32_t)(h & 0x7fff) << 13;
	float f = ckr_bits_float(u) * 0x1p112f;

	if ((h & 0x7c00) == 0x7c00)
		f = ckr_bits_float(u | 0x7f800000);
	return h & 0x8000 ? -f : f;
}

CKR_LANE uint16_t
ckr_to_f16(float f)
{
	uint32_t u = ckr_float_bits(f), sign = u >> 16 & 0x8000, a, e;

	u &= 0x7fffffff;
	if (u > 0x7f800000)
		return 0x7fff;
	if (u >= 0x477ff000)
		return (uint16_t)(sign | 0x7c00);
	if (u < 0x38800000) {
		/* subnormal: let the addition round at 2^-24 */
		a = ckr_float_bits(ckr_bits_float(u) + 0.5f) - 0x3f000000;
		return (uint16_t)(sign | a);
	}
	e = u + 0xfff + (u >> 13 & 1);
	return (uint16_t)(sign | ((e - 0x38000000) >> 13));
}

#endif

#endif
