/* Known plans, and the choice among them.
 *
 * A pool keeps, for each of 1,024 equal ranges of memory, the fastest and the
 * smallest plan offered; and the smallest of all.  A slower or larger one may
 * still be wanted, because it is packed more tightly.
 *
 * Nothing in a pool depends on the budget that is asked for: equal graphs give
 * equal pools, so a larger budget chooses from at least as many plans.
 */
#ifndef PASSES_REMAT_MODEL_PLAN_POOL_H
#define PASSES_REMAT_MODEL_PLAN_POOL_H

#include "passes/remat_model/remat_model.h"

struct known_plan {
	int64_t live;                   /* most bytes alive; -1: no plan */
	int64_t placed;                 /* arena bytes; -1: not packed yet */
	double sec;                     /* seconds of the clones */
	uint8_t *drop;                  /* the plan, if it is a set */
	struct rstep *step;             /* the plan, if it is a sequence; NULL:
	                                 * a set */
	int32_t nstep;
};

struct plan_pool {
	const struct remat *r;
	const uint8_t *constraint;      /* by storage: 'k' keep, 'r' recompute,
	                                 * 0 none */
	struct schedule *trial;         /* of the plan tried last */
	Arena *arena;                   /* plans lie there */
	int64_t top;                    /* plans of so many bytes or more are
	                                 * not taken */
	double floor;                   /* nor are plans faster than this */
	int64_t width;                  /* bytes of a range */
	struct known_plan *plan;        /* [n], the smallest one last; places
	                                 * may be empty */
	int32_t n;
};

/* An empty pool for plans of up to so many bytes. */
struct plan_pool *pool_new(const struct remat *, const uint8_t *constraint,
                           int64_t bytes, Arena *);
/* Evaluate a set, and take it if it is wanted. */
struct remat_cost pool_try_set(struct plan_pool *, const uint8_t *drop);
/* The same of a sequence, which is long: it is not taken either if a known plan
 * is as fast and as small. */
struct remat_cost pool_try_steps(struct plan_pool *, const struct rstep *,
                                 int32_t n);
/* A small pool to choose from, which takes nothing more: the plans of up to
 * `live` bytes that no other one beats in both bytes and seconds. */
struct plan_pool *pool_front(const struct plan_pool *, int64_t live,
                             struct schedule *trial, Arena *);
/* Fill an empty pool with all sets of n storages dropped, n being small, each
 * in a place of its own; false: the time was over before that. */
bool pool_try_all_sets(struct plan_pool *, const int32_t *storage, int n);

/* A copy in the problem's arena: a pool writes new plans over those it has. */
struct known_plan known_copy(const struct remat *, const struct known_plan *);
/* Evaluate a known plan, of whichever kind. */
struct remat_cost known_eval(struct schedule *, const struct known_plan *);
/* Arena of a plan once packed (remembered). */
int64_t known_placed(struct schedule *, struct known_plan *);
/* Fastest plan that fits when placed, if it is better than another one (NULL:
 * none); else that one. */
struct known_plan *pool_best(const struct plan_pool *, int64_t arena,
                             struct known_plan *than);
/* The same by live bytes, without packing. */
struct known_plan *pool_best_live(const struct plan_pool *, int64_t live);
/* The plan with the fewest live bytes. */
struct known_plan *pool_smallest(const struct plan_pool *);
/* Smallest arena of any plan; INT64_MAX: there are none. */
int64_t pool_least(const struct plan_pool *);

#endif
