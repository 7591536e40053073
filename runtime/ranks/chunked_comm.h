/* A collective between ranks in separate processes, chunk by chunk. */
#ifndef RUNTIME_RANKS_CHUNKED_COMM_H
#define RUNTIME_RANKS_CHUNKED_COMM_H

#include "runtime/ranks/comm.h"
#include "runtime/team/process_group.h"

/* [ranks] each: bytes of a rank, and their offset in the buffer. */
struct counts {
	int *count, *at;
};

/* CKR_ALL_TO_ALL, [ranks] each: elements so far that go to a rank and that come
 * from it, in the order of the whole tensor. */
struct pairs {
	uint64_t *out, *in;
};

/* A gather or a sum of shards, without replication, that goes in one message
 * with others of its kind. */
struct joined_comm {
	const struct ckr_comm *what;
	const struct ckr_tensor *tx;
	const char *x;
	char *y;
	uint64_t at, nbytes;            /* a shard's place in the message */
	struct joined_comm *next;
};

/* A collective as one of its ranks sees it. */
struct chunked_comm {
	struct process_group *team;
	enum comm_group group;
	uint32_t rank, ranks;           /* this rank of the group; all ranks */
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;       /* the operands */
	const char *x;                  /* their elements, without gaps */
	char *y;
	const struct joined_comm *joined;       /* instead of those; NULL: they
	                                         * alone */
	int threads;
	struct pg_task task;
	/* buffers of chunks, PG_BUFFER bytes each, used by no other collective
	 * until this one ends */
	char *out, *in;
	/* progress, in elements of a rank: `total` in all, moved in chunks of
	 * at most `chunk`; the current chunk is at .. at + n - 1 */
	uint64_t total, chunk, at, n;
	uint64_t run;                   /* runs before this one are done */
	uint64_t arrived;               /* transfers that have arrived */
	bool in_flight;                 /* a transfer has not arrived */
	bool whole, summed;             /* all_reduce: every rank gets all
	                                 * operands; this rank's share of the
	                                 * chunk is summed */
	struct sharding from, to;       /* of x; all_to_all: of y */
	void *state;                    /* chunked_state_bytes for these: */
	struct counts sent, received;
	struct pairs seen;
};

/* Bytes of chunked_comm.state in a group of so many ranks. */
size_t chunked_state_bytes(uint32_t ranks);
/* Whether p, with what and tx set, fits into a message of `ranks` ranks behind
 * `last`, NULL: as its first part.  If so, it is appended. */
bool chunked_join(struct joined_comm *p, struct joined_comm *last,
                  uint32_t ranks);
/* Prepare the first chunk; moves nothing.  The result has the bits that
 * comm_run computes. */
void chunked_begin(struct chunked_comm *);
/* Advance the collective without waiting. */
ckr_status chunked_poll(struct chunked_comm *, bool *done, struct err *);
/* y = the sum over the group of the ranks' x, n elements, which are at most
 * PG_BUFFER / ranks bytes.  CKR_ERANK as pg_allgather. */
ckr_status chunked_sum(const struct chunked_comm *, uint8_t dtype,
                       const void *x, uint64_t n, void *y, struct err *);

#endif
