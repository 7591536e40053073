#include "tests/unit/unit.h"
#include "runtime/support/half.h"

#include <math.h>
#include <string.h>

/* The definition: the candidate nearest to x, ties to the even pattern.  The
 * patterns of one sign are ordered as their values are. */
static uint16_t
nearest(double x, float (*value)(uint16_t), uint16_t infinity, double max)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	uint16_t low = 0, high = infinity;
	double below, above;

	x = fabs(x);
	if (isinf(x))
		return sign | infinity;
	while (high - low > 1) {
		uint16_t mid = (uint16_t)((low + high) / 2);

		if (value(mid) <= x)
			low = mid;
		else
			high = mid;
	}
	below = x - value(low);
	above = (high == infinity ? max : (double)value(high)) - x;
	if (below < above || (below == above && low % 2 == 0))
		return sign | low;
	return sign | high;
}

/* What follows the largest finite number if the exponent went on. */
static const double half_limit = 65536, bf16_limit = 0x1p128;

static void
all_patterns(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 65536; i++) {
		uint16_t h = (uint16_t)i;
		float x = half_to_float(h), y = bf16_to_float(h);

		if (isnan(x))
			assert_true(isnan(half_to_float(float_to_half(x))));
		else
			assert_int_equal(float_to_half(x), h);
		if (isnan(y))
			assert_true(isnan(bf16_to_float(float_to_bf16(y))));
		else
			assert_int_equal(float_to_bf16(y), h);
	}
}

static void
known_values(void **state)
{
	(void)state;
	assert_true(half_to_float(0x3c00) == 1);
	assert_true(half_to_float(0x7bff) == 65504);
	assert_true(half_to_float(0x0001) == 0x1p-24f);
	assert_true(half_to_float(0x0400) == 0x1p-14f);
	assert_true(isinf(half_to_float(0xfc00)));
	assert_int_equal(float_to_half(65519.996f), 0x7bff);
	assert_int_equal(float_to_half(65520), 0x7c00);
	assert_int_equal(float_to_half(0x1p-25f), 0);
	assert_int_equal(float_to_half(0x1.000002p-25f), 1);
	assert_int_equal(float_to_half(-0.0f), 0x8000);
	assert_int_equal(float_to_bf16(0x1.01p0f), 0x3f80);
	assert_int_equal(float_to_bf16(0x1.03p0f), 0x3f82);
	assert_int_equal(float_to_bf16(3.4e38f), 0x7f80);
}

/* Floats all over the range, by their bits. */
static void
rounding(void **state)
{
	uint32_t u = 1;

	(void)state;
	for (int i = 0; i < 400000; i++) {
		float x;

		u = u * 1664525 + 1013904223;
		memcpy(&x, &u, sizeof x);
		if (isnan(x))
			continue;
		assert_int_equal(float_to_bf16(x),
		                 nearest(x, bf16_to_float, 0x7f80,
		                         bf16_limit));
		/* most random floats overflow in half: scale some down */
		if (i % 2)
			x = ldexpf(frexpf(x, &(int){ 0 }), (int)(u % 50) - 30);
		assert_int_equal(float_to_half(x),
		                 nearest(x, half_to_float, 0x7c00,
		                         half_limit));
	}
}

int
test_half(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_patterns), cmocka_unit_test(known_values),
		cmocka_unit_test(rounding),
	};

	return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
