/* Open addressing; the table doubles when it is half full. */
#include "ir/base/table.h"

static struct table_slot *
slot_at(const struct table *t, uint64_t hash, size_t step)
{
	return &t->slot[((size_t)(hash ^ hash >> 32) + step) & (t->size - 1)];
}

uint32_t
table_next(const struct table *t, uint64_t hash, size_t *at)
{
	const struct table_slot *s;

	if (!t->size)
		return 0;
	do
		s = slot_at(t, hash, (*at)++);
	while (s->id && s->hash != hash);
	return s->id;
}

static void
put_slot(struct table *t, struct table_slot new)
{
	size_t step = 0;

	while (slot_at(t, new.hash, step)->id)
		step++;
	*slot_at(t, new.hash, step) = new;
}

void
table_add(struct table *t, Arena *a, uint64_t hash, uint32_t id)
{
	struct table old = *t;

	if (2 * (t->used + 1) > t->size) {
		t->size = old.size ? 2 * old.size : 16;
		t->slot = arena_array(a, t->size, sizeof *t->slot);
		for (size_t i = 0; i < old.size; i++)
			if (old.slot[i].id)
				put_slot(t, old.slot[i]);
	}
	put_slot(t, (struct table_slot){ hash, id });
	t->used++;
}
