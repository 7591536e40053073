#include "runtime/support/blocks.h"

#include <math.h>

/* ORDER DT */
enum {
	DTYPE_NONE,
#define DT(id, text, nbytes, ctype, onnx, st, npy, cls) DTYPE_##id,
#include "runtime/support/dtypes.h"
#undef DT
};

static const float nf4_level[16] = BLOCK_NF4_LEVELS;

bool
blocks_is(uint8_t dtype)
{
	return dtype == DTYPE_INT8X64 || dtype == DTYPE_NF4X64;
}

/* The largest magnitude; NaN if a float is not finite. */
static float
largest_magnitude(const float *x)
{
	float most = 0;

	for (int i = 0; i < BLOCK_WEIGHTS; i++) {
		float a = fabsf(x[i]);

		if (!(a <= 3.402823466e38f))
			return NAN;
		most = a > most ? a : most;
	}
	return most;
}

/* The nearest integer, ties to even. */
static void
pack_int8(struct block_int8 *to, const float *x)
{
	float most = largest_magnitude(x), inverse = 127 / most;

	to->scale = most / 127;
	for (int i = 0; i < BLOCK_WEIGHTS; i++) {
		float code = rintf(x[i] * inverse);

		/* a subnormal magnitude has an infinite inverse */
		to->code[i] = (int8_t)(fabsf(code) <= 127 ? code : 0);
	}
}

/* The nearest levels, halfway the lower one: how many borders lie below. */
static void
find_codes(uint8_t code[BLOCK_WEIGHTS], const float *x, float inverse)
{
	int below[BLOCK_WEIGHTS] = { 0 };

	for (int k = 0; k < 15; k++) {
		float border = (nf4_level[k] + nf4_level[k + 1]) / 2;

		for (int i = 0; i < BLOCK_WEIGHTS; i++)
			below[i] += x[i] * inverse > border;
	}
	for (int i = 0; i < BLOCK_WEIGHTS; i++)
		code[i] = (uint8_t)below[i];
}

static void
pack_nf4(struct block_nf4 *to, const float *x)
{
	float most = largest_magnitude(x);
	uint8_t code[BLOCK_WEIGHTS];

	to->scale = most;
	/* a subnormal magnitude has an infinite inverse; NaN is no code */
	find_codes(code, x, most >= 0x1p-126f ? 1 / most : 0);
	for (int i = 0; i < BLOCK_WEIGHTS / 2; i++)
		to->code[i] = (uint8_t)(code[2 * i] << 4 | code[2 * i + 1]);
}

void
blocks_pack(uint8_t dtype, void *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (dtype == DTYPE_INT8X64)
			pack_int8((struct block_int8 *)to + i,
			          from + i * BLOCK_WEIGHTS);
		else
			pack_nf4((struct block_nf4 *)to + i,
			         from + i * BLOCK_WEIGHTS);
}

static void
unpack_int8(float *y, const struct block_int8 *from)
{
	for (int i = 0; i < BLOCK_WEIGHTS; i++)
		y[i] = (float)from->code[i] * from->scale;
}

static void
unpack_nf4(float *y, const struct block_nf4 *from)
{
	for (int i = 0; i < BLOCK_WEIGHTS; i += 2) {
		y[i] = nf4_level[from->code[i / 2] >> 4] * from->scale;
		y[i + 1] = nf4_level[from->code[i / 2] & 15] * from->scale;
	}
}

void
blocks_unpack(uint8_t dtype, float *to, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (dtype == DTYPE_INT8X64)
			unpack_int8(to + i * BLOCK_WEIGHTS,
			            (const struct block_int8 *)from + i);
		else
			unpack_nf4(to + i * BLOCK_WEIGHTS,
			           (const struct block_nf4 *)from + i);
}
