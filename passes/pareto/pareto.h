/* Room pareto: recompute time against memory, for every amount of memory.
 *
 * in      a problem of room remat_model, the user's constraints by storage
 * out     plans of class "once" from the fastest to the smallest, and lower
 *         bounds of recompute time
 * must not know budgets, presets and how a plan is chosen
 */
#ifndef PASSES_PARETO_PARETO_H
#define PASSES_PARETO_PARETO_H

#include "passes/pareto/partition.h"

/* compose.c: plans and bounds by memory, made of the parts of forward. */
struct pareto_curve;

/* NULL: the time was over first. */
struct pareto_curve *pareto_new(struct partition *);
/* The same plans; bounds are of seconds of clones and of waits, for plans that
 * may have values in host memory. */
struct pareto_curve *pareto_with_host(const struct pareto_curve *,
                                      const struct remat_host *);
/* Number of plans on the curve; plan 0 is the fastest one. */
int32_t pareto_count(const struct pareto_curve *);
/* Estimated bytes that plan i needs in the arena. */
int64_t pareto_bytes(const struct pareto_curve *, int32_t i);
/* Lower bound of the seconds that plan i spends on clones. */
double pareto_least(const struct pareto_curve *, int32_t i);
/* Writes plan i: drop[s] != 0 for every storage s that it drops. */
void pareto_plan(const struct pareto_curve *, int32_t i, uint8_t *drop);
/* No plan of class "once" within so much memory spends fewer seconds on
 * clones; INFINITY: there is no such plan. */
double pareto_bound(struct pareto_curve *, int64_t memory);

#endif
