/* A hash table with open addresses. */
#include "passes/remat_model/intern.h"

#include <string.h>

static uint64_t
hash_words(const uint64_t *word, size_t n)
{
	uint64_t h = mix64(7, n);

	for (size_t i = 0; i < n; i++)
		h = mix64(h, word[i]);
	return h;
}

struct intern_table
intern_new(size_t most, Arena *arena)
{
	struct intern_table t = { .hash = hash_words, .arena = arena };
	size_t size = 64;

	while (size < 2 * most)
		size *= 2;
	t.at = arena_array(arena, size, sizeof *t.at);
	t.mask = size - 1;
	return t;
}

int32_t
intern_words(struct intern_table *t, const uint64_t *word, size_t n)
{
	size_t at = (size_t)t->hash(word, n) & t->mask;
	struct intern_entry *e = &t->at[at];

	while (e->id && (e->n != n || memcmp(e->word, word, n * sizeof *word)))
		e = &t->at[at = (at + 1) & t->mask];
	if (!e->id) {
		e->word = arena_copy(t->arena, word, n * sizeof *word);
		e->n = n;
		e->id = ++t->n;
	}
	return e->id - 1;
}
