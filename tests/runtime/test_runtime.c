/* Parts of the run time by themselves: numbers, files that may be hostile,
 * matrix products, and the calls of ckr.h on models written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file/array.h"
#include "runtime/ckr.h"
#include "runtime/blas/gemm.h"
#include "runtime/support/half.h"
#include "runtime/support/json.h"
#include "runtime/support/json_write.h"
#include "runtime/support/now.h"
#include "runtime/support/number.h"
#include "runtime/support/path.h"
#include "runtime/support/utf8.h"
#include "runtime/base/pace.h"
#include "runtime/base/rng.h"
#include "tests/sanitize/sanitized.h"

/* A file in the test's folder. */
static void
put_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

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

/* ---- numbers ---- */

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

/* ---- safetensors ---- */

static size_t
st_make(char *buf, const char *header, size_t data)
{
	uint64_t n = strlen(header);

	memcpy(buf, &n, 8);
	memcpy(buf + 8, header, n);
	memset(buf + 8 + n, 0, data);
	return 8 + n + data;
}

/* Status of opening a safetensors file with this header. */
static ckr_status
st_try(const char *header, size_t data, struct err *e)
{
	char buf[4096];
	struct array_file f;
	ckr_status s;

	put_file("t.safetensors", buf, st_make(buf, header, data));
	s = array_open(&f, "t.safetensors", e);
	if (s == CKR_OK)
		array_close(&f);
	return s;
}

#define ENTRY(name, dtype, shape, from, to) "\"" name "\":{\"dtype\":\"" dtype \
	"\",\"shape\":" shape ",\"data_offsets\":[" #from "," #to "]}"

static void
test_st_hostile(void **state)
{
	struct err e;

	(void)state;
	assert_int_equal(st_try("{" ENTRY("a", "F32", "[2]", 0, 8) "}", 8, &e),
	                 CKR_OK);
	assert_int_equal(st_try("{}", 0, &e), CKR_OK);
	/* empty ones lie anywhere */
	assert_int_equal(st_try("{" ENTRY("a", "F32", "[2]", 0, 8) ","
	                        ENTRY("b", "F32", "[0]", 4, 4) ","
	                        ENTRY("c", "F32", "[0]", 0, 0) "}", 8, &e),
	                 CKR_OK);
	static const char *const bad[] = {
		"{" ENTRY("a", "F32", "[2]", 0, 8) ","
		ENTRY("a", "F32", "[2]", 0, 8) "}",             /* twice */
		"{" ENTRY("a", "F32", "[2]", 0, 8) ","
		ENTRY("b", "F32", "[0]", 4, 4) ","
		ENTRY("c", "F32", "[1]", 4, 8) "}",             /* shared */
		"{" ENTRY("a", "F32", "[1]", 4, 8) "}",         /* a hole */
		"{" ENTRY("a", "F32", "[1]", 0, 4) "}",         /* more */
		"{}",
		"{" ENTRY("a", "F32", "[3]", 0, 8) "}",         /* shape */
		"{" ENTRY("a", "F32", "[2]", 8, 16) "}",        /* outside */
		"{" ENTRY("a", "F32", "[2]", 8, 0) "}",         /* backwards */
		"{" ENTRY("a", "F32", "[-2]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[2.0]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[4611686018427387904,4]", 0, 0) "}",
		"{" ENTRY("a", "F32", "[99999999999999999999]", 0, 0) "}",
		"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,2]", 0, 8) "}",
		"{" ENTRY("a", "F32", "[2]", 0, 99999999999999999999) "}",
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
		("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
		 "\"data_offsets\":[0,8]}}"),
		"{\"a\":[]}", "{\"a\"", "{", "{\"__metadata__\":{\"a\":1}}",
		"{\"a\\u0000b\":{}}", "[]",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e.text[0] = '\0';
		assert_int_equal(st_try(bad[i], 8, &e), CKR_EFORMAT);
		assert_non_null(strstr(e.text, "t.safetensors"));
	}
}

static void
test_st_write(void **state)
{
	static const float a[6] = { 1, 2, 3, 4, 5, 6 };
	static const int64_t b = -7;
	struct st_entry entry[] = { { "we\"ird\n", CKR_F32, 2, { 2, 3 } },
	                            { "b", CKR_I64, 0, { 0 } } };
	struct meta meta = { "step", "12" };
	struct st_writer w;
	struct array_file f;
	struct err e;
	double d[6];
	int64_t l;

	(void)state;
	assert_int_equal(st_begin(&w, "w.safetensors", entry, 2, &meta, 1, &e),
	                 CKR_OK);
	/* nothing is there before the end */
	unlink("w.safetensors");
	assert_int_equal(st_write(&w, 1, 0, &b, 8, &e), CKR_OK);
	assert_int_equal(st_write(&w, 0, 0, a, sizeof(a), &e), CKR_OK);
	assert_int_equal(st_write(&w, 0, 20, a, 8, &e), CKR_EARG);
	assert_int_not_equal(access("w.safetensors", F_OK), 0);
	assert_int_equal(st_commit(&w, &e), CKR_OK);
	assert_int_equal(array_open(&f, "w.safetensors", &e), CKR_OK);
	assert_string_equal(array_meta(&f, "step"), "12");
	assert_null(array_meta(&f, "none"));
	assert_non_null(array_find(&f, "we\"ird\n"));
	assert_null(array_find(&f, "we"));
	assert_int_equal(array_find(&f, "we\"ird\n")->at % 64, 0);
	assert_int_equal(array_read(&f, array_find(&f, "we\"ird\n"), 1, 5,
	                            CKR_F64, d, &e), CKR_OK);
	assert_true(d[0] == 2 && d[4] == 6);
	assert_int_equal(array_read(&f, array_find(&f, "we\"ird\n"), 1, 6,
	                            CKR_F64, d, &e), CKR_EARG);
	assert_int_equal(array_read(&f, array_find(&f, "b"), 0, 1, CKR_I64, &l,
	                            &e), CKR_OK);
	assert_int_equal(l, -7);
	array_close(&f);
}

