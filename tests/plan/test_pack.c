/* The packer against brute force, its bounds, and itself in another order. */
#include "tests/plan/plan_test.h"
#include "passes/place/pack.h"

#include <string.h>

enum { MAX = 7 };

static bool
overlap(const struct buffer *a, const struct buffer *b)
{
	return a->size && b->size && a->lower < a->upper && b->lower < b->upper
		&& a->lower < b->upper && b->lower < a->upper
		&& a->offset < b->offset + b->size
		&& b->offset < a->offset + a->size;
}

static void
check(const struct buffer *b, size_t n, struct pack_result r)
{
	int64_t height = 0;

	for (size_t i = 0; i < n; i++) {
		assert_true(b[i].offset >= 0);
		for (size_t j = 0; j < i; j++)
			assert_false(overlap(&b[i], &b[j]));
		if (b[i].offset + b[i].size > height)
			height = b[i].offset + b[i].size;
	}
	assert_true(r.height == height);
	assert_true(r.height >= r.bound);
	assert_true(r.least >= r.bound && r.least <= r.height);
	assert_true(r.optimal == (r.height == r.least));
}

/* Least height over all orders of first fit from the bottom: every packing
 * pushed down is one of them. */
static int64_t
brute(struct buffer *b, size_t n, uint32_t placed, int64_t height,
      int64_t best)
{
	if (height >= best)
		return best;
	if (placed == (1u << n) - 1)
		return height;
	for (size_t i = 0; i < n; i++) {
		int64_t at = 0, h;

		if (placed >> i & 1)
			continue;
		for (size_t j = 0; j < n; j++)
			if (placed >> j & 1 && b[i].lower < b[j].upper
			    && b[j].lower < b[i].upper
			    && b[j].offset + b[j].size > at)
				at = b[j].offset + b[j].size;
		b[i].offset = at;
		h = brute(b, n, placed | 1u << i, at + b[i].size > height
		          ? at + b[i].size : height, best);
		best = h < best ? h : best;
	}
	return best;
}

static size_t
random_buffers(uint64_t *seed, struct buffer *b, size_t max)
{
	size_t n = 1 + gen_next(seed) % max;

	for (size_t i = 0; i < n; i++) {
		b[i].lower = (int64_t)(gen_next(seed) % 12);
		b[i].upper = b[i].lower + 1 + (int64_t)(gen_next(seed) % 6);
		b[i].size = 64 * (1 + (int64_t)(gen_next(seed) % 6));
		b[i].offset = 0;
	}
	return n;
}

static void
equals_brute_force(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int k = 0; k < 1500; k++) {
		struct buffer b[MAX], c[MAX];
		size_t n = random_buffers(&seed, b, MAX);
		Arena *a = arena_new();
		struct pack_result r;

		memcpy(c, b, sizeof b);
		r = pack_buffers(b, n, 1000000, a);
		check(b, n, r);
		assert_true(r.optimal);
		assert_true(r.height == brute(c, n, 0, 0, INT64_MAX));
		arena_free(a);
	}
}

static void
holds_rules(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (int k = 0; k < 60; k++) {
		struct buffer b[150];
		size_t n = random_buffers(&seed, b, 150);
		Arena *a = arena_new();

		if (k % 4 == 0)
			b[0].size = 0;
		if (k % 4 == 1)
			b[0].upper = b[0].lower;
		check(b, n, pack_buffers(b, n, 100000, a));
		arena_free(a);
	}
}

static void
ignores_order(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int k = 0; k < 40; k++) {
		struct buffer b[60], c[60];
		size_t n = random_buffers(&seed, b, 60);
		Arena *a = arena_new();

		for (size_t i = 0; i < n; i++)
			c[i] = b[n - 1 - i];
		assert_true(pack_buffers(b, n, 200000, a).height
		            == pack_buffers(c, n, 200000, a).height);
		arena_free(a);
	}
}

