/* All ranks of a sharded graph, interpreted in lockstep: every node on all of
 * them before the next, in double precision.
 *
 * The yardstick for sharding.  Contents go in and out whole, as a graph for
 * one rank has them; which elements a rank holds is reckoned from the words
 * of ir/ir.h, with no code of ir/placement.c.  A graph that is not sharded is one
 * of a single rank.
 */
#ifndef TESTS_REF_SPMD_H
#define TESTS_REF_SPMD_H

#include "tests/ref/interp.h"

struct spmd;

/* Borrows the graph, which must not grow until spmd_free. */
struct spmd *spmd_new(const Graph *);
void spmd_free(struct spmd *);
int spmd_ranks(const struct spmd *);
struct interp *spmd_rank(struct spmd *, int);
/* For all ranks, see interp_env; starts as that does. */
void spmd_set_env(struct spmd *, const struct interp_env *);
/* Keep every rank's values in their planned bytes, see interp_place. */
bool spmd_place(struct spmd *);

/* Of the whole, with merged dims as one. */
Shape spmd_shape(const Placement *, const Shape *local);
/* Give every rank its part: what is cut is cut, a summand is rank 0's. */
void spmd_set(struct spmd *, ValId v, const double *whole);
void spmd_load(struct spmd *, ValId v, const void *raw);        /* in v's dtype */
/* What is cut is joined, summands are added; false, and a message, if there is
 * none or ranks that should hold the same do not. */
bool spmd_get(struct spmd *, ValId v, double *whole);
/* The same as if v lay as `split` says. */
bool spmd_get_as(struct spmd *, ValId v, const Placement *, double *whole);
/* Every value that nodes first..last-1 wrote lies as it says; false names the
 * first of which ranks that should have the same do not. */
bool spmd_check(struct spmd *, NodeId first, NodeId last);
/* What an update in nodes first..last-1 wrote is what the next step reads. */
void spmd_carry_over(struct spmd *, NodeId first, NodeId last);

/* Carry out nodes first..last-1 on all ranks; false: spmd_error. */
bool spmd_run(struct spmd *, NodeId first, NodeId last);
bool spmd_run_all(struct spmd *);
const char *spmd_error(const struct spmd *);

#endif