static void
test_atomic(void **state)
{
	struct new_file f;
	struct err e;
	char buf[8] = { 0 };
	FILE *in;

	(void)state;
	put_file("a.txt", "old", 3);
	assert_int_equal(new_file_open(&f, "a.txt", &e), CKR_OK);
	assert_int_equal(file_write(f.fd, "a.txt", "new!", 4, 0, &e), CKR_OK);
	new_file_abort(&f);
	in = fopen("a.txt", "r");
	assert_int_equal(fread(buf, 1, 8, in), 3);
	fclose(in);
	/* through a link: what it points to is replaced, the link stays */
	unlink("link.txt");
	assert_int_equal(symlink("a.txt", "link.txt"), 0);
	assert_int_equal(new_file_open(&f, "link.txt", &e), CKR_OK);
	assert_int_equal(file_write(f.fd, "a.txt", "new!", 4, 0, &e), CKR_OK);
	assert_int_equal(new_file_commit(&f, &e), CKR_OK);
	in = fopen("a.txt", "r");
	assert_int_equal(fread(buf, 1, 8, in), 4);
	fclose(in);
	assert_int_equal(readlink("link.txt", buf, 8), 5);
	/* devices and folders are not replaced */
	assert_true(path_same("a.txt", "./link.txt"));
	assert_true(path_same("b.txt", ".//b.txt"));
	assert_false(path_same("b.txt", "no/b.txt"));
	assert_false(path_same("a.txt", "b.txt"));
	assert_false(path_same("c.txt", "b.txt"));
	assert_int_equal(new_file_open(&f, "/dev/null", &e), CKR_EIO);
	assert_int_equal(new_file_open(&f, ".", &e), CKR_EIO);
	assert_int_equal(new_file_open(&f, "no/such/folder", &e), CKR_EIO);
}

/* ---- npy ---- */

static size_t
npy_make(char *buf, const char *dict, size_t data)
{
	size_t n = strlen(dict);

	memcpy(buf, "\x93NUMPY\1\0", 8);
	buf[8] = (char)(n & 255);
	buf[9] = (char)(n >> 8);
	memcpy(buf + 10, dict, n);
	for (size_t i = 0; i < data; i++)
		buf[10 + n + i] = (char)(i % 4 == 0 ? i / 4 : 0);
	return 10 + n + data;
}

static ckr_status
npy_try(const char *dict, size_t data, struct err *e)
{
	char buf[1024];
	struct array_file f;
	ckr_status s;

	put_file("t.npy", buf, npy_make(buf, dict, data));
	s = array_open(&f, "t.npy", e);
	if (s == CKR_OK)
		array_close(&f);
	return s;
}

#define DICT(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " \
	order ", 'shape': " shape ", }      \n"

static void
test_npy(void **state)
{
	struct array_file f;
	struct err e;
	char buf[256];
	int64_t l[3];

	(void)state;
	put_file("t.npy", buf, npy_make(buf, DICT("<i4", "False", "(2, 3)"),
	                                24));
	assert_int_equal(array_open(&f, "t.npy", &e), CKR_OK);
	assert_int_equal(f.v[0].rank, 2);
	assert_int_equal(array_read(&f, &f.v[0], 3, 3, CKR_I64, l, &e), CKR_OK);
	assert_true(l[0] == 3 && l[2] == 5);
	array_close(&f);
	assert_int_equal(npy_try(DICT("<f4", "False", "()"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "False", "(1,)"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "True", "(1,)"), 4, &e), CKR_OK);
	assert_int_equal(npy_try(DICT("<f4", "True", "(1,1)"), 4, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT(">f4", "False", "(1,)"), 4, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT("<c8", "False", "(1,)"), 8, &e),
	                 CKR_EUNSUPPORTED);
	assert_int_equal(npy_try(DICT("|O", "False", "(1,)"), 8, &e),
	                 CKR_EUNSUPPORTED);
	static const char *const bad[] = {
		DICT("<f4", "False", "(2,)"),           /* too short */
		DICT("<f4", "False", "(-1,)"), DICT("<f4", "Maybe", "(1,)"),
		DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1)"),
		DICT("<f4", "False", "(4611686018427387904,16)"),
		DICT("<f4", "False", "(1"), "{'shape': (1,)}", "{", "",
		"{'descr': '<f4', 'x': 1}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(npy_try(bad[i], 4, &e), CKR_EFORMAT);
}

/* ---- products ---- */

static bool coarse;                     /* eight bits are enough */

static void
fill(float *x, size_t n, unsigned *seed)
{
	for (size_t i = 0; i < n; i++) {
		*seed = *seed * 1103515245 + 12345;
		x[i] = (float)(*seed >> 8 & 0xffff) / 65536 - 0.5f;
		if (coarse)
			x[i] = (float)(*seed >> 8 & 0xff) / 256 - 0.5f;
	}
}

struct shape {
	int64_t m, n, k;
	int ta, tb;
	float alpha, beta;
	int gap;                        /* unused columns */
};

static void
check_product(ckr_sgemm_fn *gemm, const struct shape *s, unsigned *seed)
{
	int64_t lda = (s->ta ? s->m : s->k) + s->gap;
	int64_t ldb = (s->tb ? s->k : s->n) + s->gap, ldc = s->n + s->gap;
	size_t na = (size_t)(lda * (s->ta ? s->k : s->m));
	size_t nb = (size_t)(ldb * (s->tb ? s->n : s->k));
	size_t nc = (size_t)(ldc * s->m);
	float *a = malloc(4 * na), *b = malloc(4 * nb);
	float *c = malloc(4 * nc), *was = malloc(4 * nc);

	fill(a, na, seed);
	fill(b, nb, seed);
	fill(c, nc, seed);
	if (s->beta == 0)               /* then C must not be read */
		for (int64_t i = 0; i < s->m; i++)
			for (int64_t j = 0; j < s->n; j++)
				c[i * ldc + j] = NAN;
	memcpy(was, c, 4 * nc);
	gemm(s->ta, s->tb, s->m, s->n, s->k, s->alpha, a, lda, b, ldb, s->beta,
	     c, ldc);
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < ldc; j++) {
			double sum = 0, tol = 1e-5 * (1 + sqrt((double)s->k));

			if (j >= s->n) {        /* gaps are left alone */
				assert_true(c[i * ldc + j] == was[i * ldc + j]);
				continue;
			}
			for (int64_t p = 0; p < s->k; p++)
				sum += (double)a[s->ta ? p * lda + i
				                 : i * lda + p]
				       * b[s->tb ? j * ldb + p : p * ldb + j];
			sum *= s->alpha;
			if (s->beta != 0)
				sum += s->beta * was[i * ldc + j];
			assert_float_equal(c[i * ldc + j], sum, tol);
		}
	free(a);
	free(b);
	free(c);
	free(was);
}

