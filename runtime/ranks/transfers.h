/* Transfers between ranks: begun by one step and ended after the same or a
 * later one, according to the tables.
 *
 * Every function is called at the same place of a program by all ranks.
 */
#ifndef RUNTIME_RANKS_TRANSFERS_H
#define RUNTIME_RANKS_TRANSFERS_H

#include "runtime/device/nccl_transport.h"
#include "runtime/ranks/chunked_comm.h"

/* One that has begun and not ended. */
struct transfer {
	const void *of;                 /* whose; NULL: nobody's */
	uint32_t step, end;
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	struct pg_task task;            /* between processes */
	/* the backend's */
	struct transfer *next;
	void *copy;
	bool done;
	uint64_t number;                /* in its NCCL stream; 0: none */
};

/* The ranks as a backend sees them: world rank = replica * tp + rank. */
struct comm_view {
	struct process_group *team;     /* NULL: all ranks live here */
	struct nccl_transport *nccl;    /* between GPUs; NULL: there are none */
	const struct ckr_program *program;      /* whose steps move:
	                                         * [CKR_PROGRAMS] */
	uint32_t tp, dp;
	uint32_t count;                 /* that live here */
	uint32_t rank, replica;         /* of a process that is one */
	int threads;
	void *user;
	/* Where operand 0 or 1 lies on rank r here. */
	void *(*operand)(void *user, const struct transfer *, uint32_t r,
	                 int i);
	/* To and from there; NULL: it is the host's memory. */
	void (*copy_d2h)(void *user, void *host, const void *at, uint64_t n);
	void (*copy_h2d)(void *user, void *at, const void *host, uint64_t n);
};

struct transfers;

/* What moves transfers between ranks of one process, of several processes, or
 * of processes with a GPU each. */
struct comm_backend {
	ckr_status (*open)(struct transfers *, struct err *);
	void (*close)(struct transfers *);
	ckr_status (*begin)(struct transfers *, struct transfer *,
	                    struct err *);
	/* Move on what has begun, without waiting. */
	ckr_status (*test)(struct transfers *, struct err *);
	/* Until it is done. */
	ckr_status (*wait)(struct transfers *, struct transfer *,
	                   struct err *);
	/* It has failed, or its step has. */
	void (*drop)(struct transfers *, struct transfer *);
	/* See transfers_bytes; NULL: none. */
	uint64_t (*bytes)(const struct transfers *);
};

extern const struct comm_backend backend_local, backend_process, backend_nccl;

struct transfers {
	struct comm_view view;
	const struct comm_backend *backend;
	struct transfer *one;           /* [most] */
	uint32_t most, n;               /* those that have begun lie before n */
	uint32_t end;                   /* none of them ends earlier */
	struct process_queue *queue;    /* of processes, by group */
	struct nccl_state *nccl;        /* of GPUs */
	int delay;                      /* CKR_LATE, see backend_local.c */
};

/* most: how many may have begun and not ended.  After a failure too there is
 * something to close. */
ckr_status transfers_open(struct transfers **, const struct comm_view *,
                          uint32_t most, struct err *);
void transfers_close(struct transfers *);
/* When all processes have come so far: GPUs of theirs join, if there are any.
 * They all fail, or none. */
ckr_status transfers_join(struct transfers *, struct err *);
/* Bytes that it takes beside the team's; with NCCL, of the GPU. */
uint64_t transfers_bytes(const struct transfers *);
ckr_status transfers_begin(struct transfers *, const struct transfer *,
                           struct err *);
/* Move on what has begun, without waiting. */
ckr_status transfers_test(struct transfers *, struct err *);
/* One that ends behind step i or before; NULL: there is none.  It is waited
 * for next. */
struct transfer *transfers_due(struct transfers *, uint32_t i);
ckr_status transfers_wait(struct transfers *, struct transfer *,
                          struct err *);
/* What a step that failed has left. */
void transfers_drop(struct transfers *);

#endif
