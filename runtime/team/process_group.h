/* Room team: the process group of a run, as one process sees it: collectives,
 * agreement, and detection of missing processes.
 *
 * in      bytes and error messages of this process
 * out     bytes and error messages of all processes
 * must not know models
 *
 * All processes make every call, in the same order, from the thread that opened
 * the group.  A process has one group, also if it is opened several times.  A
 * group of ranks has at most one transfer that is begun and not done.
 */
#ifndef RUNTIME_TEAM_PROCESS_GROUP_H
#define RUNTIME_TEAM_PROCESS_GROUP_H

#include "runtime/base/err.h"
#include "runtime/team/transport.h"

struct process_group {
	uint32_t rank, size;
	uint32_t nlocal, local_rank;    /* processes on this machine; the
	                                 * number of this one among them */
	/* buffers that transfers go through, PG_BUFFER bytes each */
	char *out, *in;
};

enum { PG_BUFFER = 4 << 20 };

/* The task that a process waits for, for messages. */
struct pg_task {
	const char *op, *of;            /* "all_reduce", and the tensor; NULL:
	                                 * the task has no tensor */
	uint64_t step, bytes;           /* step: 1 is the first, 0: none */
	bool patient;                   /* a task on files: the timeout is
	                                 * PATIENT times as long */
};

/* What one process reports; after pg_agree, what all have reported. */
struct pg_vote {
	ckr_status status;
	uint64_t order;                 /* position of the failure in the step:
	                                 * the earliest one wins */
	uint32_t flags;                 /* union over processes */
	uint64_t most;                  /* maximum over processes */
};

/* *team is NULL, without a failure, if this process was started alone.
 * timeout: seconds after which a process that has not joined counts as
 * missing. */
ckr_status pg_open(struct process_group **, double timeout, struct err *);
void pg_close(struct process_group *);
/* Groups of the mesh, from now on. */
ckr_status pg_split(struct process_group *, const struct comm_mesh *,
                    struct err *);
/* CKR_ERANK: a process is missing, and the message says which; after that the
 * group serves pg_abort alone. */
ckr_status pg_allgather(struct process_group *, enum comm_group,
                        const void *from, int n,
                        const struct transport_side *to, const struct pg_task *,
                        struct err *);
/* The same, and bytes from each rank to each, without waiting.  Until the
 * transfer is done, the bytes sent stay as they are, and nobody touches the
 * counts or the bytes received. */
ckr_status pg_begin_allgather(struct process_group *, enum comm_group,
                              const void *from, int n,
                              const struct transport_side *to,
                              const struct pg_task *, struct err *);
ckr_status pg_begin_alltoall(struct process_group *, enum comm_group,
                             const struct transport_side *from,
                             const struct transport_side *to,
                             const struct pg_task *, struct err *);
ckr_status pg_test(struct process_group *, enum comm_group, bool *done,
                   const struct pg_task *, struct err *);

/* Begin a message between ranks; wait until it is done, and meanwhile all
 * others. */
ckr_status pg_begin_message(struct process_group *, struct transport_message *,
                            const struct pg_task *, struct err *);
ckr_status pg_await_message(struct process_group *, struct transport_message *,
                            const struct pg_task *, struct err *);

/* Work to wait for.  `look` advances it without waiting, sets *at to the task
 * that is waited for now, and changes *moved when another process has made
 * progress. */
struct pg_poll {
	ckr_status (*look)(void *user, bool *done, const struct pg_task **at,
	                   uint64_t *moved, struct err *);
	void *user;
};
/* Wait until the work is done.  CKR_ERANK as pg_allgather. */
ckr_status pg_wait(struct process_group *, const struct pg_poll *,
                   struct err *);

/* n bytes of each process to all, one after the other; n is at most PG_BUFFER /
 * size. */
ckr_status pg_allgather_equal(struct process_group *, const void *mine, int n,
                              void *all, const struct pg_task *, struct err *);
/* n bytes of one process to all; n is at most PG_BUFFER. */
ckr_status pg_broadcast(struct process_group *, uint32_t from, void *, int n,
                        const struct pg_task *, struct err *);
/* The outcome of all processes: the first failure, whose message all of them
 * get. */
ckr_status pg_agree(struct process_group *, struct pg_vote *,
                    const struct pg_task *, struct err *);
void pg_abort(struct process_group *, int status);
/* Before a library call that waits for all processes and cannot be polled: if
 * it does not return in time, the process ends with this message.  NULL: it has
 * returned. */
void pg_set_watchdog(struct process_group *, const char *message);
/* "step 12: all_reduce of 'h.3/Add' (98304 bytes)"; returns buf. */
const char *pg_task_text(char *buf, size_t size, const struct pg_task *);

#endif
