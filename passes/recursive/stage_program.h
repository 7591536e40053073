/* The 0-1 stage program, see stages.c. */
#ifndef PASSES_RECURSIVE_STAGE_PROGRAM_H
#define PASSES_RECURSIVE_STAGE_PROGRAM_H

#include "passes/recursive/stages.h"
#include "passes/ilp/ilp.h"

/* Columns that are constants. */
enum { ZERO = -1, ONE = -2 };

struct stage_program {
	struct stage_bound *job;
	const struct remat *r;
	Arena *arena;
	uint64_t *after;                /* bits by node: nodes that depend on
	                                 * it; NULL: first runs keep the order
	                                 * of nodes */
	size_t nword;
	NodeId w[STAGES_MAX];
	int n;
	struct readers readers;
	int *x[STAGES_MAX], *y[STAGES_MAX + 1];
	int *z;                         /* column by node */
	double unit_sec, unit_bytes;
	double sure;                    /* seconds of clones that every plan
	                                 * runs */
	struct step_list plan;          /* plan made of the last point */
	struct schedule *trial;         /* what that comes to */
	Ilp *lp;
};

/* Fill in `after` and readers; called first. */
void stages_index(struct stage_program *);
/* Make p->lp: columns and rows for the stages p->w. */
void stages_fill(struct stage_program *);

/* Node a runs before b in any plan. */
static inline bool
is_before(const struct stage_program *p, NodeId a, NodeId b)
{
	if (!p->after)
		return a < b;
	return p->after[a * p->nword + b / 64] >> b % 64 & 1;
}

static inline bool
node_reads(const struct rnode *n, int32_t s)
{
	for (int k = 0; k < n->nread; k++)
		if (n->read[k] == s)
			return true;
	return false;
}

#endif
