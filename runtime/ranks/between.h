/* What moves between ranks that live in processes of their own. */
#ifndef CKR_BETWEEN_H
#define CKR_BETWEEN_H

#include "runtime/ranks/comm.h"
#include "runtime/team/process_group.h"

/* Bytes of all ranks, and where: one behind the other, or as they come. */
struct counts {
	int *count, *at;
};

/* Of an exchange of pieces, what a pair of ranks has to do with each other:
 * elements that were met so far, in the whole's order. */
struct pairs {
	uint64_t *out, *in;
};

/* A collective as one of its ranks takes part.  x, y: its operands, without
 * gaps. */
struct between {
	struct process_group *team;
	enum link_group group;
	uint32_t rank, ranks;           /* of the group */
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	const char *x;
	char *y;
	int threads;
	struct pg_task task;
	/* what its parts go through, TEAM_ROOM bytes each; no one else's until
	 * it has ended */
	char *out, *in;
	/* how far it is, in elements of a rank's own: of `total`, `part` at a
	 * time, those at .. at + n - 1 */
	uint64_t total, part, at, n;
	uint64_t run;                   /* of pieces: none before it is left */
	uint64_t moved;                 /* transfers that have arrived */
	bool flying;                    /* one has not */
	bool whole, summed;             /* all_reduce: all take of all; a share
	                                 * of the part has been added up */
	struct pieces from, to;
	void *room;                     /* for these, of between_room bytes */
	struct counts sent, come;
	struct pairs met;
};

/* Bytes that a group of so many ranks keeps count with. */
size_t between_room(uint32_t ranks);
/* Before anything moves.  The bits are those of comm_run. */
void between_begin(struct between *);
/* Move it on, without waiting. */
ckr_status between_look(struct between *, bool *done, struct err *);
/* The whole of it, through the team's memory.  CKR_ERANK as pg_allgather. */
ckr_status between_run(struct between *, struct err *);
/* y = the sum of what each rank of the group has in x, n elements: no more
 * than TEAM_ROOM / ranks bytes. */
ckr_status between_sum(const struct between *, uint8_t dtype, const void *x,
                       uint64_t n, void *y, struct err *);

#endif