static void
check_library(ckr_sgemm_fn *gemm)
{
	static const float betas[] = { 0, 1, -0.5f };
	unsigned seed = 7;

	for (int t = 0; t < 250; t++) {
		unsigned r = seed * 2654435761u >> 4;
		struct shape s = {
			.m = 1 + r % 61, .n = 1 + (r >> 3) % 83,
			.k = 1 + (r >> 6) % (t % 5 ? 70 : 700),
			.ta = t & 1, .tb = t >> 1 & 1,
			.alpha = t % 3 ? 1 : 0.25f, .beta = betas[t % 3],
			.gap = t % 4 ? 0 : 3,
		};

		if (t % 25 == 0)
			s.m *= 9, s.n *= 14;
		check_product(gemm, &s, &seed);
	}
	/* nothing to add up: C becomes beta C */
	check_product(gemm, &(struct shape){ 3, 5, 0, 0, 0, 1, 0.5f, 1 },
	              &seed);
	check_product(gemm, &(struct shape){ 3, 5, 0, 1, 1, 1, 0, 1 }, &seed);
}

static bgemm_fn *bf16_product;

static uint16_t *
as_bf16(const float *x, size_t n)
{
	uint16_t *h = malloc(2 * n);

	for (size_t i = 0; i < n; i++)
		h[i] = float_to_bf16(x[i]);
	return h;
}

/* Operands of these tests have values that bf16 holds. */
static void
by_bf16(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
        const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
        float *c, int64_t ldc)
{
	uint16_t *ah = as_bf16(a, (size_t)(lda * (ta ? k : m)));
	uint16_t *bh = as_bf16(b, (size_t)(ldb * (tb ? n : k)));

	bf16_product(ta, tb, m, n, k, alpha, ah, lda, bh, ldb, beta, c, ldc);
	free(ah);
	free(bh);
}

static void
test_bf16_products(void **state)
{
	struct gemm g;
	struct err e;

	(void)state;
	if (gemm_choose(&g, "onednn-bf16", 0, 2, &e) != CKR_OK) {
		print_message("%s\n", e.text);
		skip();
	}
	bf16_product = g.bf16;
	coarse = true;
	check_library(by_bf16);
	coarse = false;
}

static void
test_products(void **state)
{
	static const char *const names[] = { "own", "onednn", "openblas" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct gemm g;
		struct err e;

		if (gemm_choose(&g, names[i], 0, 2, &e) != CKR_OK) {
			print_message("%s\n", e.text);
			assert_int_not_equal(i, 0);
			continue;
		}
		print_message("products by %s\n", g.text);
		check_library(g.fn);
		check_library(g.tile);
	}
}

struct product {
	ckr_sgemm_fn *gemm;
	const struct shape *s;
	const float *a, *b;
	float *c;
	int left;                       /* threads for those who come next */
};

static void *
compute(void *arg)
{
	struct product *p = arg;
	const struct shape *s = p->s;

	p->gemm(s->ta, s->tb, s->m, s->n, s->k, 1, p->a, s->ta ? s->m : s->k,
	        p->b, s->tb ? s->k : s->n, 0, p->c, s->n);
	p->left = omp_get_max_threads();
	return NULL;
}

/* One product at so many threads, or by `one` inside a parallel region (0), or
 * on a thread that is not OpenMP's (-1). */
static void
product_at(const struct gemm *g, const struct shape *s, int threads,
           const float *a, const float *b, float *c)
{
	struct product p = { threads > 0 ? g->fn : g->one, s, a, b, c, 0 };
	pthread_t id;

	omp_set_num_threads(threads > 0 ? threads : 2);
	if (threads > 0) {
		compute(&p);
		assert_int_equal(p.left, threads);
	} else if (threads < 0) {
		assert_int_equal(pthread_create(&id, NULL, compute, &p), 0);
		pthread_join(id, NULL);
		/* a product by all threads may follow on this one */
		compute(&p);
		assert_int_equal(p.left, 2);
	} else {
#pragma omp parallel num_threads(2)
#pragma omp single
		compute(&p);
	}
}

static void
same_bits(const struct gemm *g)
{
	enum { SIDE = 1100, LONG = 4096 };
	/* few rows or columns and long sums are what libraries divide */
	static const struct shape shape[] = {
		{ .m = 301, .n = 515, .k = 600 },
		{ .m = 16, .n = 1000, .k = 2048, .tb = 1 },
		{ .m = 512, .n = 128, .k = 2048, .tb = 1 },
		{ .m = 128, .n = 1000, .k = 1000, .tb = 1 },
		{ .m = 1, .n = 48, .k = 512 }, { .m = 32, .n = 1, .k = 4096 },
		{ .m = 32, .n = 1, .k = 1000, .ta = 1 },
		{ .m = 64, .n = 64, .k = 4096, .ta = 1 },
		{ .m = 1024, .n = 96, .k = 300, .ta = 1 },
		{ .m = 1000, .n = 128, .k = 2048, .ta = 1, .tb = 1 },
	};
	static const int threads[] = { 2, 3, 8, 0, -1 };
	float *a = malloc(sizeof(float) * SIDE * LONG);
	float *b = malloc(sizeof(float) * SIDE * LONG);
	float *one = malloc(sizeof(float) * SIDE * SIDE);
	float *more = malloc(sizeof(float) * SIDE * SIDE);
	int was = omp_get_max_threads();
	unsigned seed = 3;

	fill(a, (size_t)SIDE * LONG, &seed);
	fill(b, (size_t)SIDE * LONG, &seed);
	for (size_t i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
		const struct shape *s = &shape[i];
		size_t n = sizeof(float) * (size_t)(s->m * s->n);

		product_at(g, s, 1, a, b, one);
		for (size_t t = 0; t < 5; t++) {
			product_at(g, s, threads[t], a, b, more);
			assert_memory_equal(one, more, n);
		}
	}
	omp_set_num_threads(was);
	free(a);
	free(b);
	free(one);
	free(more);
}

/* The same bits at any number of threads, inside a parallel region and on a
 * thread of somebody else's. */
