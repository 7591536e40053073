/* Plans that compute values again more than once: the search for them.
 *
 * what    for memory below what plans of class "once" reach with ease: a set
 *         of sequences, none of which is both slower and larger than another
 * method  checkpoints (checkpoints.c), which need no search; the chain's
 *         nested segments (nested.c) and walks with a full arena
 *         (remat_evict.c), at amounts of memory that do not depend on the
 *         budget: the least that a walk gets through with, by bisection, and
 *         a grid from there to the top; for small graphs what the stage
 *         program holds (stages.c).  Then what they leave idle is filled
 *         (recursive_fill.c)
 * cost    counted work, less in large graphs (remat_work); nothing of this runs
 *         where one recompute will do
 */
#include "passes/recursive/checkpoints.h"
#include "passes/recursive/recursive.h"
#include "passes/recursive/sequence_generators.h"
#include "passes/recursive/stages.h"

#include <stdlib.h>

enum {
	GRID = 24, BISECT = 12,
	REPEATS = 16,                   /* steps per node, on average */
	BOUND_NODES = 5000, STAGES = 10, COLUMNS = 2500,
	HOLD_MAX = 40, HOLD_STAGES = 4, HOLD_NODES = 1000
};

/* ---- walks ---- */

static bool
try_eviction(struct plan_pool *pool, struct step_list *s, int64_t budget,
             const struct evict_weights *weights, int64_t *work)
{
	if (!remat_evict(pool->r, pool->constraint, budget, weights, work, s))
		return false;
	pool_try_steps(pool, s->step, s->n);
	return true;
}

static void
try_evictions(struct plan_pool *pool, struct step_list *s, int64_t work)
{
	static const struct evict_weights weights[] = {
		{ 1, 1, 1 }, { 1, 1, 0 }, { 0, 1, 1 }, { 1, 0.5, 0 },
		{ 0.5, 1, 1 }, { 2, 1, 0 }, { 1, 0, 1 }, { 1, 1, 0.5 },
		{ 0, 1, 0 }, { 2, 1, 1 },
	};
	enum { WAYS = sizeof weights / sizeof weights[0] };
	int64_t lo = 0, hi = pool->top;
	struct watch *watch = pool->r->watch;

	for (int i = 0; i < BISECT && work > 0 && !watch_over(watch); i++) {
		int64_t mid = lo + (hi - lo) / 2;
		bool ok = false;

		for (int k = 0; k < WAYS && !ok; k++)
			ok = try_eviction(pool, s, mid, &weights[k], &work);
		if (ok)
			hi = mid;
		else
			lo = mid;
	}
	for (int i = 0; i <= GRID && work > 0 && !watch_over(watch); i++)
		for (int k = 0; k < WAYS; k++)
			try_eviction(pool, s, hi + (pool->top - hi) * i / GRID,
			             &weights[k], &work);
}

/* ---- checkpoints ---- */

struct offering {
	struct plan_pool *pool;
	const struct step_list *steps;
};

static void
offer_steps(void *data)
{
	const struct offering *o = data;

	pool_try_steps(o->pool, o->steps->step, o->steps->n);
}

/* Runs even after the time limit: without it there may be no plan. */
static void
keep_states(struct plan_pool *pool, struct step_list *s, int64_t work)
{
	const struct remat *r = pool->r;
	struct offering o = { pool, s };
	NodeId turn = 1;

	while (turn < r->nnode && !r->node[turn].backward)
		turn++;
	checkpoints_all(r, pool->constraint, turn, s, work, offer_steps, &o);
}

/* ---- stage programs ---- */

/* Plans that follow the 0-1 program of a few stages, for falling amounts of
 * memory; of graphs so small that walks miss some. */
static void
try_stage_plans(struct plan_pool *pool, struct step_list *s, int64_t work)
{
	struct stage_bound job = { .r = pool->r, .memory = pool->top - 1,
	                       .nodes = HOLD_NODES, .most = HOLD_STAGES,
	                       .plan = s };

	for (; work > 0 && !watch_over(pool->r->watch); work -= HOLD_NODES) {
		struct remat_cost c;

		s->n = 0;
		stages_bound(&job);
		if (s->n == 0)
			return;
		c = pool_try_steps(pool, s->step, s->n);
		job.memory = (c.live < job.memory ? c.live : job.memory) - 1;
	}
}

static int64_t
count_forward(const struct remat *r)
{
	int64_t n = 0;

	for (NodeId i = 1; i < r->nnode; i++)
		n += !r->node[i].backward;
	return n;
}

/* What makes plans, of graphs of at most so many forward nodes, in order, each
 * with its share of work: steps, but of nested segments entries of tables, and
 * of stage programs nodes of branch and bound. */
static const struct {
	int64_t most, work;
	void (*make)(struct plan_pool *, struct step_list *, int64_t work);
} generators[] = {
	{ INT64_MAX, 5000000, keep_states },
	{ INT64_MAX, 120000000, nested_search },
	{ INT64_MAX, 40000000, try_evictions },
	{ HOLD_MAX, 80000, try_stage_plans },
	{ INT64_MAX, 4000000, recursive_fill },
};

struct plan_pool *
recursive_new(const struct remat *r, const uint8_t *constraint, int64_t top,
              double floor)
{
	struct plan_pool *pool = pool_new(r, constraint, top, r->arena);
	struct step_list steps = { .arena = arena_new(),
	                           .limit = REPEATS * (int32_t)r->nnode };

	pool->top = top;
	pool->floor = floor;
	for (size_t i = 0; i < sizeof generators / sizeof *generators; i++)
		if (count_forward(r) <= generators[i].most)
			generators[i].make(pool, &steps,
			                   remat_work(r, generators[i].work));
	arena_free(steps.arena);
	return pool;
}

double
recursive_bound(const struct remat *r, int64_t memory)
{
	int64_t most = COLUMNS / (2 * (count_forward(r) + 1));
	struct stage_bound job = { .r = r, .memory = memory,
	                       .nodes = BOUND_NODES };

	job.most = (int)(most < STAGES ? most : STAGES);
	return stages_bound(&job);
}
