/* Declarations that the packer's files share: a part of the problem, with
 * times counted in sections, and its best known packing.
 */
#ifndef PASSES_PLACE_PACK_PART_H
#define PASSES_PLACE_PACK_PART_H

#include "passes/place/pack.h"

struct pack_box {
	int32_t from, to;               /* sections from..to-1 */
	int64_t size;
};

struct pack_part {
	const struct pack_box *box;     /* by from, to, size */
	int32_t n, nsection;
	int64_t bound;                  /* most bytes in one section */
	int64_t target;                 /* no need to be lower than this */
	int goals;                      /* heights to aim at in one round */
	int64_t work;                   /* steps of attempts on the skyline */
	int64_t best;                   /* height of the best packing */
	int64_t *at;                    /* its offsets */
	const struct watch *stop;        /* NULL: nothing ends it */
	Arena *arena;
};

static inline bool
part_done(const struct pack_part *p)
{
	return p->best <= p->target || watch_off(p->stop);
}

/* pack_skyline.c: best fit on the lowest place.  Near-linear. */
void pack_skyline(struct pack_part *);

/* pack_exact.c: is there a packing no higher than `capacity`?  PACK_NONE:
 * proven that there is none; PACK_CUT: the work ran out, or there are more
 * boxes than PACK_EXACT_MAX.  If found, it is the best of the part. */
enum { PACK_EXACT_MAX = 1000 };

enum pack_answer { PACK_FOUND, PACK_NONE, PACK_CUT };

enum pack_answer pack_exact(struct pack_part *, int64_t capacity,
                            int64_t *work);

#endif