static void
test_product_bits(void **state)
{
	static const char *const names[] = { "own", "onednn", "openblas" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct gemm g;
		struct err e;

		if (gemm_choose(&g, names[i], 0, 8, &e) != CKR_OK) {
			print_message("%s\n", e.text);
			continue;
		}
		same_bits(&g);
	}
}

/* ---- contexts ---- */

static const float first_w[6] = { .1f, .2f, .3f, .4f, .5f, .6f };

/* The linear model with weights set by hand. */
static ckr_ctx *
open_linear(const char *so)
{
	struct ckr_options opt = { .weights = "", .blas = "own", .seed = 5 };
	static const float b[2] = { 0, 0 };
	static const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	static const float t[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	ckr_ctx *c;

	assert_int_equal(ckr_open(&c, so, &opt), CKR_OK);
	assert_int_equal(ckr_set(c, "w", first_w, sizeof(first_w)), CKR_OK);
	assert_int_equal(ckr_set(c, "b", b, sizeof(b)), CKR_OK);
	assert_int_equal(ckr_set(c, "x", x, sizeof(x)), CKR_OK);
	assert_int_equal(ckr_set(c, "target", t, sizeof(t)), CKR_OK);
	return c;
}

static void
test_context(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_info info;
	struct ckr_memory mem;
	float w[6], pred[8];
	double loss, eval;
	void *p;

	(void)state;
	assert_int_equal(ckr_find(c, "w", &info), CKR_OK);
	assert_string_equal(info.kind, "param");
	assert_string_equal(info.dtype, "f32");
	assert_true(info.rank == 2 && info.dim[0] == 3 && info.nbytes == 24);
	assert_int_equal(ckr_find(c, "pred", &info), CKR_OK);
	assert_string_equal(info.kind, "output");
	assert_int_equal(ckr_find(c, "none\n", &info), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), "none\\x0a"));
	assert_int_equal(ckr_tensor(c, 0, &info), CKR_OK);
	assert_int_equal(ckr_tensor(c, 1000, &info), CKR_EARG);

	assert_int_equal(ckr_set(c, "x", w, 4), CKR_EARG);
	assert_int_equal(ckr_set(c, "loss", w, 4), CKR_EARG);
	assert_int_equal(ckr_get(c, "pred", pred, sizeof(pred)), CKR_EARG);
	assert_int_equal(ckr_input(c, "w", &p), CKR_EARG);
	assert_int_equal(ckr_input(c, "x", &p), CKR_OK);
	assert_true(((float *)p)[8] == 9);

	assert_int_equal(ckr_eval(c, &eval), CKR_OK);
	assert_int_equal(ckr_step_count(c), 0);
	assert_int_equal(ckr_step(c, NULL, &loss), CKR_OK);
	assert_true(loss == eval);
	assert_int_equal(ckr_step_count(c), 1);
	assert_int_equal(ckr_get(c, "pred", pred, sizeof(pred)), CKR_OK);
	assert_float_equal(pred[0], .1 + 2 * .3 + 3 * .5, 1e-6);
	assert_int_equal(ckr_get(c, "w", w, sizeof(w)), CKR_OK);
	/* Adam's first step has the length of the learning rate */
	assert_float_equal(fabs(w[0] - first_w[0] * (1 - 1e-5)), 1e-3, 1e-6);
	assert_int_equal(ckr_memory(c, &mem), CKR_OK);
	assert_int_equal(mem.peak_bytes, mem.planned_bytes);
	assert_int_equal(mem.held_bytes, 0);
	ckr_close(c);
}

static void
expect_unset(ckr_ctx *c, const char *inputs)
{
	double loss;

	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_check(c, NULL, NULL, NULL), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_eval(c, &loss), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_score_add(c, 1), CKR_EARG);
	assert_int_equal(ckr_step_count(c), 0);
}

/* No step takes zeros for an input that nobody set. */
static void
test_unset_inputs(void **state)
{
	struct ckr_options opt = { .weights = "", .blas = "own" };
	static const float x[12] = { 1 };
	float loss;
	void *place;
	ckr_ctx *c;

	(void)state;
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	expect_unset(c, "inputs 'x', 'target' were never set");
	assert_int_equal(ckr_set(c, "x", x, sizeof(x) - 4), CKR_EARG);
	expect_unset(c, "inputs 'x', 'target' were never set");
	assert_int_equal(ckr_set(c, "x", x, sizeof(x)), CKR_OK);
	expect_unset(c, "input 'target' was never set");
	assert_int_equal(ckr_input(c, "target", &place), CKR_OK);
	assert_int_equal(ckr_eval(c, NULL), CKR_OK);
	assert_int_equal(ckr_get(c, "loss", &loss, sizeof(loss)), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

static void
test_open_errors(void **state)
{
	struct ckr_options opt = { .blas = "abacus" };
	ckr_ctx *c;

	(void)state;
	assert_int_equal(ckr_open(&c, "no-such.so", NULL), CKR_EIO);
	assert_non_null(strstr(ckr_error(c), "no-such.so"));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_int_equal(ckr_save(c, "x.safetensors"), CKR_EARG);
	assert_int_equal(ckr_load_weights(c, "x.safetensors"), CKR_EARG);
	ckr_close(c);
	put_file("bad.so", "not a library", 13);
	assert_int_equal(ckr_open(&c, "bad.so", NULL), CKR_EFORMAT);
	ckr_close(c);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", NULL), CKR_EIO);
	assert_non_null(strstr(ckr_error(c), "is missing"));
	ckr_close(c);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_EARG);
	ckr_close(c);
	ckr_close(NULL);
	assert_string_equal(ckr_error(NULL), "out of memory");
}

static void
test_hyper_errors(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_hyper h = ckr_hyper_default();

	(void)state;
	h.beta1 = 1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	h = ckr_hyper_default();
	h.lr = NAN;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	h.lr = -1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	assert_string_equal(ckr_error(c), "lr must be 0 or more, got -1");
	h = ckr_hyper_default();
	h.weight_decay = -1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	assert_int_equal(ckr_step_count(c), 0);
	ckr_close(c);
}

/* A kernel that meets bad data ends the step with a message; the state stays
 * as it was. */
static void
test_fault(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear_early.so");
	float t[8] = { 0, 0, 0, 1e9f }, w[6];
	int64_t count;

	(void)state;
	ckr_set(c, "target", t, sizeof(t));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EDATA);
	assert_non_null(strstr(ckr_error(c), "target out of range: 3"));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_get(c, "w", w, sizeof(w));
	assert_memory_equal(w, first_w, sizeof(w));
	ckr_get(c, "count", &count, sizeof(count));
	assert_int_equal(count, 0);
	t[3] = 0;
	ckr_set(c, "target", t, sizeof(t));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

static void
test_resume(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so"), *d;
	double loss[6], again;

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ckr_step(c, NULL, &loss[i]), CKR_OK);
		if (i == 2)
			assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
	}
	ckr_close(c);
	d = open_linear(MODELS "/linear.so");
	assert_int_equal(ckr_resume(d, "r.safetensors"), CKR_OK);
	assert_int_equal(ckr_step_count(d), 3);
	for (int i = 3; i < 6; i++) {
		assert_int_equal(ckr_step(d, NULL, &again), CKR_OK);
		assert_true(again == loss[i]);
	}
	ckr_close(d);
}

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

