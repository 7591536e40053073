#include "runtime/support/half.h"

#include <string.h>

static uint32_t
bits_of(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static float
float_of(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

float
bf16_to_float(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

uint16_t
float_to_bf16(float x)
{
	uint32_t u = bits_of(x);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float
half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t exp = h >> 10 & 31, frac = h & 0x3ff;

	if (exp == 31)
		return float_of(sign | 0x7f800000 | frac << 13);
	if (exp)
		return float_of(sign | (exp + 112) << 23 | frac << 13);
	/* zero and subnormals: frac units of 2^-24, exact in a float */
	return float_of(sign | bits_of((float)frac * 0x1p-24f));
}

/* Shift right by n, 1 <= n <= 24, rounding to nearest even. */
static uint32_t
shift_even(uint32_t u, unsigned n)
{
	uint32_t half = 1u << (n - 1);

	return (u + half - 1 + (u >> n & 1)) >> n;
}

uint16_t
float_to_half(float x)
{
	uint32_t u = bits_of(x), sign = u >> 16 & 0x8000;
	uint32_t mag = u & 0x7fffffff, exp = mag >> 23;

	if (mag > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x3ff));
	if (mag >= 0x47800000)          /* 65536 and above, infinity */
		return (uint16_t)(sign | 0x7c00);
	if (exp >= 113)                 /* normal: a carry out of the fraction
	                                 * rightly goes to the exponent, up to
	                                 * infinity */
		return (uint16_t)(sign | shift_even(mag - (112u << 23), 13));
	if (exp < 102)                  /* below half of the least subnormal */
		return (uint16_t)sign;
	return (uint16_t)(sign | shift_even((mag & 0x7fffff) | 0x800000,
	                                    126 - exp));
}
