/* What makes plans that are sets, and what bounds them. */
#ifndef PASSES_PLANNER_SET_GENERATORS_H
#define PASSES_PLANNER_SET_GENERATORS_H

#include "passes/remat_model/plan_pool.h"

/* remat_preset.c: --keep and --recompute-values as 'k' and 'r' by storage. */
bool remat_constraints(Pass *, const struct remat *, uint8_t *constraint);
/* The set of a preset. */
void remat_preset(const struct remat *, const uint8_t *constraint,
                  enum remat_mode, int64_t every, uint8_t *drop);

/* remat_search.c: descend from keep-everything to the least memory, all
 * targets on the way. */
void remat_search(struct plan_pool *);
/* Work on one target from a set on, with so many random changes. */
void remat_polish(struct plan_pool *, int64_t target, int64_t evals,
                  const uint8_t *start);

/* remat_ilp.c: no plan of class "once" that needs at most `memory` bytes in
 * the arena spends fewer seconds on clones; INFINITY: there is none.  While it
 * is more than `gap` below `sec`, branch and bound over at most `nodes` nodes
 * may raise it. */
double remat_bound(const struct remat *, const uint8_t *constraint,
                   int64_t memory, double sec, double gap, int64_t nodes);
/* The same, and plans for that memory into the pool: rounded, and by branch and
 * bound over at most `nodes` nodes while the gap is larger than `gap`
 * seconds. */
double remat_ilp(struct plan_pool *, int64_t memory, double gap, int64_t nodes,
                 int64_t evals);

#endif
