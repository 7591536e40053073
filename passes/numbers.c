/* A hash table with open addresses. */
#include "passes/numbers.h"

struct numbers
numbers_new(size_t most, Arena *arena)
{
	struct numbers t = { 0 };
	size_t size = 64;

	while (size < 2 * most)
		size *= 2;
	t.key = arena_array(arena, size, sizeof *t.key);
	t.id = arena_array(arena, size, sizeof *t.id);
	t.mask = size - 1;
	return t;
}

int32_t
numbers_of(struct numbers *t, uint64_t key)
{
	size_t at = (size_t)mix64(key, 7) & t->mask;

	while (t->id[at] && t->key[at] != key)
		at = (at + 1) & t->mask;
	if (!t->id[at]) {
		t->key[at] = key;
		t->id[at] = ++t->n;
	}
	return t->id[at] - 1;
}
