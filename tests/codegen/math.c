/* The arithmetic that generated C carries along, against libm in double. */
#include "runtime/ckr_abi.h"
#include "codegen/cpu/kernels/cpu.h"
#include "codegen/rules/kernels/arith.h"
#include "codegen/cpu/kernels/sums.h"
#include "codegen/rules/kernels/random.h"
#include "codegen/cpu/kernels/words.h"

#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 200000 };

static int failures;

static double
ulps(float got, double want)
{
	float near = (float)want;
	double step;

	if (got == near || (got != got && want != want))
		return 0;
	step = (double)nextafterf(fabsf(near), INFINITY) -
	       (double)fabsf(near);
	return fabs((double)got - want) / step;
}

static void
check(const char *name, float (*f)(float), double (*ref)(double), double lo,
      double hi, double limit)
{
	double worst = 0;
	float at = 0;

	for (int i = 0; i < POINTS; i++) {
		float x = (float)(lo + (hi - lo) * i / POINTS);
		double u = ulps(f(x), ref((double)x));

		if (!(u <= worst)) {
			worst = u;
			at = x;
		}
	}
	if (!(worst <= limit)) {
		printf("%s: %.3g ulp at %g, limit %g\n", name, worst,
		       (double)at, limit);
		failures++;
	}
}

static double
sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double
softplus(double x)
{
	return log1p(exp(x));
}

/* x times the normal distribution below it, and the slope of that. */
static double
gelu(double x)
{
	return 0.5 * x * erfc(-x * 0.70710678118654752);
}

static double
gelu_slope(double x)
{
	return 0.5 * erfc(-x * 0.70710678118654752)
	       + x * 0.39894228040143268 * exp(-0.5 * x * x);
}

static float
gelu_grad(float x)
{
	return ckr_gelu_grad(x, 1.0f);
}

/* The slope is zero near -0.75, where its two parts cancel. */
static void
check_gelu(void)
{
	double worst = 0;

	check("gelu", ckr_gelu, gelu, -4, 20, 10);
	check("gelu, far", ckr_gelu, gelu, -13, -4, 90);
	check("slope of gelu", gelu_grad, gelu_slope, 0, 20, 5);
	for (int i = 0; i < POINTS; i++) {
		float x = -13.0f * (float)i / POINTS;
		double e = fabs((double)gelu_grad(x) - gelu_slope((double)x));

		worst = e > worst ? e : worst;
	}
	if (!(worst < 2.5e-7)) {
		printf("slope of gelu: %g off\n", worst);
		failures++;
	}
}

/* Powers against those of libm in double, ends included. */
static void
check_pow(void)
{
	static const float v[] = { 0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 3.0f,
		-3.0f, 0.5f, -0.5f, 0.75f, -2.5f, 1e-40f, -1e-40f, 1e38f,
		-1e38f, 16777215.0f, 33554432.0f, -33554433.0f, 1.0000001f,
		0.9999999f, -150.0f, 127.3f, 3e-5f, (float)INFINITY,
		-(float)INFINITY, (float)NAN };
	int n = sizeof v / sizeof *v;

	for (int i = 0; i < n + 400; i++)
		for (int k = 0; k < n + 400; k++) {
			float x = i < n ? v[i] : 0.03f * (float)(i - n + 1);
			float y = k < n ? v[k] : 0.11f * (float)(k - n - 200);
			float got = ckr_pow(x, y);
			float want = (float)pow((double)x, (double)y);

			if (ulps(got, pow((double)x, (double)y)) <= 0.51
			    || (got != got && want != want)
			    || (got == want && !signbit(got) == !signbit(want)))
				continue;
			printf("pow(%g, %g): %g, not %g\n", (double)x,
			       (double)y, (double)got, (double)want);
			failures++;
		}
}

static void
check_functions(void)
{
	check("exp", ckr_exp, exp, -103, 88.7, 1.2);
	check("log", ckr_log, log, 1e-6, 4, 1);
	check("log, large", ckr_log, log, 1, 1e38, 0.6);
	check("log, subnormal", ckr_log, log, 1e-44, 1e-38, 0.6);
	check("tanh", ckr_tanh, tanh, -12, 12, 1.5);
	check("erf", ckr_erf, erf, -5, 5, 1.7);
	check("sin", ckr_sin, sin, -1000, 1000, 1.7);
	check("cos", ckr_cos, cos, -1e6, 1e6, 1.7);
	check("sigmoid", ckr_sigmoid, sigmoid, -80, 80, 2.8);
	check("softplus", ckr_softplus, softplus, -80, 80, 3);
	check("atan", ckr_atan, atan, -9, 9, 0.51);
	check("atan, large", ckr_atan, atan, -1e30, 1e30, 0.51);
	check("asinh", ckr_asinh, asinh, -0.01, 0.01, 0.51);
	check("asinh, large", ckr_asinh, asinh, -1e6, 3e38, 0.51);
	check_pow();
	check_gelu();
}

