/* The 0-1 stage program, see stages.c. */
#ifndef PASSES_RECURSIVE_STAGE_PROGRAM_H
#define PASSES_RECURSIVE_STAGE_PROGRAM_H

#include "passes/recursive/stages.h"
#include "passes/ilp/ilp.h"

/* Columns that are no variables. */
enum { ZERO = -1, ONE = -2 };

struct stage_program {
	struct stage_bound *job;
	const struct remat *r;
	Arena *arena;
	uint64_t *after;                /* any order, by node: what is made
	                                 * from it */
	size_t nword;
	NodeId w[STAGES_MAX];
	int n;
	struct readers readers;
	int *x[STAGES_MAX], *y[STAGES_MAX + 1];
	int *z;                         /* by node */
	double unit_sec, unit_bytes;
	double sure;                    /* seconds of what runs in any plan */
	struct step_list plan;          /* of the last point */
	struct remat_cost cost;
	Ilp *lp;
};

/* What follows from the links: before anything else. */
void stages_index(struct stage_program *);
/* Columns and rows for the stages as they are, into p->lp. */
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
