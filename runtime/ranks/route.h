/* How a collective goes between the memories of GPUs: what each copies within
 * its own, and what a library that moves runs of bytes is asked for in between.
 *
 * Everything is counted in bytes from x, y (the collective's operands, without
 * gaps) or scratch.  It follows from tables alone, so that it is worked out
 * once.
 *
 * Knows: nothing of GPUs. */
#ifndef CKR_ROUTE_H
#define CKR_ROUTE_H

#include "runtime/ranks/comm.h"

/* `rows` runs of `width` bytes, so far apart. */
struct move {
	uint64_t from, to, width, rows, from_pitch, to_pitch;
};

struct moves {
	struct move *one;
	uint32_t n, room;
};

/* What is asked for.  Pieces are those of the cut side; rank q * shared owns
 * piece q, which the `shared` - 1 ranks behind it hold too. */
enum route_how {
	ROUTE_OWN,              /* nothing: `unpack` goes from x to y */
	ROUTE_ALL_REDUCE,       /* the sum of all x to all y */
	ROUTE_ALL_GATHER,       /* x of each, one behind the other */
	ROUTE_BROADCAST,        /* x of piece q's owner to span[q] of y */
	ROUTE_REDUCE_SCATTER,   /* the sum of piece r to rank r */
	ROUTE_REDUCE,           /* the sum of span[q] to piece q's owner, and
	                         * from there to those that share it */
	ROUTE_EXCHANGE          /* scratch: out[r] to rank r, in[r] from it */
};

struct span {
	uint64_t at, n;
};

struct route {
	enum route_how how;
	uint32_t npiece, shared;
	uint64_t each;                  /* bytes of a piece */
	bool into, out_of;              /* x goes through scratch; y does */
	bool clear_y, clear_scratch;    /* zeros, before all else */
	struct moves pack, unpack;      /* x to scratch; scratch to y */
	uint64_t scratch;
	struct span tail;               /* of y: zeros in the end */
	struct span *span;              /* by piece; NULL: no need of them */
	struct span *out, *in;          /* by rank, of an exchange */
};

/* For rank `rank` of `ranks`.  False: no memory.  Freed in either case. */
bool route_find(struct route *, const struct ckr_comm *, uint32_t ranks,
                uint32_t rank, const struct ckr_tensor *x,
                const struct ckr_tensor *y);
void route_free(struct route *);

#endif