static void
expect(const char *what, int ok)
{
	if (!ok) {
		printf("%s\n", what);
		failures++;
	}
}

static void
check_ends(void)
{
	float inf = __builtin_inff(), nan = __builtin_nanf("");

	expect("exp at infinity", ckr_exp(inf) == inf && ckr_exp(-inf) == 0);
	expect("exp of NaN", ckr_exp(nan) != ckr_exp(nan));
	expect("log at its ends", ckr_log(0.0f) == -inf && ckr_log(inf) == inf
	       && ckr_log(-1.0f) != ckr_log(-1.0f));
	expect("tanh at infinity", ckr_tanh(inf) == 1 && ckr_tanh(-inf) == -1);
	expect("erf at infinity", ckr_erf(inf) == 1 && ckr_erf(-inf) == -1);
	expect("atan at its ends", ckr_atan(inf) == 1.57079633f
	       && signbit(ckr_atan(-0.0f)) && ckr_atan(nan) != ckr_atan(nan));
	expect("asinh at its ends", ckr_asinh(-inf) == -inf
	       && signbit(ckr_asinh(-0.0f)) && ckr_asinh(nan) != ckr_asinh(nan)
	       && ckr_asinh(3.4e38f) < 90);
	expect("max takes NaN", ckr_max(1, nan) != ckr_max(1, nan) &&
	       ckr_max(nan, 1) != ckr_max(nan, 1));
	expect("division by zero", ckr_idiv(5, 0) == 0 && ckr_irem(5, 0) == 0);
	expect("division by -1", ckr_idiv(INT64_MIN, -1) == INT64_MIN);
	expect("integer powers", ckr_ipow(-3, 3) == -27 && ckr_ipow(2, -1) == 0);
	for (uint32_t i = 0; i < 65536; i++) {
		float f = ckr_from_f16((uint16_t)i);
		float b = ckr_from_bf16((uint16_t)i);

		if (f == f && ckr_to_f16(f) != i)
			expect("f16 round trip", 0);
		if (b == b && ckr_to_bf16(b) != i)
			expect("bf16 round trip", 0);
	}
	expect("one NaN, as GPUs have it", ckr_to_f16(-nanf("")) == 0x7fff &&
	       ckr_to_bf16(-nanf("")) == 0x7fff &&
	       ckr_to_bf16(ckr_bits_float(0x7f800001)) == 0x7fff);
	expect("f16 rounding", ckr_to_f16(65520.0f) == 0x7c00 &&
	       ckr_to_f16(65519.0f) == 0x7bff && ckr_to_f16(2e-8f) == 0 &&
	       ckr_to_f16(1.0f + 0x1p-11f) == 0x3c00 &&
	       ckr_to_f16(1.0f + 0x3p-11f) == 0x3c02);
}

/* Known answers of Philox4x32-10 (its authors' kat_vectors) and a run that
 * starts in the middle of a block. */
static void
check_philox(void)
{
	static const uint32_t zero[] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
		0x9b00dbd8 };
	struct ckr_env env = { .seed = 0 };
	uint32_t a[CKR_WORD_BUFFER], b[CKR_WORD_BUFFER];
	const uint32_t *x = ckr_words(a, 0, CKR_WORDS, 0, &env), *y;

	expect("philox, known answer", !memcmp(x, zero, sizeof zero));
	env.seed = UINT64_C(0xa4093822299f31d0);
	y = ckr_words(b, UINT64_C(0x243f6a88) * 4, 4, 0x03707344, &env);
	expect("philox depends on the key", y[0] != zero[0]);
	env.seed = 0;
	for (int i = 1; i < 9; i++) {
		y = ckr_words(b, (uint64_t)i, 100, 0, &env);
		expect("philox, any start", !memcmp(x + i, y, 400));
	}
}

static void
check_sums(void)
{
	float x[1000], y[1000];

	for (int n = 0; n < 1000; n++) {
		double sum = 0, dot = 0;

		x[n] = (float)(n % 13) - 5.5f;
		y[n] = (float)(n % 7) * 0.25f;
		for (int i = 0; i <= n; i++) {
			sum += (double)x[i];
			dot += (double)x[i] * (double)y[i];
		}
		expect("sum", (double)ckr_sum(x, n + 1) == sum);
		expect("dot", fabs((double)ckr_dot(x, y, n + 1) - dot) < 1e-3);
	}
}

int
main(void)
{
	check_functions();
	check_ends();
	check_philox();
	check_sums();
	return failures != 0;
}
