/* Room ilp: linear and 0-1 programs; the only interface to GLPK.
 *
 * in      columns with bounds and costs, rows, a limit of work
 * out     a point of least cost, and a bound
 * must not know graphs and plans
 *
 * Minimise the sum of cost * column subject to rows.  Solving stops after
 * counted work, so that equal programs give equal answers.
 */
#ifndef PASSES_ILP_ILP_H
#define PASSES_ILP_ILP_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/base/arena.h"
#include "ir/base/watch.h"

typedef struct Ilp Ilp;

enum ilp_status {
	ILP_OPTIMAL,                    /* within the gap */
	ILP_FEASIBLE,                   /* stopped early with an answer */
	ILP_NONE,                       /* stopped early without one */
	ILP_INFEASIBLE,                 /* proven */
	ILP_FAILED                      /* numerical trouble, out of memory,
	                                 * interrupted */
};

struct ilp_limit {
	int64_t pivots, nodes;          /* most simplex pivots and
	                                 * branch-and-bound nodes; 0: no
	                                 * limit */
	struct watch *watch;            /* when to stop early; NULL: never */
	double gap;                     /* absolute gap, in units of the
	                                 * objective, at which to stop */
	const double *start;            /* feasible point, by column; NULL */
	bool for_bound;                 /* raise the bound rather than find
	                                 * points early */
};

struct ilp_answer {
	enum ilp_status status;
	double objective;
	double bound;                   /* no point has a lower objective */
	double *x;                      /* values by column; NULL if there is no
	                                 * point */
};

/* The program lives in the arena; ilp_free gives back what GLPK holds. */
Ilp *ilp_new(Arena *);
void ilp_free(Ilp *);
/* Give back what GLPK keeps between programs; none may be alive. */
void ilp_end(void);
/* A column lower <= x <= upper; returns its number, from 0. */
int ilp_col(Ilp *, double lower, double upper, double cost, bool integer);
/* A row lower <= sum coef * col <= upper (-/+INFINITY: open). */
void ilp_row(Ilp *, double lower, double upper, int n, const int *col,
             const double *coef);
/* Without integrality; starts from the last basis. */
struct ilp_answer ilp_relax(Ilp *, const struct ilp_limit *, Arena *);
/* With integrality. */
struct ilp_answer ilp_solve(Ilp *, const struct ilp_limit *, Arena *);

#endif
