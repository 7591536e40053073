/* The copy schedule of a collective between GPUs: the copies of each GPU within
 * its own memory, and the NCCL call between them.
 *
 * Everything is counted in bytes from x, y (the collective's operands, without
 * gaps) or scratch.  It follows from tables alone, so that it is worked out
 * once.
 *
 * Knows: nothing of GPUs. */
#ifndef RUNTIME_RANKS_COPY_SCHEDULE_H
#define RUNTIME_RANKS_COPY_SCHEDULE_H

#include "runtime/ranks/comm.h"

/* `rows` runs of `width` bytes, so far apart. */
struct strided_copy {
	uint64_t from, to, width, rows, from_pitch, to_pitch;
};

struct copy_list {
	struct strided_copy *one;
	uint32_t n, room;
};

/* The call of NCCL.  Pieces are those of the cut side; rank q * shared owns
 * piece q, which the `shared` - 1 ranks behind it hold too. */
enum schedule_kind {
	SCHED_OWN,              /* nothing: `unpack` goes from x to y */
	SCHED_ALL_REDUCE,       /* the sum of all x to all y */
	SCHED_ALL_GATHER,       /* x of each, one behind the other */
	SCHED_BROADCAST,        /* x of piece q's owner to span[q] of y */
	SCHED_REDUCE_SCATTER,   /* the sum of piece r to rank r */
	SCHED_REDUCE,           /* the sum of span[q] to piece q's owner, and
	                         * from there to those that share it */
	SCHED_EXCHANGE          /* scratch: out[r] to rank r, in[r] from it */
};

struct byte_range {
	uint64_t at, n;
};

struct copy_schedule {
	enum schedule_kind kind;
	uint32_t npiece, shared;
	uint64_t piece_bytes;
	bool packs, unpacks;            /* x goes through scratch; y does */
	bool clear_y, clear_scratch;    /* zeros, before all else */
	struct copy_list pack, unpack;  /* x to scratch; scratch to y */
	uint64_t scratch;
	struct byte_range tail;         /* of y: zeros in the end */
	struct byte_range *span;        /* by piece; NULL: no need of them */
	struct byte_range *out, *in;    /* by rank, of an exchange */
};

/* For rank `rank` of `ranks`.  False: no memory.  Freed in either case. */
bool schedule_build(struct copy_schedule *, const struct ckr_comm *,
                    uint32_t ranks, uint32_t rank, const struct ckr_tensor *x,
                    const struct ckr_tensor *y);
void schedule_free(struct copy_schedule *);

#endif
