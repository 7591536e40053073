/* Room account: the plan as an object.
 *
 * in      the final graph
 * out     tensors, steps, lifetimes and sums, derived from the graph alone
 * must not know how the plan was found, and who reads it
 */
#ifndef PASSES_ACCOUNT_ACCOUNT_H
#define PASSES_ACCOUNT_ACCOUNT_H

#include "passes/pass.h"

PassFn pass_account;

/* The plan of a graph, into p->keep.  claimed: the pass's budget and bound are
 * about this graph; else its plan claims neither. */
Plan *plan_build(Pass *, const Graph *, bool claimed);
/* sums.c: fill in lifetimes, decisions and the summary of a plan that has its
 * tensors and steps.  Before, its summary says the budget, the peak of
 * keep-everything, the alignment, and of a bound seconds and class (NULL: none
 * is claimed). */
void plan_sum(Plan *, Diag *, Arena *scratch);
/* The lower bound to report beside a plan of `step` seconds, `base` of which
 * any plan takes: `base` if the bound is above the plan, and so wrong. */
double reported_bound(double bound, double base, double step);

#endif
