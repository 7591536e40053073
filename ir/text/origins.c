/* A table of origins by name and op: what reading a graph and printing it
 * share.
 *
 * in      origins, some of them equal
 * out     the first of all that are equal
 */
#include "ir/text/text.h"
#include "runtime/support/hash.h"

#include <string.h>

static uint64_t
hash_origin(const struct origin *o)
{
	return hash_str(hash_str(HASH_START, o->name), o->op);
}

uint32_t
origin_find(const struct origin_table *t, const struct origin *o)
{
	uint32_t id;

	for (size_t at = 0; (id = table_next(&t->at, hash_origin(o), &at));) {
		const struct origin *x = &t->g->origin[id];

		if (!strcmp(x->name, o->name) && !strcmp(x->op, o->op))
			break;
	}
	return id;
}

uint32_t
origin_add(struct origin_table *t, uint32_t id)
{
	table_add(&t->at, t->arena, hash_origin(&t->g->origin[id]), id);
	return id;
}
