/* Stretches of tensors beside lists of their elements, for all small ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/file/stretch.h"

enum { N = 13 };                        /* elements of the tensor */

/* Bit i: element i. */
static uint32_t
elements(const struct stretch *s)
{
	uint32_t bits = 0;

	for (uint64_t i = 0; i < s->count; i++)
		for (uint64_t k = 0; k < s->length; k++)
			bits |= 1u << (s->first + i * s->stride + k);
	return bits;
}

/* All that lie within N elements; their number. */
static size_t
list_all(struct stretch *v)
{
	struct stretch s;
	size_t n = 0;

	for (s.first = 0; s.first < N; s.first++)
		for (s.length = 1; s.length <= N - s.first; s.length++)
			for (s.stride = s.length; s.stride <= N; s.stride++)
				for (s.count = 1; s.count <= N
				     && stretch_end(&s) <= N; s.count++)
					v[n++] = s;
	return n;
}

static void
test_elements(void **state)
{
	static struct stretch v[4 * N * N * N];
	size_t n = list_all(v);

	(void)state;
	assert_true(n > 500);
	for (size_t i = 0; i < n; i++) {
		uint32_t bits = elements(&v[i]);

		assert_int_equal(bits >> stretch_end(&v[i]), 0);
		assert_true(bits >> (stretch_end(&v[i]) - 1) & 1);
		for (uint64_t at = 0; at <= N; at++) {
			uint64_t n_at = stretch_at(&v[i], at);

			assert_int_equal(stretch_before(&v[i], at),
			                 __builtin_popcount(bits
			                                    & ((1u << at) - 1)));
			assert_int_equal(n_at > 0, bits >> at & 1);
			for (uint64_t k = 0; k < n_at; k++)
				assert_true(bits >> (at + k) & 1);
		}
	}
}

static void
test_meets(void **state)
{
	static struct stretch v[4 * N * N * N];
	size_t n = list_all(v), met = 0, apart = 0, unknown = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			uint32_t both = elements(&v[i]) & elements(&v[k]);
			uint64_t at = N;
			bool odd = false;

			if (stretch_meets(&v[i], &v[k], &at, &odd)) {
				met++;
				assert_true(both >> at & 1);
			} else if (odd) {
				unknown++;
				assert_true(v[i].count > 1 && v[k].count > 1
				            && v[i].stride != v[k].stride);
			} else {
				apart++;
				assert_int_equal(both, 0);
			}
		}
	assert_true(met > 1000 && apart > 1000 && unknown > 1000);
}

static bool
read_text(const char *text, struct array *a, struct stretch *s, int n)
{
	bool ok = stretch_read_shape(&text, a);

	for (int i = 0; i < n && ok; i++)
		ok = stretch_read(&text, a->nelem, &s[i]);
	return ok && !*text;
}

static void
test_text(void **state)
{
	static const char *const bad[] = {
		"", "8", "8;0+1", "8; ", "8; 0", "8; 0+", "8; 0+0", "8; 8+1",
		"8; 7+2", "8; 0+2/1*2", "8; 0+1/4*3", "8; 0+1/4*0", "8; 0+1/4",
		"8; 0+1/4*", "8; 0+1 ", "8; -1+1", "8; +1+1", "-8; 0+1",
		"8,; 0+1", ",8; 0+1", "1,1,1,1,1,1,1,1,8; 0+1",
		"8; 0+1/9223372036854775807*3", "8; 0+18446744073709551616",
		"4611686018427387904,4; 0+1", "8; 0+1/2305843009213693951*9",
		"1000000000,1000000000,1000000000; 0+1",
	};
	struct array a = { .dtype = CKR_F32 }, b = a;
	struct stretch s[2] = { { 0, 2, 4, 2 }, { 3, 1, 1, 1 } }, t[2];
	const int64_t dim[] = { 2, 4 };
	char *text = stretch_text(2, dim, s, 2);

	(void)state;
	assert_string_equal(text, "2,4; 0+2/4*2, 3+1");
	assert_true(read_text(text, &a, t, 2));
	assert_int_equal(a.rank, 2);
	assert_int_equal(a.nelem, 8);
	assert_int_equal(elements(&t[0]), 0x33);
	assert_int_equal(elements(&t[1]), 0x08);
	free(text);
	text = stretch_text(0, dim, s, 0);
	assert_string_equal(text, ";");
	assert_true(read_text(text, &b, t, 0));
	assert_int_equal(b.nelem, 1);
	free(text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (read_text(bad[i], &b, t, 1))
			fail_msg("'%s' is read", bad[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_meets),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
