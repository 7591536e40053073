/* A forward graph as a chain of parts, and sequences that go through it. */
#ifndef PASSES_RECURSIVE_CHAIN_H
#define PASSES_RECURSIVE_CHAIN_H

#include "passes/recursive/rerun.h"

/* When a storage that backward reads is made again, inside its part: before
 * the part's backward, before its first use, or before each use. */
enum chain_flag { CHAIN_HOLD, CHAIN_DROP, CHAIN_AGAIN };

/* What a part costs with every cut in memory; bytes do not count the cuts
 * before the part. */
struct part_cost {
	int64_t cut;                    /* bytes of the storage that ends the
	                                 * part */
	int64_t tape;                   /* bytes of the storages inside the part
	                                 * that its backward reads */
	int64_t peak;                   /* peak bytes of the part's backward */
	int64_t sweep;                  /* peak bytes of running the part
	                                 * forward without its tape */
	int64_t fixed;                  /* bytes of gradients alive before the
	                                 * part's backward */
	double sec;                     /* seconds from the cut before the part
	                                 * to its own cut */
	double once;                    /* seconds of clones in backward if the
	                                 * tape is in memory */
	double all;                     /* seconds of clones in backward if it
	                                 * is not */
};

/* A chain of more parts than this has neighbours merged. */
enum { CHAIN_PARTS = 1200 };

struct chain {
	const struct remat *r;
	const uint8_t *constraint;
	int32_t npart;
	int32_t *cut;                   /* storage that ends each part but the
	                                 * last: -1 */
	int32_t *part_of;               /* by storage: its part; -1: a storage
	                                 * of backward */
	uint8_t *flag;                  /* by storage: enum chain_flag */
	bool *far;                      /* by storage: other parts read it */
	int32_t *backward_part;         /* by node of backward: its part */
	NodeId *last;                   /* by storage: last reader in
	                                 * backward */
	NodeId begin;                   /* first node of backward */
	int32_t *store_at, *store;      /* storages of each part */
	struct part_cost *cost;
	struct schedule *trial;         /* of a sequence that was measured */
	struct rerun run;               /* the sequence being built */
	NodeId next;                    /* first run of backward that is due */
};

/* NULL: the graph cannot be cut. */
struct chain *chain_new(const struct remat *, const uint8_t *constraint,
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