/* One after the other, and before anything else that saves or resumes. */
static void
test_save_async(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_memory mem;
	bool done = false;

	(void)state;
	assert_int_equal(ckr_save_wait(c), CKR_OK);
	assert_int_equal(ckr_save_poll(c, &done), CKR_OK);
	assert_true(done);
	assert_int_equal(ckr_save_reserve(c, "no/r.safetensors"), CKR_EIO);
	assert_int_equal(ckr_save_reserve(c, "r.safetensors"), CKR_OK);
	assert_int_equal(ckr_memory(c, &mem), CKR_OK);
	/* w [3, 2], b [2], two states of each, and the buffer count */
	assert_int_equal(mem.staging_bytes, 3 * (6 + 2) * 4 + 8);
	for (uint64_t step = 1; step < 20; step++) {
		assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
		assert_int_equal(ckr_save_async(c, "r.safetensors"), CKR_OK);
		if (step % 3 == 0)
			assert_int_equal(ckr_save_async(c, "r.safetensors"),
			                 CKR_OK);
		if (step % 5 == 0)
			assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_step_count(c), step);
	}
	assert_int_equal(ckr_save_async(c, "r.safetensors"), CKR_OK);
	do
		assert_int_equal(ckr_save_poll(c, &done), CKR_OK);
	while (!done);
	assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
	ckr_close(c);
}

static void
test_resume_errors(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct st_entry entry = { "w", CKR_F32, 1, { 6 } };
	struct meta meta[] = { { "step", "1" }, { "seed", "x" } };
	struct st_writer w;
	struct err e;

	(void)state;
	assert_int_equal(ckr_resume(c, "none.safetensors"), CKR_EIO);
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "not a checkpoint"));
	meta[1].value = "0";
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c),
	                       "expected f32[3,2], found f32[6]"));
	entry.name = "other";
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "3 of 3 parameters"));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_close(c);
}

static void
test_check(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	ckr_ctx *d = open_linear(MODELS "/linear.so");
	struct ckr_checked n;
	double x, y;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ckr_check(c, NULL, &x, &n), CKR_OK);
		assert_int_equal(ckr_step(d, NULL, &y), CKR_OK);
		assert_true(x == y);
		assert_true(n.compared > 15);
		assert_int_equal(n.again, 2);
		assert_int_equal(n.alone, 0);
	}
	ckr_close(c);
	ckr_close(d);
}

/* A check that fails says where, and leaves everything as it was. */
static void
check_fails(const char *so, ckr_status status, const char *says)
{
	ckr_ctx *c = open_linear(so);
	float w[6], m[6];
	int64_t count = 0;
	double x;

	assert_int_equal(ckr_set(c, "count", &count, sizeof(count)), CKR_OK);
	assert_int_equal(ckr_check(c, NULL, &x, NULL), status);
	assert_non_null(strstr(ckr_error(c), says));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_get(c, "w", w, sizeof(w));
	assert_memory_equal(w, first_w, sizeof(w));
	ckr_get(c, "adamw.m.w", m, sizeof(m));
	assert_true(m[0] == 0 && m[5] == 0);
	ckr_get(c, "count", &count, sizeof(count));
	assert_int_equal(count, 0);
	ckr_close(c);
}

static void
test_check_fails(void **state)
{
	(void)state;
	check_fails(MODELS "/linear_slip.so", CKR_EMISMATCH,
	            "'pred.again', made by matmul");
	check_fails(MODELS "/linear_slip2.so", CKR_EMISMATCH,
	            "'pred.again.2', made by matmul");
	check_fails(MODELS "/linear_lone.so", CKR_EUNSUPPORTED,
	            "'pred.again.2', recomputed by matmul 3, has no counterpart");
}

/* Two micro-batches of the same data are one step with it. */
static ckr_status
feed_seen(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	unsigned *seen = user;

	(void)c;
	*seen |= 1u << (2 * step + micro);
	return step == 2 ? CKR_EARG : CKR_OK;
}

static void
test_micro(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	ckr_ctx *d = open_linear(MODELS "/linear_accum.so");
	unsigned seen = 0;
	double x, y;

	(void)state;
	assert_int_equal(ckr_micro_batches(d), 2);
	ckr_set_feed(d, feed_seen, &seen);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ckr_step(c, NULL, &x), CKR_OK);
		assert_int_equal(ckr_step(d, NULL, &y), CKR_OK);
		assert_float_equal(x, y, 1e-6);
	}
	assert_int_equal(seen, 15);
	assert_int_equal(ckr_step(d, NULL, &y), CKR_EARG);
	assert_true(*ckr_error(d));
	ckr_close(c);
	ckr_close(d);
}

static ckr_status
feed_fails(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	(void)user;
	errno = ENOSPC;
	return ckr_fail(c, CKR_EIO, "no batch %u of step %u: %m",
	                (unsigned)micro, (unsigned)step);
}

/* Nothing of the model is read, written or begun by who feeds a step. */
static ckr_status
feed_meddles(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	(void)step;
	(void)micro;
	++*(int *)user;
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_int_equal(ckr_begin_step(c, NULL), CKR_EARG);
	assert_int_equal(ckr_end_step(c, NULL), CKR_EARG);
	assert_int_equal(ckr_eval(c, NULL), CKR_EARG);
	assert_string_equal(ckr_error(c), "inputs of a step are being set: "
	                    "return from the feed function first");
	return CKR_OK;
}

