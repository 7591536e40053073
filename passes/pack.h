/* Packing buffers with known lifetimes into one block of memory.
 *
 * Knows nothing of graphs.  Sizes are taken as they are: give multiples of
 * the alignment and offsets will be multiples of it.
 */
#ifndef PASSES_PACK_H
#define PASSES_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/arena.h"

struct buffer {
	int64_t lower, upper;           /* alive at times lower..upper-1 */
	int64_t size;
	int64_t offset;                 /* result */
};

struct pack_result {
	int64_t height;                 /* largest offset + size */
	int64_t bound;                  /* largest sum alive at one time */
	bool optimal;                   /* proven: no lower height exists */
};

/* Largest sum of sizes alive at one time, below which nothing fits. */
int64_t pack_bound(const struct buffer *, size_t n, Arena *scratch);
/* Give every buffer an offset.  Greedy orders and repair first; if they leave
 * a gap to the bound, an exact search for at most `work` elementary steps.
 * The height depends only on the set of buffers, not on their order. */
struct pack_result pack(struct buffer *, size_t n, int64_t work,
                        Arena *scratch);

enum pack_answer { PACK_FOUND, PACK_NONE, PACK_CUT };

/* Offsets with height <= capacity by exact search; PACK_NONE: there are none,
 * PACK_CUT: the work ran out (offsets are then untouched). */
enum pack_answer pack_exact(struct buffer *, size_t n, int64_t capacity,
                            int64_t work, Arena *scratch);

#endif
