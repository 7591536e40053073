/* Room ranks: transfers between ranks.  One instruction begins a transfer, and
 * the same or a later one ends it, as the tables say.
 *
 * in      the tables of a program, operands of the ranks that live here
 * out     the results of collectives in the operands
 * must not know kernels and contexts
 *
 * All ranks call every function at the same place of a program.
 */
#ifndef RUNTIME_RANKS_TRANSFERS_H
#define RUNTIME_RANKS_TRANSFERS_H

#include "runtime/device/nccl_transport.h"
#include "runtime/ranks/chunked_comm.h"

/* A transfer that has begun and not ended. */
struct transfer {
	const void *of;                 /* the caller's program; NULL: unused */
	uint32_t step, end;             /* instructions: begins and ends it */
	uint32_t stage;                 /* whose ranks take part */
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	struct pg_task task;            /* of processes, for messages */
	/* ---- set by the backend ---- */
	struct transfer *next;
	struct joined_comm part;
	void *copy;
	bool done;
	uint64_t number;                /* of the NCCL transfer; 0: none */
};

/* The ranks as a backend sees them. */
struct comm_view {
	struct process_group *team;     /* NULL: all ranks live here */
	struct nccl_transport *nccl;    /* between GPUs; NULL: there are none */
	const struct ckr_program *program;      /* [CKR_PROGRAMS] */
	struct comm_mesh mesh;
	uint32_t count;                 /* ranks that live here */
	uint32_t rank;                  /* world rank of the first of them */
	uint32_t messages;              /* between stages that may be under way
	                                 * at once */
	int threads;
	void *user;
	/* Address of operand 0 or 1 on rank r of this process. */
	void *(*operand)(void *user, const struct transfer *, uint32_t r,
	                 int i);
	/* Copies from and to that address; NULL: it is host memory. */
	void (*copy_d2h)(void *user, void *host, const void *at, uint64_t n);
	void (*copy_h2d)(void *user, void *at, const void *host, uint64_t n);
};

/* The ranks with which this process is in a group of that axis. */
static inline struct comm_ranks
ranks_of_axis(const struct comm_view *view, int axis)
{
	return comm_ranks_of(&view->mesh, group_of_axis(axis), view->rank);
}

/* Its own number among them. */
static inline uint32_t
rank_in_group(const struct comm_view *view, const struct comm_ranks *r)
{
	return (view->rank - r->first) / r->by;
}

/* Whether world rank r is one of a stage's. */
static inline bool
is_in_stage(const struct comm_view *view, uint32_t r, uint32_t stage)
{
	return r / (view->mesh.tp * view->mesh.dp) == stage;
}

/* Whether ranks form groups along the axis. */
static inline bool
has_axis(const struct comm_view *view, int axis)
{
	switch (axis) {
	case CKR_TP: case CKR_DP: return true;
	case CKR_SHARDS: case CKR_COPIES: return view->mesh.zero_group;
	case CKR_STAGES: return view->mesh.stages > 1;
	case CKR_CONTEXT: return view->mesh.context;
	default: return view->mesh.expert_group;
	}
}

struct transfers;

/* Moves transfers: between ranks of one process, between processes, or between
 * processes with a GPU each.  NULL: there is nothing to do. */
struct comm_backend {
	ckr_status (*open)(struct transfers *, struct err *);
	void (*close)(struct transfers *);
	ckr_status (*begin)(struct transfers *, struct transfer *,
	                    struct err *);
	/* Advance all transfers without waiting. */
	ckr_status (*test)(struct transfers *, struct err *);
	/* Wait until the transfer is done. */
	ckr_status (*wait)(struct transfers *, struct transfer *,
	                   struct err *);
	/* Forget the transfer: it has failed, or the training step has. */
	void (*drop)(struct transfers *, struct transfer *);
	/* See transfers_bytes. */
	uint64_t (*bytes)(const struct transfers *);
};

extern const struct comm_backend backend_local, backend_process, backend_nccl;

struct transfers {
	struct comm_view view;
	const struct comm_backend *backend;
	struct transfer *one;           /* [most] */
	uint32_t most;                  /* that any program begins */
	size_t total;                   /* ... all programs */
	uint32_t n;                     /* one[0 .. n - 1] may have begun */
	uint32_t end;                   /* first instruction that ends one */
	struct process_queue *queue;    /* backend_process: one per group */
	struct nccl_state *nccl;        /* backend_nccl */
	int delay;                      /* CKR_LATE, see backend_local.c */
};

/* To be closed after a failure too. */
ckr_status transfers_open(struct transfers **, const struct comm_view *,
                          struct err *);
void transfers_close(struct transfers *);
/* Join the GPUs of all processes, if there are any; called when all processes
 * have got this far.  It fails in all of them, or in none. */
ckr_status transfers_join(struct transfers *, struct err *);
/* Bytes of memory beside the process group's buffers; with NCCL, of GPU memory.
 */
uint64_t transfers_bytes(const struct transfers *);
ckr_status transfers_begin(struct transfers *, const struct transfer *,
                           struct err *);
/* Advance all transfers without waiting. */
ckr_status transfers_test(struct transfers *, struct err *);
/* A transfer that instruction i or an earlier one ends; NULL: there is none.
 * The caller waits for it next. */
struct transfer *transfers_due(struct transfers *, uint32_t i);
ckr_status transfers_wait(struct transfers *, struct transfer *,
                          struct err *);
/* Forget all transfers, after a training step that failed. */
void transfers_drop(struct transfers *);

/* A message between ranks of two stages: n bytes of GPU memory. */
struct nccl_message {
	void *at;
	uint64_t n;
	uint32_t stage;                 /* the other rank's number among those
	                                 * of CKR_STAGES */
	bool out;
};

/* By NCCL, as another transfer in their order; *number: its number. */
ckr_status transfers_begin_message(struct transfers *,
                                   const struct nccl_message *,
                                   const struct pg_task *, uint64_t *number,
                                   struct err *);
/* Kernels that are enqueued from now on wait for that transfer; 0: for none. */
ckr_status transfers_await_message(struct transfers *, uint64_t number,
                                   struct err *);
/* Wait until all transfers that have begun have ended.  After a failure NCCL's
 * calls are aborted. */
ckr_status transfers_finish_messages(struct transfers *, struct err *);

#endif
