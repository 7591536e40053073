/* Keep or recompute: the problem, one candidate's exact evaluation, search.
 *
 * A storage is the memory of one owner in the arena.  A candidate plan says
 * of every forward storage whether it is kept for backward or dropped, that
 * is, computed again by copies of its nodes just before its first use in
 * backward (design: each at most once, backward order as it stands).
 */
#ifndef PASSES_REMAT_H
#define PASSES_REMAT_H

#include "passes/pack.h"
#include "passes/passes.h"

enum { PACK_WORK = 2000000 };

/* Output `out` of a node may lie in the bytes of input `in`, should that die
 * there. */
struct inplace_pair {
	int out, in;
};

struct storage {
	ValId owner;
	int64_t size;
	bool output;                    /* lives to the end of the step */
	bool candidate;                 /* forward, may be dropped */
	NodeId def;
	int32_t group;                  /* storages that play the same role */
};

struct rnode {
	NodeId node;
	int32_t *read;                  /* storages, without doubles */
	int32_t *write;
	int32_t *pair;                  /* (out storage, in storage) */
	int nread, nwrite, npair;
	int64_t workspace;
	double sec;
	bool backward;                  /* phase backward or update */
	bool clonable;
};

struct rstep {
	NodeId node;
	bool clone;
};

/* What a candidate costs. */
struct remat_cost {
	int64_t live;                   /* largest sum of bytes in the arena */
	double sec;                     /* of the copies */
	int32_t tight;                  /* step with the largest sum */
};

struct remat {
	const Graph *g;
	Arena *arena;
	int32_t nstore;
	struct storage *store;
	int32_t *of_val;                /* storage of a value; -1: none */
	struct rnode *node;             /* by node id */
	int64_t resident;               /* bytes outside the arena */
	double base_sec;                /* step without copies */
	int32_t ncand, ngroup;

	/* the last evaluation */
	struct rstep *step;
	int32_t nstep;
	uint8_t *again;                 /* by value: has a copy */
	uint8_t *cloned;                /* by node */
	int32_t *first, *last;          /* by storage, copies from nstore on */
	int32_t *block;                 /* instance whose bytes it lies in */
	int64_t *delta;
	struct buffer *buffer;          /* filled by remat_buffers */
};

/* inplace.c */
int inplace_pairs(const Graph *, const Node *, struct inplace_pair *, int max);
bool inplace_update(Op);        /* op that overwrites its operands always */
void inplace_graph(Graph *, Arena *scratch);

/* place.c: offsets for everything in the arena; returns its size. */
int64_t place_graph(Graph *, Arena *scratch);
/* Bytes of all owners outside the arena. */
int64_t resident_bytes(const Graph *, Arena *scratch);

/* remat.c */
struct remat *remat_new(const Graph *, Arena *);
/* Evaluate: drop[s] != 0 for dropped candidates. */
struct remat_cost remat_eval(struct remat *, const uint8_t *drop);
/* Arena size once placed, of the candidate evaluated last. */
int64_t remat_placed(struct remat *, const uint8_t *drop, Arena *scratch);

/* remat_apply.c: rewrite the graph as the candidate says. */
void remat_apply(struct remat *, const uint8_t *drop, Graph *);

#endif
