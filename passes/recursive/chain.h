/* A forward graph as a chain of parts, and sequences that go through it. */
#ifndef PASSES_RECURSIVE_CHAIN_H
#define PASSES_RECURSIVE_CHAIN_H

#include "passes/recursive/recursive_known.h"

/* When a storage that backward reads is made again, inside its part: before
 * the part's backward, before its first use, or before each use. */
enum chain_flag { CHAIN_HOLD, CHAIN_DROP, CHAIN_AGAIN };

/* Measured with every cut in memory; bytes without the cuts before it. */
struct part_cost {
	int64_t cut;                    /* bytes of the storage that ends it */
	int64_t tape;                   /* of what backward reads inside */
	int64_t peak;                   /* of its backward */
	int64_t sweep;                  /* of running it forward */
	int64_t fixed;                  /* gradients alive before that */
	double sec;                     /* from the cut before to the next */
	double once;                    /* copies, with the tape there */
	double all;                     /* without */
};

/* More parts are merged. */
enum { CHAIN_PARTS = 1200 };

struct chain {
	struct remat *r;
	const uint8_t *constraint;
	int32_t npart;
	int32_t *cut;                   /* storage that ends each part but the
	                                 * last: -1 */
	int32_t *part_of;               /* by storage; -1: of backward */
	uint8_t *flag;                  /* by storage */
	bool *far;                      /* by storage: read by other parts */
	int32_t *backward_part;         /* by backward node: part it is of */
	NodeId *last;                   /* by storage: last use in backward */
	NodeId begin;                   /* first node of backward */
	int32_t *store_at, *store;      /* storages of each part */
	struct part_cost *cost;
	/* of the sequence being built */
	struct step_list *out;
	bool *here;
	int32_t *wanted, *chosen, stamp;        /* by storage and by node */
	NodeId *need, next;
	int32_t *made, nmade;
	bool ok;
};

/* NULL: the graph cannot be cut. */
struct chain *chain_new(struct remat *, const uint8_t *constraint,
                        struct step_list *, Arena *);
/* A storage that a part's backward finds in memory. */
bool chain_on_tape(const struct chain *, int32_t s);
/* chain_cost.c: fill in costs under the flags as they are; false: too long. */
bool chain_measure(struct chain *);

/* Build: forward, what stays in memory after it, then parts from the last. */
void chain_begin(struct chain *);
void chain_hold_cut(struct chain *, int32_t part);      /* after begin */
void chain_hold_tape(struct chain *, int32_t part);
/* Make the cut after a part, or a part's tape and perhaps that cut. */
void chain_sweep(struct chain *, int32_t part);
void chain_sweep_tape(struct chain *, int32_t part, bool cut);
/* The backward of a part. */
void chain_backward(struct chain *, int32_t part);

#endif
