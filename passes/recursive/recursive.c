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
 * cost    counted work; nothing of this runs where one recompute will do
 */
#include "passes/recursive/checkpoints.h"
#include "passes/recursive/recursive.h"
#include "passes/recursive/stages.h"

#include <math.h>
#include <stdlib.h>

enum {
	GRID = 24, BISECT = 12,
	WALK_WORK = 40000000,           /* of one search */
	REPEATS = 16,                   /* steps per node, on average */
	/* Two stages are few enough for branch and bound to come far; many
	 * say more where memory is short, almost without it. */
	TWO_NODES = 10000, MANY_NODES = 5000, STAGES = 10, COLUMNS = 2500,
	CHECKPOINT_WORK = 5000000,      /* steps of all */
	HOLD_MAX = 40, HOLD_STAGES = 4, HOLD_NODES = 1000, HOLD_PLANS = 80
};

/* ---- walks ---- */

static bool
try_eviction(struct recursive_search *d, int64_t budget,
             const struct evict_weights *weights, int64_t *work)
{
	if (!remat_evict(d->r, d->constraint, budget, weights, work, &d->steps))
		return false;
	recursive_try(d);
	return true;
}

static void
try_evictions(struct recursive_search *d)
{
	static const struct evict_weights weights[] = {
		{ 1, 1, 1 }, { 1, 1, 0 }, { 0, 1, 1 }, { 1, 0.5, 0 },
		{ 0.5, 1, 1 }, { 2, 1, 0 }, { 1, 0, 1 }, { 1, 1, 0.5 },
		{ 0, 1, 0 }, { 2, 1, 1 },
	};
	enum { WAYS = sizeof weights / sizeof weights[0] };
	int64_t work = WALK_WORK, lo = 0, hi = d->top;
	struct watch *watch = d->r->watch;

	for (int i = 0; i < BISECT && work > 0 && !watch_over(watch); i++) {
		int64_t mid = lo + (hi - lo) / 2;
		bool ok = false;

		for (int k = 0; k < WAYS && !ok; k++)
			ok = try_eviction(d, mid, &weights[k], &work);
		if (ok)
			hi = mid;
		else
			lo = mid;
	}
	for (int i = 0; i <= GRID && work > 0 && !watch_over(watch); i++)
		for (int k = 0; k < WAYS; k++)
			try_eviction(d, hi + (d->top - hi) * i / GRID,
			             &weights[k], &work);
}

/* ---- checkpoints ---- */

static void
try_steps(void *data)
{
	recursive_try(data);
}

/* Runs even after the time limit: without it there may be no plan. */
static void
keep_states(struct recursive_search *d)
{
	NodeId turn = 1;

	while (turn < d->r->nnode && !d->r->node[turn].backward)
		turn++;
	checkpoints_all(d->r, d->constraint, turn, &d->steps, CHECKPOINT_WORK,
	                try_steps, d);
}

/* ---- stage programs ---- */

/* Plans that follow the 0-1 program of a few stages, for falling amounts of
 * memory; of graphs so small that walks miss some. */
static void
try_stage_plans(struct recursive_search *d)
{
	struct stage_bound job = { .r = d->r, .memory = d->top - 1,
	                       .nodes = HOLD_NODES, .most = HOLD_STAGES,
	                       .plan = &d->steps };

	for (int k = 0; k < HOLD_PLANS && !watch_over(d->r->watch); k++) {
		struct remat_cost c;

		d->steps.n = 0;
		stages_bound(&job);
		if (d->steps.n == 0)
			return;
		c = recursive_try(d);
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

/* What makes plans, of graphs of at most so many forward nodes, in order. */
static const struct {
	int64_t most;
	void (*make)(struct recursive_search *);
} generators[] = {
	{ INT64_MAX, keep_states },
	{ INT64_MAX, nested_search },
	{ INT64_MAX, try_evictions },
	{ HOLD_MAX, try_stage_plans },
	{ INT64_MAX, recursive_fill },
};

struct recursive_search *
recursive_new(const struct remat *r, const uint8_t *constraint, int64_t top,
              double floor)
{
	struct recursive_search *d = arena_alloc(r->arena, sizeof *d);

	*d = (struct recursive_search){
		.known.trial = schedule_new(r, r->arena), .r = r,
		.constraint = constraint, .top = top, .floor = floor,
	};
	d->steps.arena = arena_new();
	d->steps.limit = REPEATS * (int32_t)r->nnode;
	for (size_t i = 0; i < sizeof generators / sizeof *generators; i++)
		if (count_forward(r) <= generators[i].most)
			generators[i].make(d);
	arena_free(d->steps.arena);
	d->steps = (struct step_list){ 0 };
	return d;
}

double
recursive_bound(const struct remat *r, int64_t memory)
{
	int64_t most = COLUMNS / (2 * (count_forward(r) + 1));
	struct stage_bound two = { .r = r, .memory = memory,
	                       .nodes = TWO_NODES };
	struct stage_bound many = { .r = r, .memory = memory,
	                        .nodes = MANY_NODES };
	double bound;

	two.most = (int)(most < 2 ? most : 2);
	many.most = (int)(most < STAGES ? most : STAGES);
	bound = stages_bound(&two);
	return many.most > two.most ? fmax(bound, stages_bound(&many))
		: bound;
}
