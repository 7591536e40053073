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
	return (struct intern_table){
		.entry = arena_array(arena, most + 1,
		                     sizeof(struct intern_entry)),
		.hash = hash_words, .arena = arena
	};
}

int32_t
intern_words(struct intern_table *t, const uint64_t *word, size_t n)
{
	uint64_t hash = t->hash(word, n);
	uint32_t id;

	for (size_t at = 0; (id = table_next(&t->at, hash, &at));) {
		const struct intern_entry *e = &t->entry[id - 1];

		if (e->n == n && !memcmp(e->word, word, n * sizeof *word))
			return (int32_t)id - 1;
	}
	t->entry[t->n] = (struct intern_entry){
		arena_copy(t->arena, word, n * sizeof *word), n
	};
	table_add(&t->at, t->arena, hash, (uint32_t)t->n + 1);
	return t->n++;
}
