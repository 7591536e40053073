/* A hash table of numbers from 1 on that stand for things kept elsewhere, such
 * as values by name.  It knows hashes alone: the caller compares things.
 *
 *	uint32_t id;
 *
 *	for (size_t at = 0; (id = table_next(&t, hash, &at));)
 *		if (... thing `id` is the one looked for ...)
 *			return id;
 *	table_add(&t, arena, hash, new_id);
 */
#ifndef IR_BASE_TABLE_H
#define IR_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "ir/base/arena.h"

struct table_slot {
	uint64_t hash;
	uint32_t id;                    /* 0: free */
};

/* Empty if zero. */
struct table {
	struct table_slot *slot;
	size_t size, used;              /* 0 or a power of 2; at most half */
};

/* The next number with this hash, from *at = 0 on; 0: no more. */
uint32_t table_next(const struct table *, uint64_t hash, size_t *at);
void table_add(struct table *, Arena *, uint64_t hash, uint32_t id);

#endif