static void
test_meddling(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	int calls = 0;

	(void)state;
	ckr_set_feed(c, feed_meddles, &calls);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_equal(calls, 1);
	assert_int_equal(ckr_step_count(c), 1);
	assert_true(ckr_can_begin(c));
	assert_int_equal(ckr_end_step(c, NULL), CKR_EARG);
	ckr_close(c);
}

/* What a runner needs beside steps: words of its own, another seed, a trace
 * that ends early. */
static void
test_runner(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	const char *path = "runner.trace";
	char text[64];

	(void)state;
	ckr_set_seed(c, 77);
	assert_int_equal(ckr_seed(c), 77);
	unlink(path);
	assert_int_equal(ckr_trace(c, NULL), CKR_OK);
	assert_int_equal(ckr_trace(c, path), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(ckr_trace(c, NULL), CKR_OK);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	ckr_set_feed(c, feed_fails, NULL);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EIO);
	snprintf(text, sizeof(text), "no batch 0 of step 1: %s",
	         strerror(ENOSPC));
	assert_string_equal(ckr_error(c), text);
	ckr_close(c);
}

/* ---- numbers that are not ---- */

/* All that outlives a step of the linear model. */
struct state {
	float w[6], b[2], mw[6], vw[6];
	int64_t count;
};

static struct state
state_of(ckr_ctx *c)
{
	struct state s;

	assert_int_equal(ckr_get(c, "w", s.w, sizeof(s.w)), CKR_OK);
	assert_int_equal(ckr_get(c, "b", s.b, sizeof(s.b)), CKR_OK);
	assert_int_equal(ckr_get(c, "adamw.m.w", s.mw, sizeof(s.mw)), CKR_OK);
	assert_int_equal(ckr_get(c, "adamw.v.w", s.vw, sizeof(s.vw)), CKR_OK);
	assert_int_equal(ckr_get(c, "count", &s.count, 8), CKR_OK);
	return s;
}

/* Inputs for which the loss is NaN (bad 1), or finite but its gradient
 * infinite (bad 2): y = 3e25 * 1e-7, but dw = 3e25 * y. */
static void
spoil(ckr_ctx *c, int bad)
{
	float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	float w[6] = { 1e-7f, 1e-7f };

	x[0] = bad == 1 ? NAN : bad == 2 ? 3e25f : 1;
	if (bad == 2)
		ckr_set(c, "w", w, sizeof(w));
	ckr_set(c, "x", x, sizeof(x));
}

static void
check_stop(const char *so, int bad, const char *says)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(so);
	struct state before, after;
	double loss;

	assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	spoil(c, bad);
	before = state_of(c);
	assert_int_equal(ckr_step(c, &h, &loss), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "step 2: "));
	assert_non_null(strstr(ckr_error(c), says));
	assert_int_equal(!isfinite(loss), bad == 1);
	assert_int_equal(ckr_step_count(c), 1);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_check(c, &h, &loss, NULL), CKR_ENAN);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));

	h.on_nan = CKR_NAN_SKIP;
	assert_int_equal(ckr_step(c, &h, &loss), CKR_OK);
	assert_int_equal(ckr_check(c, &h, &loss, NULL), CKR_OK);
	assert_int_equal(ckr_step_count(c), 3);
	assert_int_equal(ckr_skipped_count(c), 2);
	assert_non_null(strstr(ckr_error(c), says));
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_check_finite(c), CKR_OK);

	h.on_nan = CKR_NAN_GO;
	assert_int_equal(ckr_step(c, &h, &loss), CKR_OK);
	assert_int_equal(ckr_step_count(c), 4);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "after step 4 'w' is not finite"));
	ckr_close(c);
}

static void
test_nan(void **state)
{
	static const char *const so[] = { MODELS "/linear.so",
		MODELS "/linear_accum.so", MODELS "/linear_early.so" };

	(void)state;
	for (size_t i = 0; i < sizeof(so) / sizeof(*so); i++) {
		check_stop(so[i], 1, "the loss is not finite: nan");
		check_stop(so[i], 2, "the gradient of 'w' is not finite: ");
	}
}

/* Steps that were skipped leave no trace, in AdamW's bias correction neither,
 * nor over a checkpoint. */
static void
test_skipped(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(MODELS "/linear_early.so");
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state a, b;

	(void)state;
	h.on_nan = CKR_NAN_SKIP;
	h.lr = 0.125;
	for (int i = 0; i < 6; i++) {
		spoil(c, i % 3 == 1);
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
		if (i % 3 != 1)
			assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
		if (i != 2)
			continue;
		assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
		ckr_close(c);
		c = open_linear(MODELS "/linear_early.so");
		assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_skipped_count(c), 1);
	}
	a = state_of(c);
	b = state_of(d);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(ckr_step_count(c), 6);
	ckr_close(c);
	ckr_close(d);
}

/* ---- the loss scale ---- */

/* Gradients of 1.5e34: a scale of 16384 is the largest that they bear. */
static void
steepen(ckr_ctx *c)
{
	float x[12] = { 2e17f, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	float w[6] = { 1, 1 };

	ckr_set(c, "w", w, sizeof(w));
	ckr_set(c, "x", x, sizeof(x));
}

#define SCALED MODELS "/linear_scaled.so"

static void
expect_step(ckr_ctx *c, const struct ckr_hyper *h, uint64_t skipped,
            double scale)
{
	assert_int_equal(ckr_step(c, h, NULL), CKR_OK);
	assert_int_equal(ckr_skipped_count(c), skipped);
	assert_float_equal(ckr_loss_scale(c), scale, 0);
}

/* Steps that overflow halve the scale and leave no trace; the first that does
 * not is that of a model without a scale. */
static void
test_scale_falls(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state before, after;
	double norm;

	(void)state;
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	assert_float_equal(ckr_loss_scale(d), 0, 0);
	steepen(c);
	steepen(d);
	before = state_of(c);
	h.on_nan = CKR_NAN_GO;
	expect_step(c, &h, 1, 32768);
	assert_non_null(strstr(ckr_error(c), "step 1: the gradient of 'w' is "
	                       "not finite: inf at a loss scale of 65536"));
	h.on_nan = CKR_NAN_STOP;
	assert_int_equal(ckr_check(c, &h, NULL, NULL), CKR_OK);
	assert_int_equal(ckr_skipped_count(c), 2);
	assert_int_equal(ckr_step_count(c), 2);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	expect_step(c, &h, 2, 16384);
	assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
	before = state_of(d);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_grad_norm(c, &norm), CKR_EUNSUPPORTED);
	ckr_close(c);
	ckr_close(d);
}

