#include "tests/unit/unit.h"

#include "ir/base/arena.h"

#include <stdint.h>
#include <stdlib.h>

/* Bytes that calloc gave: the linker leads the arena's calls here. */
static size_t taken;
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	taken += n * size;
	return __real_calloc(n, size);
}

/* Bytes taken for n pieces of `size` bytes each. */
static size_t
taken_for(int n, size_t size)
{
	Arena *a = arena_new();
	size_t before = taken;

	for (int i = 0; i < n; i++) {
		char *p = arena_alloc(a, size);

		assert_int_equal((uintptr_t)p % 16, 0);
		p[0] = p[size - 1] = 1;
	}
	before = taken - before;
	arena_free(a);
	return before;
}

/* Whatever the size of the pieces, most of what is taken is given out. */
static void
wastes_little(void **state)
{
	(void)state;
	for (size_t size = 1 << 10; size <= 256 << 10; size += 5 << 10) {
		size_t bytes = 100 * size, got = taken_for(100, size);

		if (got < bytes || got > bytes + bytes / 3 + (64 << 10))
			fail_msg("%zu bytes for 100 pieces of %zu", got, size);
	}
}

/* The rest of a block stays in use when a large piece comes between. */
static void
rest_is_used(void **state)
{
	Arena *a = arena_new();
	size_t before;

	(void)state;
	arena_alloc(a, 1000);
	before = taken;
	arena_alloc(a, 40 << 10);       /* fits */
	assert_int_equal(taken, before);
	arena_alloc(a, 30 << 10);       /* does not */
	assert_in_range(taken - before, 30 << 10, (30 << 10) + 64);
	before = taken;
	arena_alloc(a, 20 << 10);
	assert_int_equal(taken, before);
	arena_free(a);
}

int
test_arena(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wastes_little),
		cmocka_unit_test(rest_is_used),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