/* A larger range of times than 64 bits of difference hold. */
static void
far_times(void **state)
{
	struct buffer b[3] = {
		{ INT64_MIN, INT64_MAX, 64, 0 }, { INT64_MIN, 0, 128, 0 },
		{ 0, INT64_MAX, 128, 0 },
	};
	Arena *a = arena_new();
	struct pack_result r = pack_buffers(b, 3, 1000, a);

	(void)state;
	check(b, 3, r);
	assert_int_equal(r.height, 192);
	arena_free(a);
}

/* Lives that are nested, or that begin where others end, lie without waste,
 * however many there are. */
static void
large_nested(void **state)
{
	enum { N = 20000 };
	Arena *a = arena_new();
	struct buffer *b = arena_array(a, 2 * N, sizeof *b);
	struct pack_result r;
	uint64_t seed = 4;

	(void)state;
	for (int i = 0; i < N; i++) {
		int64_t size = 64 * (1 + (int64_t)(gen_next(&seed) % 99));

		b[i] = (struct buffer){ i, 2 * N - i, size, 0 };
		b[N + i] = (struct buffer){ 2 * i, 2 * i + 2, size, 0 };
	}
	r = pack_buffers(b, 2 * N, 0, a);
	assert_true(r.optimal);
	assert_true(r.height == r.bound);
	assert_true(r.bound == pack_bound(b, 2 * N, a));
	arena_free(a);
}

/* Too many for exact search: it ends all the same. */
static void
large_random(void **state)
{
	enum { N = 3000 };
	Arena *a = arena_new();
	struct buffer *b = arena_array(a, N, sizeof *b);
	uint64_t seed = 6;

	(void)state;
	for (int i = 0; i < N; i++) {
		b[i].lower = (int64_t)(gen_next(&seed) % 200);
		b[i].upper = b[i].lower + 1 + (int64_t)(gen_next(&seed) % 90);
		b[i].size = 1 + (int64_t)(gen_next(&seed) % 9999);
	}
	check(b, N, pack_buffers(b, N, INT64_MAX / 8, a));
	arena_free(a);
}

/* `enough` ends the search; what is proven is never more than reached. */
static void
respects_limits(void **state)
{
	static volatile sig_atomic_t stop = 1;
	const struct watch watch = { .stop = &stop };
	uint64_t seed = 5;

	(void)state;
	for (int k = 0; k < 200; k++) {
		struct buffer b[12], c[12];
		size_t n = random_buffers(&seed, b, 12);
		struct pack_limit limit = { .work = 1000000 };
		struct pack_result best, some;
		Arena *a = arena_new();

		memcpy(c, b, sizeof b);
		best = pack_within(b, n, &limit, a);
		limit.enough = best.height - 1;
		some = pack_within(c, n, &limit, a);
		check(c, n, some);
		assert_true(some.height == best.height);
		assert_true(some.least > limit.enough);
		limit.enough = 2 * best.height;
		some = pack_within(c, n, &limit, a);
		check(c, n, some);
		assert_true(some.height <= limit.enough);
		limit = (struct pack_limit){ .work = 1000000, .stop = &watch };
		some = pack_within(c, n, &limit, a);
		assert_true(some.least <= best.height);
		assert_true(some.height <= PACK_NO_HEIGHT);
		arena_free(a);
	}
}

static void
empty(void **state)
{
	Arena *a = arena_new();
	struct buffer b[2] = { { 0, 1, 0, 0 }, { 3, 3, 64, 7 } };
	struct pack_result r;

	(void)state;
	assert_true(pack_buffers(NULL, 0, 1000, a).height == 0);
	assert_true(pack_buffers(b, 1, 1000, a).height == 0);
	r = pack_buffers(b, 2, 1000, a);
	check(b, 2, r);
	assert_true(r.bound == 0 && r.height == 64 && r.optimal);
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_brute_force),
		cmocka_unit_test(holds_rules),
		cmocka_unit_test(ignores_order),
		cmocka_unit_test(far_times),
		cmocka_unit_test(large_nested),
		cmocka_unit_test(large_random),
		cmocka_unit_test(respects_limits),
		cmocka_unit_test(empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
