/* The copy schedule of a collective between GPUs: the copies of each GPU within
 * its own memory, and the NCCL call between them.
 *
 * Offsets are bytes from x, y (the collective's operands, without gaps) or
 * workspace.  The schedule depends on tables alone, so it is built once.  It
 * calls no GPU.
 */
#ifndef RUNTIME_RANKS_COPY_SCHEDULE_H
#define RUNTIME_RANKS_COPY_SCHEDULE_H

#include "runtime/ranks/comm.h"

/* `rows` runs of `width` bytes; pitches are the bytes from run to run. */
struct strided_copy {
	uint64_t from, to, width, rows, from_pitch, to_pitch;
};

struct copy_list {
	struct strided_copy *one;
	uint32_t n;
};

/* The call of NCCL.  Rank q * replication owns shard q; the replication - 1
 * ranks after it hold the shard too. */
enum schedule_kind {
	SCHED_LOCAL_SHARD,      /* none: `unpack` copies from x to y */
	SCHED_ALL_REDUCE,       /* the sum of all x to all y */
	SCHED_ALL_GATHER,       /* each rank's x, one after the other */
	SCHED_BROADCAST,        /* x of shard q's owner to span[q] of y */
	SCHED_REDUCE_SCATTER,   /* the sum of shard r to rank r */
	SCHED_REDUCE,           /* the sum of span[q] to shard q's owner, and
	                         * from there to the other holders */
	SCHED_EXCHANGE          /* workspace: out[r] to rank r, in[r] from it */
};

struct byte_range {
	uint64_t at, n;
};

struct copy_schedule {
	enum schedule_kind kind;
	uint32_t nshard, replication;
	uint64_t shard_bytes;
	bool packs, unpacks;            /* x is copied to workspace first; y is
	                                 * copied from it last */
	bool clear_y, clear_workspace;  /* filled with zeros first */
	struct copy_list pack, unpack;  /* x to workspace; workspace to y */
	uint64_t workspace;             /* bytes */
	struct byte_range tail;         /* end of y that is filled with zeros */
	struct byte_range *span;        /* [nshard]: place of a shard; NULL: not
	                                 * used */
	struct byte_range *out, *in;    /* [ranks], SCHED_EXCHANGE: bytes for a
	                                 * rank, bytes from it */
};

/* Build the schedule of rank `rank` of `ranks`.  False: no memory.  Call
 * schedule_free in either case. */
bool schedule_build(struct copy_schedule *, const struct ckr_comm *,
                    uint32_t ranks, uint32_t rank, const struct ckr_tensor *x,
                    const struct ckr_tensor *y);
void schedule_free(struct copy_schedule *);

#endif
