/* Packing buffers with known lifetimes into one block of memory.
 *
 * Knows nothing of graphs.  Sizes are taken as they are: give multiples of
 * the alignment and offsets will be multiples of it.  The sizes must add up
 * to at most INT64_MAX / 4; times may be anything.  What never lives lies at 0
 * and meets nothing, but its end counts as height.
 */
#ifndef PASSES_PLACE_PACK_H
#define PASSES_PLACE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/base/arena.h"
#include "ir/base/watch.h"

/* Above all heights, with room for what a caller adds. */
#define PACK_NO_HEIGHT (INT64_MAX / 2)

struct buffer {
	int64_t lower, upper;           /* alive at times lower..upper-1 */
	int64_t size;
	int64_t offset;                 /* result: bytes from the block's
	                                 * begin */
};

struct pack_limit {
	int64_t work;                   /* most elementary steps of the exact
	                                 * search */
	int64_t enough;                 /* height that need not be beaten */
	int64_t most;                   /* of which a bound above is enough: the
	                                 * height is the bound then, offsets
	                                 * mean nothing; 0: none */
	const struct watch *stop;       /* when interrupted, offsets mean
	                                 * nothing and the height may be
	                                 * PACK_NO_HEIGHT; NULL: never */
};

struct pack_result {
	int64_t height;                 /* largest offset + size */
	int64_t bound;                  /* largest sum of sizes alive at one
	                                 * time */
	int64_t least;                  /* no lower height exists: proved */
	bool optimal;                   /* height == least */
};

/* Largest sum of sizes alive at one time, below which nothing fits. */
int64_t pack_bound(const struct buffer *, size_t n, Arena *scratch);
/* Give every buffer an offset, as low as the work allows.  The height depends
 * only on the set of buffers, not on their order. */
struct pack_result pack_within(struct buffer *, size_t n,
                               const struct pack_limit *, Arena *scratch);
/* pack_slots.c: several micro-batches are alive at the same step.  What lives
 * at `boundary` and behind the time after it lies in a slot, of which there are
 * so many, one after the other from 0 on; offsets are those in the first one.
 * Slots of others follow.  The rest lies within the first slot, too, where its
 * bytes are free, or behind the last one of all.
 * With a second boundary, from which on micro-batches run later, there are
 * three pools of slots, one behind the other: what lives across the first
 * boundary alone, across both, and across the second alone.  A pool with one
 * slot has no place of its own: no other micro-batch runs while one has it. */
enum pack_pool { POOL_FIRST, POOL_BOTH, POOL_SECOND, POOLS, POOL_NONE = POOLS };

struct pack_slots {
	int64_t boundary;
	int64_t n;                      /* of POOL_FIRST; 0, 1: no slots, unless
	                                 * others have some */
	int64_t second;
	int64_t nboth, nsecond;         /* 0: there is no second boundary */
	int64_t others;                 /* bytes of slots with other contents,
	                                 * behind those of POOL_FIRST */
};

static inline int64_t
pack_slots_of(const struct pack_slots *s, enum pack_pool pool)
{
	int64_t n = pool == POOL_FIRST ? s->n : pool == POOL_BOTH ? s->nboth
		: s->nsecond;

	return n > 1 ? n : 1;
}

/* Whether other micro-batches keep something while one runs. */
static inline bool
pack_has_slots(const struct pack_slots *s, enum pack_pool pool)
{
	return pack_slots_of(s, pool) > 1 || (pool == POOL_FIRST && s->others);
}

/* The pool of what lives from step `first` to step `last`. */
static inline enum pack_pool
pack_pool_of(const struct pack_slots *s, int64_t first, int64_t last)
{
	bool one = first <= s->boundary && last > s->boundary;
	bool two = s->nboth && first <= s->second && last > s->second;

	return one && two ? POOL_BOTH : one ? POOL_FIRST
		: two ? POOL_SECOND : POOL_NONE;
}

/* Bytes of a slot of each pool. */
void pack_slot_bytes(const struct buffer *, size_t n, struct pack_slots,
                     int64_t bytes[POOLS]);
/* Bytes of all slots but one of each pool, and of those of others. */
int64_t pack_other_slots(const struct pack_slots *,
                         const int64_t bytes[POOLS]);
/* Largest sum of sizes alive at one time, with all slots. */
int64_t pack_slots_bound(const struct buffer *, size_t n, struct pack_slots,
                         Arena *scratch);
/* The end of the last slot, or of what lies behind it. */
int64_t pack_with_slots(struct buffer *, size_t n, struct pack_slots,
                        const struct pack_limit *, Arena *scratch);
/* The same as pack_within without further limits. */
struct pack_result pack_buffers(struct buffer *, size_t n, int64_t work,
                                Arena *scratch);

#endif
