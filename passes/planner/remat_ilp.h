/* The state of the monotone 0-1 program: see remat_ilp.c. */
#ifndef PASSES_PLANNER_REMAT_ILP_H
#define PASSES_PLANNER_REMAT_ILP_H

#include "passes/remat_model/remat_model.h"
#include "passes/ilp/ilp.h"

enum { MAX_BREAK = 40 };

struct point {                          /* a place for a memory row */
	NodeId node;
	int32_t stage;                  /* -1: forward */
	bool after;                     /* the stage itself is over */
	int64_t fixed;
	bool used;
};

struct model {
	const struct remat *r;
	const uint8_t *constraint;
	Arena *arena;
	Ilp *ilp;
	double unit_sec, unit_bytes;
	int64_t memory;
	int32_t nstage;
	int32_t *stage_of;              /* by node: last stage begun; -1 */
	int32_t *first, *last;          /* stages of direct uses, by storage */
	NodeId *end_forward;            /* last forward node that touches it */
	NodeId *end;                    /* last node that touches it */
	int32_t *x;                     /* column by storage; -1 */
	int32_t *hi, *lo;               /* stages by node; hi -1: never again */
	int32_t *nbreak;
	int32_t (*at)[MAX_BREAK];       /* stages of z, ascending, by node */
	int32_t (*z)[MAX_BREAK];        /* columns of z */
	struct readers use;
	struct point *point;
	int32_t npoint;
	int ncol, nrow;
	int *col;                       /* row under construction */
	double *coef;
	int len;
	double *value;                  /* of columns, last solution */
	int32_t *charged_to;            /* by node: storage + 1 */
	int *wcol;
	int wlen;
	double extra;
};

/* May be made again without being stored. */
static inline bool
inlinable(const struct model *m, int32_t s)
{
	return m->r->node[m->r->store[s].def].inlinable;
}

static inline bool
forward(const struct model *m, int32_t s)
{
	return !m->r->node[m->r->store[s].def].backward;
}

static inline int
new_col(struct model *m, double lower, double upper, double cost, bool integer)
{
	m->ncol++;
	return ilp_col(m->ilp, lower, upper, cost, integer);
}

static inline void
term(struct model *m, int col, double coef)
{
	m->col[m->len] = col;
	m->coef[m->len++] = coef;
}

static inline void
end_row(struct model *m, double lower, double upper)
{
	ilp_row(m->ilp, lower, upper, m->len, m->col, m->coef);
	m->nrow++;
	m->len = 0;
}

/* Column of z at the first of its stages >= t. */
static inline int
z_up(const struct model *m, NodeId n, int32_t t)
{
	for (int32_t k = 0; k < m->nbreak[n]; k++)
		if (m->at[n][k] >= t)
			return m->z[n][k];
	return m->z[n][m->nbreak[n] - 1];
}

/* Column of z at the last of its stages <= t, or -1 if there is none. */
static inline int
z_down(const struct model *m, NodeId n, int32_t t)
{
	for (int32_t k = m->nbreak[n] - 1; k >= 0; k--)
		if (m->at[n][k] <= t)
			return m->z[n][k];
	return -1;
}

/* ilp_memory.c: where memory rows may stand. */
void model_points(struct model *);
/* Add the rows that the last solution violates most; false: there is none. */
bool model_violated(struct model *);

#endif
