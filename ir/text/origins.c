/* A hash table of origins by name and op: what reading a graph and printing
 * it share.
 *
 * in      origins, some of them equal
 * out     one slot for all that are equal
 */
#include "ir/base/hash.h"
#include "ir/text/text.h"

#include <string.h>

static uint32_t *
find_origin_slot(const struct origin_table *t, const struct origin *o)
{
	const struct origin *all = t->g->origin;
	uint64_t h = hash_str(hash_str(HASH_START, o->name), o->op);
	uint32_t i = (uint32_t)(h ^ h >> 32) & (t->size - 1);

	while (t->slot[i] && (strcmp(all[t->slot[i]].name, o->name) != 0
	                      || strcmp(all[t->slot[i]].op, o->op) != 0))
		i = (i + 1) & (t->size - 1);
	return &t->slot[i];
}

uint32_t *
origin_slot(struct origin_table *t, const struct origin *o)
{
	uint32_t *slot;

	if (2 * (uint64_t)t->used >= t->size) {
		struct origin_table old = *t;

		t->size = old.size ? 2 * old.size : 256;
		t->slot = arena_array(t->arena, t->size, sizeof *t->slot);
		for (uint32_t i = 0; i < old.size; i++)
			if (old.slot[i])
				*find_origin_slot(t, &t->g->origin[
					old.slot[i]]) = old.slot[i];
	}
	slot = find_origin_slot(t, o);
	t->used += !*slot;
	return slot;
}