static void
test_scale_again(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED), *d = open_linear(SCALED);
	struct ckr_checked n;
	struct state a, b;

	(void)state;
	h.scale_again = true;
	steepen(c);
	steepen(d);
	expect_step(c, &h, 0, 16384);
	assert_int_equal(ckr_step_count(c), 1);
	assert_int_equal(ckr_check(d, &h, NULL, &n), CKR_OK);
	assert_float_equal(ckr_loss_scale(d), 16384, 0);
	assert_int_equal(ckr_skipped_count(d), 0);
	assert_int_equal(n.again, 2);
	a = state_of(c);
	b = state_of(d);
	assert_memory_equal(&a, &b, sizeof(a));
	ckr_close(c);
	ckr_close(d);
}

/* Good steps in a row double it; the run may be taken up between them. */
static void
test_scale_rises(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	float w[6];

	(void)state;
	h.scale_interval = 3;
	expect_step(c, &h, 0, 65536);
	expect_step(c, &h, 0, 65536);
	assert_int_equal(ckr_get(c, "w", w, sizeof(w)), CKR_OK);
	steepen(c);
	expect_step(c, &h, 1, 32768);
	spoil(c, 0);
	assert_int_equal(ckr_set(c, "w", w, sizeof(w)), CKR_OK);
	expect_step(c, &h, 1, 32768);
	expect_step(c, &h, 1, 32768);
	assert_int_equal(ckr_save(c, "scale.safetensors"), CKR_OK);
	ckr_close(c);
	c = open_linear(SCALED);
	assert_int_equal(ckr_resume(c, "scale.safetensors"), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 32768, 0);
	expect_step(c, &h, 1, 65536);
	h.scale_interval = 1;
	for (int i = 0; i < 20; i++)
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 0x1p24, 0);
	ckr_close(c);
	c = open_linear(SCALED);
	h.scale_interval = 0;
	for (int i = 0; i < 1999; i++)
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	expect_step(c, &h, 0, 131072);
	ckr_close(c);
}

/* What no scale can help against is left to on_nan. */
static void
test_scale_ends(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	struct state before, after;

	(void)state;
	spoil(c, 1);
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	spoil(c, 2);
	before = state_of(c);
	for (int i = 0; i < 16; i++)
		expect_step(c, &h, (uint64_t)i + 1, 32768 / (double)(1 << i));
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "at a loss scale of 1"));
	assert_int_equal(ckr_step_count(c), 16);
	h.on_nan = CKR_NAN_SKIP;
	expect_step(c, &h, 17, 1);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	h.on_nan = CKR_NAN_GO;
	expect_step(c, &h, 17, 1);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	ckr_close(c);
	/* a loss that is not finite goes on, too */
	c = open_linear(SCALED);
	spoil(c, 1);
	expect_step(c, &h, 0, 65536);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	ckr_close(c);
}

static void
test_scale_fixed(void **state)
{
	static const double wrong[] = { -1, NAN, INFINITY, 1e-45, 1e39 };
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state a, b;

	(void)state;
	steepen(c);
	h.loss_scale = 32768;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	steepen(d);
	assert_int_equal(ckr_step(d, &h, NULL), CKR_EUNSUPPORTED);
	assert_non_null(strstr(ckr_error(d), "--dtype f16"));
	h.loss_scale = 3;
	expect_step(c, &h, 0, 65536);
	h.loss_scale = 0;
	assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
	a = state_of(c);
	b = state_of(d);
	for (int i = 0; i < 6; i++) {
		assert_float_equal(a.w[i], b.w[i], 1e-6);
		assert_float_equal(a.mw[i], b.mw[i], 1e-6f * fabsf(b.mw[i]));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		h.loss_scale = wrong[i];
		assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	}
	ckr_close(c);
	ckr_close(d);
}

/* One steep micro-batch, whichever it is, takes the others with it. */
static ckr_status
feed_steep(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };

	if (step == 1 && micro == *(uint32_t *)user)
		x[0] = 2e18f;
	return ckr_set(c, "x", x, sizeof(x));
}

static void
test_scale_micro(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();

	(void)state;
	for (uint32_t steep = 0; steep < 2; steep++) {
		ckr_ctx *c = open_linear(MODELS "/linear_scaled_accum.so");
		struct state before, after;

		ckr_set_feed(c, feed_steep, &steep);
		expect_step(c, &h, 0, 65536);
		before = state_of(c);
		expect_step(c, &h, 1, 32768);
		after = state_of(c);
		assert_memory_equal(&before, &after, sizeof(before));
		expect_step(c, &h, 1, 32768);
		after = state_of(c);
		assert_int_not_equal(memcmp(&before, &after, sizeof(before)),
		                     0);
		ckr_close(c);
	}
}

/* Checkpoints of models with a scale and without serve each other; one that
 * the rule cannot have come to is no checkpoint. */
