/* The process group of a run, called team, as one process sees it: collectives,
 * agreement, and detection of missing processes.
 *
 * Every call is made by all of them, in the same order, by the thread that
 * opened the team.  There is one team in a process, whoever opens it.  What is
 * begun and not done is the group's only transfer: others wait until then.
 *
 * Knows: bytes and messages.  Must not know: models. */
#ifndef RUNTIME_TEAM_PROCESS_GROUP_H
#define RUNTIME_TEAM_PROCESS_GROUP_H

#include "runtime/base/err.h"
#include "runtime/team/link.h"

struct process_group {
	uint32_t rank, size;
	uint32_t nlocal, local_rank;    /* processes on this machine, and which
	                                 * of them this is */
	/* memory that transfers go through, TEAM_ROOM bytes each */
	char *out, *in;
};

enum { PG_BUFFER = 4 << 20 };

/* What is waited for, in words. */
struct pg_task {
	const char *op, *of;            /* of: NULL: nothing that has a name */
	uint64_t step, bytes;           /* step: 1 is the first, 0: none */
	bool patient;                   /* files take PATIENT times as long */
};

/* Of one process, and of all. */
struct pg_vote {
	ckr_status status;
	uint64_t order;                 /* of the failure: the least counts */
	uint32_t flags;                 /* those that any process has */
	uint64_t most;                  /* the largest of them */
};

/* NULL without a failure: this process was started alone.  timeout: seconds
 * after which one that has not come is given up. */
ckr_status pg_open(struct process_group **, double timeout, struct err *);
void pg_close(struct process_group *);
/* Groups of tp ranks, from now on. */
ckr_status pg_split(struct process_group *, uint32_t tp, struct err *);
/* CKR_ERANK: one of them does not come, in words; the team serves no more than
 * pg_abort then. */
ckr_status pg_allgather(struct process_group *, enum link_group,
                        const void *from, int n, const struct link_side *to,
                        const struct pg_task *, struct err *);
/* The same, and pieces from each to each; they return at once.  Until it is
 * done what is sent stays as it is, and nobody touches the counts, nor what is
 * received. */
ckr_status pg_begin_allgather(struct process_group *, enum link_group,
                              const void *from, int n,
                              const struct link_side *to,
                              const struct pg_task *, struct err *);
ckr_status pg_begin_alltoall(struct process_group *, enum link_group,
                             const struct link_side *from,
                             const struct link_side *to,
                             const struct pg_task *, struct err *);
ckr_status pg_test(struct process_group *, enum link_group, bool *done,
                   const struct pg_task *, struct err *);

/* What somebody waits for: `look` moves it on without waiting.  *at: what is
 * waited for now; *moved changes when others have been heard of. */
struct pg_poll {
	ckr_status (*look)(void *user, bool *done, const struct pg_task **at,
	                   uint64_t *moved, struct err *);
	void *user;
};
/* Until it is done.  CKR_ERANK as pg_allgather. */
ckr_status pg_wait(struct process_group *, const struct pg_poll *,
                   struct err *);

/* n bytes of each process to all, side by side; n is at most TEAM_ROOM /
 * size. */
ckr_status pg_allgather_equal(struct process_group *, const void *mine, int n,
                              void *all, const struct pg_task *, struct err *);
/* n bytes of one process to all; n is at most TEAM_ROOM. */
ckr_status pg_broadcast(struct process_group *, uint32_t from, void *, int n,
                        const struct pg_task *, struct err *);
/* How all ended: with the failure of the first that failed, whose message is
 * everybody's then. */
ckr_status pg_agree(struct process_group *, struct pg_vote *,
                    const struct pg_task *, struct err *);
void pg_abort(struct process_group *, int status);
/* Before a call that waits for all and that nobody can look into: one that does
 * not return in time ends the process with this message.  NULL: it has. */
void pg_set_watchdog(struct process_group *, const char *message);
/* "step 12: all_reduce of 'h.3/Add' (98304 bytes)"; returns buf. */
const char *pg_task_text(char *buf, size_t size, const struct pg_task *);

#endif
