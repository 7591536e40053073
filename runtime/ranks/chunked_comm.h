/* Collectives between ranks in separate processes, chunk by chunk. */
#ifndef RUNTIME_RANKS_CHUNKED_COMM_H
#define RUNTIME_RANKS_CHUNKED_COMM_H

#include "runtime/ranks/comm.h"
#include "runtime/team/process_group.h"

/* Bytes of all ranks, and where: one behind the other, or as they come. */
struct counts {
	int *count, *at;
};

/* Of an exchange of pieces: elements seen so far that go to and come from each
 * rank, in the order of the whole. */
struct pairs {
	uint64_t *out, *in;
};

/* A collective as one of its ranks takes part.  x, y: its operands, without
 * gaps. */
struct chunked_comm {
	struct process_group *team;
	enum link_group group;
	uint32_t rank, ranks;           /* of the group */
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	const char *x;
	char *y;
	int threads;
	struct pg_task task;
	/* buffers of its chunks, TEAM_ROOM bytes each; no one else's until it
	 * has ended */
	char *out, *in;
	/* how far it is, in elements of a rank's own: of `total`, `chunk` at a
	 * time, those at .. at + n - 1 */
	uint64_t total, chunk, at, n;
	uint64_t run;                   /* of pieces: none before it is left */
	uint64_t arrived;               /* transfers that have arrived */
	bool in_flight;                 /* one has not */
	bool whole, summed;             /* all_reduce: all take of all; a share
	                                 * of the chunk has been added up */
	struct pieces from, to;
	void *state;                    /* of chunked_state_bytes, for these */
	struct counts sent, received;
	struct pairs seen;
};

/* Bytes that a group of so many ranks keeps count with. */
size_t chunked_state_bytes(uint32_t ranks);
/* Before anything moves.  The bits are those of comm_run. */
void chunked_begin(struct chunked_comm *);
/* Advance it without waiting. */
ckr_status chunked_poll(struct chunked_comm *, bool *done, struct err *);
/* The whole of it, through the team's memory.  CKR_ERANK as pg_allgather. */
ckr_status chunked_run(struct chunked_comm *, struct err *);
/* y = the sum of what each rank of the group has in x, n elements: no more
 * than TEAM_ROOM / ranks bytes. */
ckr_status chunked_sum(const struct chunked_comm *, uint8_t dtype,
                       const void *x, uint64_t n, void *y, struct err *);

#endif