static void
test_scale_files(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	char data[4096], *at;
	size_t n;
	FILE *f;

	(void)state;
	h.scale_interval = 1;
	expect_step(c, &h, 0, 131072);
	assert_int_equal(ckr_save(d, "plain.safetensors"), CKR_OK);
	assert_int_equal(ckr_save(c, "scale.safetensors"), CKR_OK);
	assert_int_equal(ckr_resume(d, "scale.safetensors"), CKR_OK);
	assert_int_equal(ckr_step_count(d), 1);
	assert_int_equal(ckr_resume(c, "plain.safetensors"), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	f = fopen("scale.safetensors", "rb");
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	at = memmem(data, n, "\"131072\"", 8);
	assert_non_null(at);
	memcpy(at, "\"131071\"", 8);
	put_file("scale.safetensors", data, n);
	assert_int_equal(ckr_resume(c, "scale.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "loss_scale: expected a power "
	                       "of two up to 2^24, found 131071"));
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	ckr_close(c);
	ckr_close(d);
}

/* A file that turns out bad at its end changes nothing. */
static void
test_load_is_whole(void **state)
{
	static const struct st_entry entry[] = {
		{ "w", CKR_F32, 2, { 3, 2 } }, { "b", CKR_F32, 1, { 2 } },
		{ "count", CKR_F64, 0, { 0 } },
	};
	static const float w[6] = { 9, 9, 9, 9, 9, 9 };
	static const double count = 2.5;
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct state before = state_of(c), after;
	struct st_writer out;
	struct err e;

	(void)state;
	assert_int_equal(st_begin(&out, "x.safetensors", entry, 3, NULL, 0,
	                          &e), CKR_OK);
	st_write(&out, 0, 0, w, sizeof(w), &e);
	st_write(&out, 1, 0, w, 8, &e);
	st_write(&out, 2, 0, &count, 8, &e);
	assert_int_equal(st_commit(&out, &e), CKR_OK);
	assert_int_not_equal(ckr_load_weights(c, "x.safetensors"), CKR_OK);
	assert_non_null(strstr(ckr_error(c), "2.5"));
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	for (int cut = 1; cut < 60; cut += 7) {
		struct stat st;

		assert_int_equal(ckr_save(c, "x.safetensors"), CKR_OK);
		assert_int_equal(stat("x.safetensors", &st), 0);
		assert_int_equal(truncate("x.safetensors", st.st_size - cut),
		                 0);
		assert_int_not_equal(ckr_resume(c, "x.safetensors"), CKR_OK);
		after = state_of(c);
		assert_memory_equal(&before, &after, sizeof(before));
	}
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

/* The caller's own products keep their threads. */
static void
test_threads_of_openblas(void **state)
{
	struct ckr_options opt = { .weights = "", .blas = "openblas" };
	void *dl = dlopen(MODELS "/libfake_openblas.so", RTLD_NOW);
	int (*threads)(void);
	int *in_product;
	void *input;
	ckr_ctx *c;

	(void)state;
	assert_non_null(dl);
	*(void **)&threads = dlsym(dl, "openblas_get_num_threads");
	*(void **)&in_product = dlsym(dl, "fake_threads_in_product");
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	assert_int_equal(threads(), 7);
	assert_int_equal(ckr_input(c, "x", &input), CKR_OK);
	assert_int_equal(ckr_input(c, "target", &input), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_equal(*in_product, 1);
	assert_int_equal(threads(), 7);
	*in_product = 0;
	assert_int_equal(ckr_eval(c, NULL), CKR_OK);
	assert_int_equal(*in_product, 1);
	assert_int_equal(threads(), 7);
	ckr_close(c);
}

/* A processor is not blamed for what a build lacks. */
static void
test_build_without_bf16(void **state)
{
	struct gemm g;
	struct err e;

	(void)state;
	assert_non_null(dlopen(MODELS "/libfake_onednn.so", RTLD_NOW));
	assert_int_equal(gemm_choose(&g, "onednn-bf16", 0, 2, &e),
	                 CKR_EUNSUPPORTED);
	assert_string_equal(e.text, "this build of onednn 3.1.4 has no bf16 "
	                    "matrix products; try: --blas onednn");
	assert_int_equal(gemm_choose(&g, "onednn", 0, 2, &e), CKR_OK);
	assert_null(g.bf16);
}

/* Limit the process to the memory that it has. */
static void
set_memory_limit(bool on)
{
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long pages = 0;
	FILE *f = on ? fopen("/proc/self/statm", "r") : NULL;

	if (f) {
		assert_int_equal(fscanf(f, "%lu", &pages), 1);
		fclose(f);
		r.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE);
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &r), 0);
}

/* Before any other product: without a packing buffer, and with no memory for
 * one, the bits are the same; opening a model fails then. */
static void
test_products_without_memory(void **state)
{
	enum { M = 77, N = 131, K = 700 };
	static float a[M * K], b[K * N], with[M * N], without[M * N];
	struct ckr_options opt = { .weights = "", .blas = "own" };
	int threads = omp_get_max_threads();
	unsigned seed = 5;
	ckr_ctx *c;

	(void)state;
	if (SANITIZED) {
		print_message("a sanitizer's addresses cannot be limited\n");
		skip();
	}
	fill(a, M * K, &seed);
	fill(b, K * N, &seed);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	ckr_close(c);
	omp_set_num_threads(1);
	set_memory_limit(true);
	gemm_own(0, 0, M, N, K, 1, a, K, b, N, 0, without, N);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_ENOMEM);
	assert_non_null(strstr(ckr_error(c), "packing buffers of matrix products"));
	ckr_close(c);
	set_memory_limit(false);
	assert_int_equal(gemm_own_add_buffers(1), 1);
	gemm_own(0, 0, M, N, K, 1, a, K, b, N, 0, with, N);
	gemm_own_remove_buffers(1);
	omp_set_num_threads(threads);
	assert_memory_equal(with, without, sizeof(with));
}

/* With an argument: what must not see the real libraries. */
int
main(int argc, char **argv)
{
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(test_threads_of_openblas),
		cmocka_unit_test(test_build_without_bf16),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products_without_memory),
		cmocka_unit_test(test_philox),
		cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_schedule),
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_convert_range),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_write),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_json_members),
		cmocka_unit_test(test_st_hostile),
		cmocka_unit_test(test_st_write),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_npy),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_bf16_products),
		cmocka_unit_test(test_product_bits),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_unset_inputs),
		cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_hyper_errors),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_save_async),
		cmocka_unit_test(test_resume_errors),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_fails),
		cmocka_unit_test(test_micro),
		cmocka_unit_test(test_meddling),
		cmocka_unit_test(test_runner),
		cmocka_unit_test(test_nan),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_scale_falls),
		cmocka_unit_test(test_scale_again),
		cmocka_unit_test(test_scale_rises),
		cmocka_unit_test(test_scale_ends),
		cmocka_unit_test(test_scale_fixed),
		cmocka_unit_test(test_scale_micro),
		cmocka_unit_test(test_scale_files),
		cmocka_unit_test(test_load_is_whole),
	};
	static const char *const left[] = {
		"t.safetensors", "w.safetensors", "a.txt", "link.txt", "t.npy",
		"bad.so", "r.safetensors", "x.safetensors",
		"plain.safetensors", "scale.safetensors",
	};
	char folder[] = "/tmp/ckr-test-XXXXXX";
	int failed;

	(void)argv;
	if (argc > 1)
		return cmocka_run_group_tests(alone, NULL, NULL);
	if (!mkdtemp(folder) || chdir(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
		unlink(left[i]);
	if (chdir("/") || rmdir(folder))
		return 1;               /* something else was left behind */
	return failed;
}
