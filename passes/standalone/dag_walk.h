/* The state of an annealing over sequences: evaluations in slots, what is in
 * memory over each slot, and changes that can be taken back.
 */
#ifndef PASSES_STANDALONE_DAG_WALK_H
#define PASSES_STANDALONE_DAG_WALK_H

#include "passes/standalone/standalone.h"

/* Slots whose most bytes are kept together. */
enum { WALK_BLOCK = 32 };

/* One evaluation that came, went or moved. */
struct walk_op {
	int32_t eval, from, to;         /* evaluation; its slot before and
	                                 * after, -1: none */
};

/* An evaluation's last reader before a change. */
struct walk_end {
	int32_t eval, end;
};

/* From `slot` on, memory grows by `delta` units. */
struct walk_event {
	int32_t slot, delta;
};

/* Slot, evaluation or node: -1 is none. */
struct dag_walk {
	const struct dag *g;
	int32_t budget;                 /* budget in units, rounded down */
	int32_t *ram;                   /* by node: units of its value, rounded
	                                 * up */
	int32_t nslot, neval;           /* number of slots; of evaluations in
	                                 * use */
	int32_t *slot;                  /* by slot: the evaluation in it */
	int32_t *mem, *top;             /* by slot: units in memory; by block:
	                                 * most of its slots */
	/* by evaluation: node, slot, slot of the last reader, list links */
	int32_t *node, *pos, *end, *next, *prev;
	int32_t *free_list, nfree;
	int32_t *all, *all_at;          /* evaluations in use, to draw from */
	int32_t *extra, *extra_at;      /* evaluations that repeat their node */
	int32_t nextra;
	int32_t *first;                 /* by node: its first evaluation */
	double cost;
	int64_t over;                   /* units above the budget, summed over
	                                 * slots */
	double weight;                  /* energy of a unit above the budget */
	/* state of the change in progress */
	struct walk_op *op;
	struct walk_end *log;
	struct walk_event *event;
	int32_t nop, nlog, nevent;
	bool overflow;
	double dcost;
	double limit;                   /* energy that the change may add */
	int64_t work;
};

/* Room for sequences about as long as the one given, in the arena. */
void
walk_open(struct dag_walk *, const struct dag *, int64_t budget, int32_t len,
          Arena *);
void walk_load(struct dag_walk *, const struct dag_seq *);
/* The sequence, which has room for nslot nodes; returns its length. */
int32_t walk_unload(const struct dag_walk *, int32_t *node);

/* A change: begin, any number of put, take and shift, end. */
void walk_begin(struct dag_walk *, double limit);
/* Evaluate v in a free slot of lo..hi-1, a random or a late one. */
int32_t walk_put(struct dag_walk *, int32_t v, int32_t lo, int32_t hi,
                 uint64_t *random, bool late);
/* Without this evaluation, and without those that only it read. */
void walk_take(struct dag_walk *, int32_t e);
bool walk_shift(struct dag_walk *, int32_t e, int32_t lo, int32_t hi,
                uint64_t *random);
/* Keep the change if it adds no more than the limit; else take it back. */
bool walk_end(struct dag_walk *);
/* Even with nothing above the budget it would add more. */
bool walk_hopeless(const struct dag_walk *, double cost);

/* The evaluation of v that a reader in slot t takes. */
int32_t walk_provider(const struct dag_walk *, int32_t v, int32_t t);
/* Slot of the last reader of v after slot from and before to; or from. */
int32_t walk_last(struct dag_walk *, int32_t v, int32_t from, int32_t to);
/* First reader of e after slot t, where there is one. */
int32_t walk_next(struct dag_walk *, int32_t e, int32_t t);
/* The first of several may go if nobody reads it. */
bool walk_removable(const struct dag_walk *, int32_t e);

int32_t walk_pick(uint64_t *random, int32_t n);

/* dag_profile.c: most bytes in a block of slots. */
int32_t walk_top(const int32_t *mem);
/* Bring the pending changes into ranges; what they add above the budget. */
int64_t walk_gather(struct dag_walk *);
/* Add those ranges to the profile. */
void walk_apply(struct dag_walk *);

#endif
