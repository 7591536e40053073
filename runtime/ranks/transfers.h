/* What steps move between ranks: begun by one step, ended behind the same or a
 * later one, as the tables say.
 *
 * Every function is called at the same place of a program by all ranks.
 */
#ifndef CKR_TRANSFERS_H
#define CKR_TRANSFERS_H

#include "runtime/device/wires.h"
#include "runtime/ranks/between.h"

/* One that has begun and not ended. */
struct transfer {
	const void *of;                 /* whose; NULL: nobody's */
	uint32_t step, end;
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	struct pg_task task;            /* between processes */
	/* the carrier's */
	struct transfer *next;
	void *copy;
	bool done;
	uint64_t number;                /* among those of its wires; 0: none */
};

/* Ranks, as those who carry see them: world rank = replica * tp + rank. */
struct crew {
	struct process_group *team;     /* NULL: all ranks live here */
	struct wires *wires;            /* between GPUs; NULL: there are none */
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
	void (*get)(void *user, void *host, const void *at, uint64_t n);
	void (*put)(void *user, void *at, const void *host, uint64_t n);
};

struct transfers;

/* Who carries: ranks of one process, processes, or GPUs of processes. */
struct carrier {
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

extern const struct carrier carry_here, carry_apart, carry_wires;

struct transfers {
	struct crew crew;
	const struct carrier *by;
	struct transfer *one;           /* [most] */
	uint32_t most, n;               /* those that have begun lie before n */
	uint32_t end;                   /* none of them ends earlier */
	struct lane *lane;              /* of processes, by group */
	struct wired *wired;            /* of GPUs */
	int late;                       /* CKR_LATE, see carry_here.c */
};

/* most: how many may have begun and not ended.  After a failure too there is
 * something to close. */
ckr_status transfers_open(struct transfers **, const struct crew *,
                          uint32_t most, struct err *);
void transfers_close(struct transfers *);
/* When all processes have come so far: GPUs of theirs join, if there are any.
 * They all fail, or none. */
ckr_status transfers_join(struct transfers *, struct err *);
/* Bytes that it takes beside the team's; where there are wires, of the GPU. */
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
