/* Numbers, random numbers, 16-bit types, pace and JSON of the run time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ckr.h"
#include "runtime/base/dtype.h"
#include "runtime/support/half.h"
#include "runtime/support/json.h"
#include "runtime/support/json_write.h"
#include "runtime/support/now.h"
#include "runtime/support/number.h"
#include "runtime/support/utf8.h"
#include "runtime/base/pace.h"
#include "runtime/base/rng.h"

/* ---- numbers ---- */

static void
test_philox(void **state)
{
	static const struct {
		uint32_t key[2], counter[4], out[4];
	} known[] = {
		{ { 0, 0 }, { 0, 0, 0, 0 },
		  { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
		{ { ~0u, ~0u }, { ~0u, ~0u, ~0u, ~0u },
		  { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
		{ { 0xa4093822, 0x299f31d0 },
		  { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
		  { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
	};
	uint32_t out[4];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		rng_philox(known[i].key, known[i].counter, out);
		assert_memory_equal(out, known[i].out, sizeof(out));
	}
}

static void
test_shuffle(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 3, 7, 64, 1000, 1025 };

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		uint64_t n = sizes[s], moved = 0, alike = 0, seeds = 0;

		for (uint64_t round = 0; round < 3; round++) {
			char *seen = calloc(1, n);

			for (uint64_t i = 0; i < n; i++) {
				uint64_t j = rng_shuffled(5, round, i, n);

				assert_true(j < n);
				assert_false(seen[j]);
				seen[j] = 1;
				moved += j != i;
				alike += j == rng_shuffled(5, round + 1, i, n);
				seeds += j == rng_shuffled(6, round, i, n);
			}
			free(seen);
		}
		if (n > 60) {
			assert_true(moved > n);
			/* other rounds and seeds have other orders */
			assert_true(alike < n / 4);
			assert_true(seeds < n / 4);
		}
	}
}

static void
test_below(void **state)
{
	unsigned count[10] = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		count[rng_below(1, RNG_WINDOW, i, 10)]++;
	for (int i = 0; i < 10; i++)
		assert_in_range(count[i], 850, 1150);
	assert_int_equal(rng_below(1, RNG_WINDOW, 3, 1), 0);
}

static void
test_schedule(void **state)
{
	struct ckr_schedule s = { CKR_WSD_LR, 1, 0.1, 10, 110, 25, 0.5 };

	(void)state;
#define LR(k, step) (s.kind = (k), ckr_schedule_lr(&s, (step)))
	assert_float_equal(LR(CKR_CONSTANT_LR, 0), 0.1, 1e-12);
	assert_float_equal(LR(CKR_CONSTANT_LR, 9), 1, 1e-12);
	assert_float_equal(LR(CKR_CONSTANT_LR, 109), 1, 1e-12);
	assert_float_equal(LR(CKR_LINEAR_LR, 10), 1, 1e-12);
	assert_float_equal(LR(CKR_LINEAR_LR, 60), 0.55, 1e-12);
	assert_float_equal(LR(CKR_LINEAR_LR, 110), 0.1, 1e-12);
	assert_float_equal(LR(CKR_COSINE_LR, 60), 0.55, 1e-12);
	assert_float_equal(LR(CKR_COSINE_LR, 35), 0.1 + 0.45 * (1 + sqrt(0.5)),
	                   1e-12);
	assert_float_equal(LR(CKR_COSINE_LR, 1000), 0.1, 1e-12);
	/* 25 steps before 110 it begins to fall */
	assert_float_equal(LR(CKR_WSD_LR, 85), 1, 1e-12);
	assert_float_equal(LR(CKR_WSD_LR, 95), 1 - 0.9 * 0.4, 1e-12);
	assert_float_equal(LR(CKR_WSD_LR, 110), 0.1, 1e-12);
	/* torch.optim.lr_scheduler.StepLR(step_size=25, gamma=0.5) */
	assert_float_equal(LR(CKR_STEP_LR, 34), 1, 1e-12);
	assert_float_equal(LR(CKR_STEP_LR, 35), 0.5, 1e-12);
	assert_float_equal(LR(CKR_STEP_LR, 85), 0.125, 1e-12);
	assert_float_equal(LR(CKR_STEP_LR, 1000), 0.1, 1e-12);
	/* CosineAnnealingWarmRestarts(T_0=25, T_mult=factor, eta_min=0.1):
	 * cycles begin at 10, 35, 60, ...; at 10, 35, 85, 185 */
	for (s.factor = 1; s.factor <= 2; s.factor++) {
		double mid = s.factor > 1 ? 60 : 47.5;

		assert_float_equal(LR(CKR_RESTARTS_LR, 10), 1, 1e-12);
		assert_float_equal(LR(CKR_RESTARTS_LR, 15), 0.1 + 0.45
		                   * (1 + cos(acos(-1) * 0.2)), 1e-12);
		assert_float_equal(LR(CKR_RESTARTS_LR, 35), 1, 1e-12);
		assert_float_equal(LR(CKR_RESTARTS_LR, 85), 1, 1e-12);
		assert_true(LR(CKR_RESTARTS_LR, (uint64_t)mid) < 0.7);
		assert_true(LR(CKR_RESTARTS_LR, 84) < 0.12);
	}
#undef LR
}

/* Every f16 survives the way to f32 and back, and rounding is to nearest
 * even. */
static void
test_half(void **state)
{
	size_t at;

	(void)state;
	for (uint32_t h = 0; h < 65536; h++) {
		uint16_t in = (uint16_t)h, out;
		float f;

		dtype_convert(&f, CKR_F32, &in, CKR_F16, 1, &at);
		dtype_convert(&out, CKR_F16, &f, CKR_F32, 1, &at);
		if (isnan(f))
			assert_true((out & 0x7c00) == 0x7c00 && out & 0x3ff);
		else
			assert_int_equal(in, out);
		dtype_convert(&f, CKR_F32, &in, CKR_BF16, 1, &at);
		dtype_convert(&out, CKR_BF16, &f, CKR_F32, 1, &at);
		if (!isnan(f))
			assert_int_equal(in, out);
	}
	static const struct {
		float f;
		uint16_t half, brain;
	} known[] = {
		{ 1.0f + 0x1p-11f, 0x3c00, 0x3f80 },    /* ties to even */
		{ 1.0f + 0x3p-11f, 0x3c02, 0x3f80 },
		{ 65519.0f, 0x7bff, 0x4780 },
		{ 65520.0f, 0x7c00, 0x4780 },
		{ -0x1p-25f, 0x8000, 0xb300 },
		{ 0x1.8p-25f, 0x0001, 0x3340 },
		{ 1.0f + 0x1.8p-8f, 0x3c06, 0x3f81 },
		{ 1.0f + 0x1p-8f, 0x3c04, 0x3f80 },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		uint16_t h, b;

		dtype_convert(&h, CKR_F16, &known[i].f, CKR_F32, 1, &at);
		dtype_convert(&b, CKR_BF16, &known[i].f, CKR_F32, 1, &at);
		assert_int_equal(h, known[i].half);
		assert_int_equal(b, known[i].brain);
	}
}

static void
test_convert_range(void **state)
{
	int64_t l[2] = { 127, -129 };
	int8_t b[2];
	uint16_t u[2];
	double d = 1.5;
	size_t at;

	(void)state;
	assert_true(dtype_convert(b, CKR_I8, l, CKR_I64, 1, &at));
	assert_int_equal(b[0], 127);
	assert_false(dtype_convert(b, CKR_I8, l, CKR_I64, 2, &at));
	assert_int_equal(at, 1);
	assert_false(dtype_convert(u, CKR_U16, l, CKR_I64, 2, &at));
	assert_false(dtype_convert(l, CKR_I64, &d, CKR_F64, 1, &at));
	d = -3;
	assert_true(dtype_convert(l, CKR_I64, &d, CKR_F64, 1, &at));
	assert_int_equal(l[0], -3);
	d = NAN;
	assert_false(dtype_convert(l, CKR_I64, &d, CKR_F64, 1, &at));
}

static void
test_number(void **state)
{
	char text[24];
	uint64_t n;
	double x;

	(void)state;
	assert_true(number_whole("18446744073709551615", UINT64_MAX, &n));
	assert_true(n == UINT64_MAX);
	assert_false(number_whole("18446744073709551616", UINT64_MAX, &n));
	assert_true(number_whole("007", 7, &n) && n == 7);
	assert_string_equal(number_bytes(text, 0), "0 B");
	assert_string_equal(number_bytes(text, 1023), "1023 B");
	assert_string_equal(number_bytes(text, 1024), "1.0 KiB");
	assert_string_equal(number_bytes(text, 1048575), "1.0 MiB");
	assert_string_equal(number_bytes(text, 0x1.8p30), "1.5 GiB");
	assert_false(number_whole("8", 7, &n));
	assert_true(number_real("-1.5e3", &x) && x == -1500);
	static const char *const bad[] = {
		"", " 1", "1 ", "+", "-", "1.", "0x1", "nan", "inf", "1e999",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(number_whole(bad[i], UINT64_MAX, &n));
	assert_false(number_whole("-1", UINT64_MAX, &n));
	assert_false(number_whole("+1", UINT64_MAX, &n));
	assert_true(number_real("1.", &x) && x == 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (strcmp(bad[i], "1.") && strcmp(bad[i], "0x1"))
			assert_false(number_real(bad[i], &x));
}

/* ---- pace ---- */

static double
thread_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct paced {
	struct pace pace;
	int parts;                      /* of 1 ms of CPU time */
	double used, elapsed;
};

static void *
work_at_pace(void *user)
{
	struct paced *p = user;
	double begun = now_sec(), used = thread_seconds();

	pace_begin(&p->pace, p->parts);
	for (int i = 0; i < p->parts; i++) {
		double until = thread_seconds() + 1e-3;

		while (thread_seconds() < until)
			;
		pace_rest(&p->pace, 1);
	}
	p->elapsed = now_sec() - begun;
	p->used = thread_seconds() - used;
	return NULL;
}

/* Seconds to sleep; a thread that takes 1 % of the time that goes by; one that
 * somebody waits for, from its beginning on or later. */
static void
test_pace(void **state)
{
	(void)state;
	assert_true(fabs(pace_seconds(0.1, 1, 0.5) - 9) < 1e-9);
	assert_true(fabs(pace_seconds(100, 10, 0.01) + 4) < 1e-9);
	assert_true(fabs(pace_seconds(100, 10, 1) - 590) < 1e-9);
	for (int hurried = 0; hurried < 3; hurried++) {
		struct paced p = { .parts = hurried ? 100 : 10 };
		pthread_t thread;

		pace_init(&p.pace);
		if (hurried == 2)
			pace_hurry(&p.pace);
		pthread_create(&thread, NULL, work_at_pace, &p);
		if (hurried == 1) {
			usleep(200000);
			pace_hurry(&p.pace);
		}
		pthread_join(thread, NULL);
		pace_destroy(&p.pace);
		if (hurried)
			assert_true(p.elapsed < 0.7 * p.used / 0.01);
		else
			assert_true(p.elapsed > 0.98 * p.used / 0.01);
	}
}

/* ---- JSON ---- */

static bool
json_ok(const char *text)
{
	char *copy = strdup(text);
	struct json j = { .text = copy, .size = strlen(copy) };
	bool ok = json_skip(&j) && json_end(&j);

	free(copy);
	return ok;
}

/* Sums what stands in a list, or under "x", of 1, 2.5, true, [..], {..}. */
static bool
sum_element(struct json *, void *sum);

static bool
sum_member(struct json *j, const char *key, void *sum)
{
	return strcmp(key, "x") ? json_skip(j) : sum_element(j, sum);
}

static bool
sum_element(struct json *j, void *sum)
{
	double x = 1;

	if (json_accept(j, '[') || json_accept(j, '{')) {
		bool list = j->text[--j->at] == '[';

		return list ? json_list(j, sum_element, sum)
			: json_object(j, sum_member, sum);
	}
	if (!json_word(j, "true") && !json_number(j, &x))
		return false;
	*(double *)sum += x;
	return true;
}

static void
test_json_members(void **state)
{
	static const struct {
		const char *text, *fault;
		double sum;
	} c[] = {
		{ " [1, 2.5, true, [ ], [-3], {} ] ", NULL, 1.5 },
		{ "[{\"x\" : 1, \"\\u0078\":2,\"y\":[5]}]", NULL, 3 },
		{ "[1, 2", "expected ',' or ']'", 3 },
		{ "[{\"x\" 1}]", "expected ':'", 0 },
		{ "[{\"x\":1 \"x\":1}]", "expected ',' or '}'", 1 },
		{ "[1, 0x2]", "expected a number", 1 },
		{ "[1, .5]", "expected a number", 1 },
		{ "[inf]", "expected a number", 0 },
		{ "[null]", "expected a number", 0 },
		{ "[{1:1}]", "expected a string", 0 },
		{ "[] []", "text after the end", 0 },
		{ "", "expected '['", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		char *text = strdup(c[i].text);
		struct json j = { .text = text, .size = strlen(text) };
		double sum = 0;
		bool ok = json_list(&j, sum_element, &sum) && json_end(&j);

		assert_int_equal(ok, !c[i].fault);
		if (!ok)
			assert_string_equal(j.fault, c[i].fault);
		assert_true(sum == c[i].sum);
		free(text);
	}
}

static void
test_json(void **state)
{
	char text[] = "\"a\\u00e9\\ud83d\\ude00\\n\"", *s;
	struct json j = { .text = text, .size = strlen(text) };
	char deep[200], *quoted;
	FILE *out;
	size_t n;

	(void)state;
	assert_true(json_string(&j, &s));
	assert_string_equal(s, "a\xc3\xa9\xf0\x9f\x98\x80\n");
	assert_true(json_ok("{\"a\":[1,2,{\"b\":null}],\"c\":-1.5e3}"));
	assert_false(json_ok("{\"a\":yes}"));
	assert_false(json_ok("0x10"));
	assert_false(json_ok("1e999"));
	assert_false(json_ok("{\"a\":}"));
	assert_false(json_ok("{\"a\":1,}"));
	assert_false(json_ok("[1 2]"));
	assert_false(json_ok("\"\\u0000\""));
	assert_false(json_ok("\"\\ud83d\""));
	assert_false(json_ok("\"\xff\""));
	assert_false(json_ok("\"a"));
	assert_false(json_ok(""));
	assert_false(json_ok("{} {}"));
	for (size_t d = 64; d <= 66; d++) {     /* brackets around brackets */
		memset(deep, '[', d);
		memset(deep + d, ']', d);
		deep[2 * d] = '\0';
		assert_int_equal(json_ok(deep), d <= 65);
	}
	out = open_memstream(&quoted, &n);
	utf8_json(out, "a\"\\\n\xff\xc3\xa9\xc3");
	fclose(out);
	assert_string_equal(quoted, "\"a\\\"\\\\\\u000a\\ufffd\xc3\xa9"
	                    "\\ufffd\"");
	free(quoted);
}

static void
test_json_write(void **state)
{
	static const int64_t ids[] = { 3, -1 };
	char *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct json_out j = { .f = out };

	(void)state;
	json_open(&j, NULL, '{', JSON_LINES);
	json_open(&j, "list", '[', JSON_SPACED);
	json_text(&j, NULL, "a\"");
	json_text(&j, NULL, NULL);
	json_close(&j);
	json_open(&j, "empty", '{', JSON_ROWS);
	json_close(&j);
	json_ids(&j, "ids", ids, 2);
	json_real(&j, "real", 9, 0.5);
	json_real(&j, "none", 9, (double)NAN);
	json_close(&j);
	fclose(out);
	assert_string_equal(text, "{\n\"list\": [\"a\\\"\", null],\n"
	                    "\"empty\": {},\n\"ids\": [3, null],\n"
	                    "\"real\": 0.5,\n\"none\": null\n}");
	assert_true(json_ok(text));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_philox),
		cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_convert_range),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_json_members),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
