/* What steps move between ranks: begun by one step, ended behind the same or a
 * later one, as the tables say.
 *
 * Every function is called at the same place of a program by all ranks.
 */
#ifndef CKR_TRANSFERS_H
#define CKR_TRANSFERS_H

#include "runtime/model/rt.h"

/* One that has begun and not ended. */
struct transfer {
	const struct bound *b;          /* NULL: none */
	uint32_t step, end;             /* of the program */
	struct transfer *next;          /* the carrier's */
	void *copy;                     /* ... */
	bool done;                      /* ... */
};

/* Who carries: ranks of one process, or processes.  What GPUs send each other
 * themselves would be one more. */
struct carrier {
	ckr_status (*open)(ckr_ctx *);
	void (*close)(ckr_ctx *);
	ckr_status (*begin)(ckr_ctx *, struct transfer *);
	/* Move on what has begun, without waiting. */
	ckr_status (*test)(ckr_ctx *);
	/* Until it is done. */
	ckr_status (*wait)(ckr_ctx *, struct transfer *);
	/* It has failed, or its step has. */
	void (*drop)(ckr_ctx *, struct transfer *);
};

extern const struct carrier carry_here, carry_apart;

struct transfers {
	const struct carrier *by;
	struct transfer *one;           /* [most] */
	uint32_t most, n;               /* n: those that have begun lie before */
	uint32_t end;                   /* none of them ends earlier */
	struct lanes *lanes;            /* of processes */
	int late;                       /* CKR_LATE, see carry_here.c */
};

ckr_status transfers_open(ckr_ctx *);
void transfers_close(ckr_ctx *);
/* What step i of a program begins; and, when it has run, what it ends. */
ckr_status transfers_begin(ckr_ctx *, const struct bound *, uint32_t i);
ckr_status transfers_end(ckr_ctx *, uint32_t i);
/* All that has begun: before the processes talk of anything else. */
ckr_status transfers_finish(ckr_ctx *);
/* What a step that failed has left. */
void transfers_drop(ckr_ctx *);
/* Bytes that it takes beside the team's. */
uint64_t transfers_bytes(const ckr_ctx *);

#endif
