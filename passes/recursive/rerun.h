/* Running nodes again with all that they miss: what checkpoints.c and chain.c
 * build sequences of. */
#ifndef PASSES_RECURSIVE_RERUN_H
#define PASSES_RECURSIVE_RERUN_H

#include "passes/recursive/step_list.h"

struct rerun {
	const struct remat *r;
	struct step_list *out;          /* the sequence */
	bool *here;                     /* by storage: in memory now */
	int32_t *made, nmade;           /* storages made again, in order */
	bool ok;                        /* false: the sequence is too long, or
	                                 * a node cannot be repeated */
	/* what is asked for at present */
	int32_t *wanted, *chosen, stamp;        /* by storage and by node */
	NodeId *need;
	int32_t nneed;
};

/* Nodes in their order. */
void nodes_sort(NodeId *, int32_t n);

void rerun_open(struct rerun *, const struct remat *, struct step_list *,
                Arena *);
/* First run of a node. */
void rerun_first(struct rerun *, NodeId);
/* Ask for storages that may be missing. */
void rerun_begin(struct rerun *);
void rerun_want(struct rerun *, int32_t s);
/* Run again, in the order of nodes, what makes them and all that this misses.
 * `more` says which further outputs a clone writes; NULL: none. */
void rerun_missing(struct rerun *,
                   uint32_t (*more)(void *data, const struct rnode *),
                   void *data);

#endif
