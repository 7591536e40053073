/* Choose the plan for a budget.
 *
 * what    the fastest known plan whose placed arena fits, and a lower bound
 * method  The generators of sets fill a pool that does not depend on the
 *         budget: all sets if there are few, else presets, and for small graphs
 *         descent and annealing (remat_search.c).  Three more sources are asked
 *         only when a budget wants them:
 *         - ranges of budgets, for each of which least cuts at prices of memory
 *           (cut_search.c), in small graphs annealing and the 0-1 program
 *           (remat_ilp.c), find sets: from the range of the budget downwards
 *           until the bound of one says that no lower one can have a faster
 *           plan;
 *         - where forward falls into parts (partition.c), the plans of a
 *           Pareto curve (compose.c), which replace descent and 0-1 program
 *           unless the graph is small;
 *         - sequences that repeat nodes more than once (recursive.c), near the
 *           least memory that sets reach, or below.
 *         Each has a pool of its own, and starts from what does not depend on
 *         the budget.  A budget looks at the ranges from its own to where its
 *         walk ends, whatever was asked before, so that it always gets the
 *         same plan, and a larger one none that is slower (but for 1e-9 of
 *         its recomputation, within which a bound counts as reached).
 * cost    counted work: evaluations, flows, pivots, branch and bound nodes
 */
#include "passes/planner/choose.h"
#include "passes/pareto/pareto.h"
#include "passes/planner/remat_cut.h"
#include "passes/planner/set_generators.h"
#include "passes/recursive/recursive.h"
#include "passes/remat_model/remat_host.h"

#include <math.h>
#include <string.h>

enum {
	GRID = 96, EXHAUSTIVE = 14, SMALL_MAX = 800, SMALL_CURVE_MAX = 100,
	ILP_MAX = 100,
	MARGIN = 200,                   /* parts of the arena */
	PARTS_MIN = 3, RECURSIVE_LARGE = 2000,
	ILP_NODES = 40, BOUND_NODES = 300,
	HOSTS = 2                       /* limits of host memory */
};

/* Storages^2 nodes of a small graph: what one step of a descent takes. */
#define SMALL 1e9

/* A range of budgets. */
struct range {
	struct plan_pool *found;        /* NULL: not solved yet */
	double bound;                   /* of its begin */
};

struct plan_selector {
	const struct remat *r;
	struct schedule *trial;
	const uint8_t *constraint, *keep_all;
	const struct options *opt;
	int free;                       /* storages that the user leaves to
	                                 * choose */
	struct plan_pool *base;         /* the same for every budget */
	bool exhausted;                 /* and all plans of class "once" */
	int64_t top;                    /* arena of keep-everything */
	struct range range[GRID + 1];
	int64_t anneal;                 /* evaluations of one annealing */
	struct cut_net *net;
	struct cut_bound *cuts;
	struct pareto_curve *curve;     /* NULL: no parts */
	struct known_plan *known;       /* by number on the curve */
	struct plan_pool *recursive;    /* NULL: not looked for yet */
	struct plan_selector *host[HOSTS]; /* with host memory; NULL: not asked
	                                 * for yet */
	const struct plan_selector *without; /* of the problem without host
	                                 * memory, until its sets are known
	                                 * here; NULL */
};

/* ---- what does not depend on the budget ---- */

/* A pool that knows how to keep everything, and takes no larger plan. */
static struct plan_pool *
new_set_pool(const struct plan_selector *c, Arena *arena)
{
	struct plan_pool *pool = pool_new(c->r, c->constraint, c->top, arena);

	pool_try_set(pool, c->keep_all);
	return pool;
}

static void
try_all_sets(struct plan_selector *c)
{
	int32_t cand[EXHAUSTIVE], n = 0;

	for (int32_t s = 0; s < c->r->nstore; s++)
		if (c->r->store[s].candidate && !c->constraint[s])
			cand[n++] = s;
	c->exhausted = pool_try_all_sets(c->base, cand, n);
}

/* Searches that look at every storage by itself are worth their time: there is
 * no curve, or it has few values to choose from, between the plans of which
 * there are others. */
static bool
is_small_graph(const struct plan_selector *c)
{
	const struct remat *r = c->r;

	return (r->host || r->ncand <= (c->opt->brief ? 0 : !c->curve
	                                ? SMALL_MAX : SMALL_CURVE_MAX))
		&& (double)r->ncand * r->ncand * r->nnode <= SMALL;
}

/* Linear programs are worth their time.  With many storages that is long, and
 * cuts leave little to gain.  With host memory the program's optimum is nearly
 * as far below the best plan as the bound of cuts: see docs/memory.md. */
static bool
has_small_program(const struct plan_selector *c)
{
	return is_small_graph(c) && !c->r->host
		&& (c->r->ncand <= ILP_MAX || c->opt->gap_pct <= 0);
}

static void
try_presets(struct plan_selector *c)
{
	const struct remat *r = c->r;
	uint8_t *drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);

	/* runs even after the time limit: without it there may be no
	 * plan */
	remat_preset(r, c->constraint, REMAT_SELECTIVE, 1, drop);
	pool_try_set(c->base, drop);
	for (int64_t every = 1; every <= 1 || every < r->nlayer; every *= 2) {
		remat_preset(r, c->constraint, REMAT_EVERY, every, drop);
		pool_try_set(c->base, drop);
	}
}

/* Descend from keep-everything. */
static void
descend(struct plan_selector *c)
{
	remat_search(c->base);
}

/* ---- the budget grid ---- */

/* Begin of a range: no plan is known below the least one. */
static int64_t
grid_bytes(const struct plan_selector *c, int64_t at)
{
	int64_t memory = c->top / GRID * at;
	int64_t least = pool_smallest(c->base)->live;

	return memory > least ? memory : least;
}

/* Search for sets of `memory` bytes, by least cuts up to `end`; in a branch and
 * bound of so many nodes as long as the gap is wider than that.  Returns a
 * bound for `memory`. */
static double
search_sets(struct plan_selector *c, struct plan_pool *pool, int64_t memory,
            int64_t end, double gap, int64_t nodes)
{
	struct cut_proof proof = cut_bound_at(c->cuts, memory);
	struct known_plan *start;

	cut_search(c->net, pool, memory, end, &proof, gap);
	start = pool_best_live(pool, memory);
	if (start && start->sec - proof.sec <= gap)
		return proof.sec;
	if (start && is_small_graph(c))
		remat_polish(pool, memory, c->anneal, start->drop);
	if (!has_small_program(c))
		return proof.sec;
	return fmax(proof.sec, remat_ilp(pool, memory, gap, nodes, c->anneal));
}

/* Solve for a range of the grid, in a pool of its own. */
static struct range
solve_range(struct plan_selector *c, int64_t memory, int64_t end)
{
	struct known_plan *start = pool_best_live(c->base, memory);
	Arena *arena = arena_new();
	struct plan_pool *pool = new_set_pool(c, arena);
	double gap = c->opt->gap_pct / 100 * c->r->base_sec;
	struct range range;

	if (start)
		pool_try_set(pool, start->drop);
	range.bound = search_sets(c, pool, memory, end, gap, ILP_NODES);
	/* a larger one might be faster than a larger budget's, which is not
	 * looked for here */
	range.found = pool_front(pool, end, c->trial, c->r->arena);
	arena_free(arena);
	return range;
}

/* Push the least memory of all budgets further down. */
static void
minimise_peak(struct plan_selector *c)
{
	struct known_plan *least = pool_smallest(c->base);
	int64_t floor = cut_bound_least(c->cuts);

	for (int k = 0; k < 6 && least->live > floor
	     && !watch_over(c->r->watch); k++) {
		int64_t before = least->live;
		int64_t target = before - before
			/ (has_small_program(c) ? 128 : 8);

		if (target < floor)
			target = floor;
		search_sets(c, c->base, target, target, 0, 0);
		if (least->live >= before)
			break;
	}
}

/* ---- the curve ---- */

static struct known_plan *
on_curve(struct plan_selector *c, int32_t i)
{
	struct known_plan *f = &c->known[i];
	struct remat_cost cost;

	if (f->drop)
		return f;
	f->drop = arena_array(c->r->arena, (size_t)c->r->nstore + 1, 1);
	pareto_plan(c->curve, i, f->drop);
	cost = schedule_set(c->trial, f->drop);
	f->live = cost.live;
	f->sec = cost.sec;
	f->placed = -1;
	return f;
}

static void
find_curve(struct plan_selector *c)
{
	struct partition *y = partition_new(c->r, c->constraint);
	int32_t n;

	if (!y || y->n < PARTS_MIN || !partition_solve(y))
		return;
	c->curve = pareto_new(y);
	if (!c->curve)
		return;
	c->anneal /= 2;                 /* little is left to be found */
	n = pareto_count(c->curve);
	c->known = arena_array(c->r->arena, (size_t)n + 1, sizeof *c->known);
	if (n > 0)                      /* for the least that works */
		pool_try_set(c->base, on_curve(c, n - 1)->drop);
}

static struct known_plan *
pareto_best(struct plan_selector *c, int64_t arena, struct known_plan *best)
{
	int32_t n = c->known ? pareto_count(c->curve) : 0;

	for (int32_t i = 0; i < n && !watch_over(c->r->watch); i++) {
		struct known_plan *f;

		if (pareto_bytes(c->curve, i) > arena + c->top / MARGIN
		    || (best && pareto_least(c->curve, i) >= best->sec))
			continue;
		f = on_curve(c, i);
		if (f->live <= arena && (!best || f->sec < best->sec)
		    && known_placed(c->trial, f) <= arena)
			best = f;
	}
	return best;
}

/* Arena from which on one recompute will do. */
static int64_t
recursive_top(const struct plan_selector *c)
{
	int64_t least = pool_smallest(c->base)->live;

	/* the search is long on large graphs, and composing as good */
	if (c->curve && (c->opt->brief || c->r->nnode > RECURSIVE_LARGE))
		return least + least / 8;
	return least + least / 2;
}

static void
search_recursive(struct plan_selector *c)
{
	int64_t top = recursive_top(c);
	const struct known_plan *f;

	if (c->recursive)
		return;
	f = pareto_best(c, top, pool_best(c->base, top, NULL));
	c->recursive = recursive_new(c->r, c->constraint, top, f ? f->sec : 0);
}

/* Of the plans that are known without a search of ranges. */
static struct known_plan *
best_known_plan(struct plan_selector *c, int64_t arena)
{
	struct known_plan *best = pareto_best(c, arena, NULL);

	best = pool_best(c->base, arena, best);
	if (arena < recursive_top(c) && !c->r->host) {
		search_recursive(c);
		best = pool_best(c->recursive, arena, best);
	}
	return best;
}

/* No plan within so much memory is faster. */
static bool
is_proven_best(const struct plan_selector *c, int64_t arena,
               const struct known_plan *f)
{
	return c->curve && f
		&& f->sec <= pareto_bound(c->curve, arena) * (1 + 1e-9);
}

/* ---- host memory ---- */

/* Into the pool: all sets that are known without it. */
static void
add_known_sets(struct plan_selector *c)
{
	const struct plan_selector *of = c->without;
	uint8_t *drop = arena_array(c->r->arena, (size_t)c->r->nstore + 1, 1);
	int32_t n = of->known ? pareto_count(of->curve) : 0;

	for (int32_t i = 0; i < of->base->n; i++)
		if (of->base->plan[i].live >= 0)
			pool_try_set(c->base, of->base->plan[i].drop);
	for (int32_t i = 0; i < n && !watch_over(c->r->watch); i++) {
		pareto_plan(of->curve, i, drop);
		pool_try_set(c->base, drop);
	}
	c->without = NULL;
	minimise_peak(c);
}

static struct plan_selector *
selector_with_host(const struct plan_selector *of, double rate, int64_t room)
{
	struct plan_selector *c = arena_alloc(of->r->arena, sizeof *c);
	struct remat *r = arena_alloc(of->r->arena, sizeof *r);

	*r = *of->r;
	r->host = remat_host_new(r, rate, room);
	*c = (struct plan_selector){ .r = r, .constraint = of->constraint,
		.keep_all = of->keep_all, .opt = of->opt, .free = of->free,
		/* begins at sets that are known, at each of many arenas */
		.anneal = of->anneal / 4, .trial = schedule_new(r, r->arena),
		.without = of };
	c->net = cut_net_new(r, c->constraint, r->arena);
	c->cuts = cut_bound_new(c->net);
	if (of->curve)
		c->curve = pareto_with_host(of->curve, r->host);
	c->top = schedule_set(c->trial, c->keep_all).live;
	if (c->top < GRID)
		c->top = GRID;
	c->base = new_set_pool(c, r->arena);
	return c;
}

struct plan_selector *
selector_host(struct plan_selector *c, double rate, int64_t room)
{
	for (int i = 0; i < HOSTS; i++) {
		if (!c->host[i])
			c->host[i] = selector_with_host(c, rate, room);
		if (c->host[i]->r->host->room == room)
			return c->host[i];
	}
	return c->host[HOSTS - 1];
}

/* In so many ranges at most. */
static struct known_plan *
search_budgets(struct plan_selector *c, int64_t arena, int64_t ranges)
{
	struct known_plan *best;
	int64_t at = arena / (c->top / GRID);

	if (c->without)
		add_known_sets(c);
	best = best_known_plan(c, arena);
	if (c->exhausted || is_proven_best(c, arena, best))
		return best;
	/* the lowest range begins at the least known plan */
	if (at < pool_smallest(c->base)->live / (c->top / GRID))
		at = pool_smallest(c->base)->live / (c->top / GRID);
	if (at > GRID)
		at = GRID;
	for (; at >= 0 && ranges-- > 0; at--) {
		int64_t memory = grid_bytes(c, at);
		struct range *range = &c->range[at];

		if (!range->found && watch_over(c->r->watch))
			break;
		if (!range->found)
			*range = solve_range(c, memory,
				c->top / GRID * (at + 1));
		best = pool_best(range->found, arena, best);
		if (memory > c->top / GRID * at
		    || (best && (best->sec <= range->bound
		                 || is_proven_best(c, memory, best))))
			break;
	}
	return best;
}

/* ---- entry ---- */

struct known_plan
keep_all_plan(const struct plan_source *s)
{
	const struct remat *r = s->w->r;
	struct known_plan f = { .live = -1, .placed = -1 };

	f.drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);
	remat_keep_all(r, s->constraint, f.drop);
	f.sec = known_eval(s->w, &f).sec;
	return f;
}

static bool
has_few_sets(const struct plan_selector *c)
{
	return c->free <= EXHAUSTIVE;
}

static bool
has_many_sets(const struct plan_selector *c)
{
	return !has_few_sets(c);
}

/* The curve is not all that is needed. */
static bool
searches_sets(const struct plan_selector *c)
{
	return has_many_sets(c) && (!c->curve || is_small_graph(c));
}

static bool
descends(const struct plan_selector *c)
{
	return searches_sets(c) && is_small_graph(c);
}

static bool
is_open(const struct plan_selector *c)
{
	return !c->exhausted;
}

/* What makes plans, in order: each one adds to what those before it found. */
static const struct {
	bool (*when)(const struct plan_selector *);
	void (*make)(struct plan_selector *);
} generators[] = {
	{ has_few_sets, try_all_sets },
	{ has_many_sets, find_curve },
	{ descends, descend },
	{ is_open, try_presets },
	{ has_many_sets, minimise_peak },
};

struct plan_selector *
selector_new(const struct remat *r, const uint8_t *constraint,
             const struct options *opt)
{
	struct plan_selector *c = arena_alloc(r->arena, sizeof *c);
	uint8_t *drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);

	c->r = r;
	c->trial = schedule_new(r, r->arena);
	c->constraint = constraint;
	c->opt = opt;
	c->anneal = 1000000 / (int64_t)r->nnode;
	if (c->anneal < 1200)
		c->anneal = 1200;
	if (c->anneal > 8000)
		c->anneal = 8000;
	c->net = cut_net_new(r, constraint, r->arena);
	c->cuts = cut_bound_new(c->net);
	c->keep_all = drop;
	remat_keep_all(r, constraint, drop);
	c->top = schedule_set(c->trial, drop).live;
	if (c->top < GRID)
		c->top = GRID;
	c->base = new_set_pool(c, r->arena);
	for (int32_t s = 0; s < r->nstore; s++)
		c->free += r->store[s].candidate && !constraint[s];
	for (size_t i = 0; i < sizeof generators / sizeof *generators; i++)
		if (generators[i].when(c))
			generators[i].make(c);
	return c;
}

int64_t
selector_least(struct plan_selector *c)
{
	int64_t once = pool_least(c->base), least;

	search_recursive(c);
	least = pool_least(c->recursive);
	return least < once ? least : once;
}

const struct known_plan *
selector_best(struct plan_selector *c, int64_t arena)
{
	return search_budgets(c, arena, GRID + 1);
}

int64_t
selector_top(const struct plan_selector *c)
{
	return c->top;
}

const struct known_plan *
selector_near(struct plan_selector *c, int64_t arena)
{
	return search_budgets(c, arena, 1);
}

const struct known_plan *
selector_known_set(struct plan_selector *c, int i, int n)
{
	int64_t least = pool_smallest(c->base)->live;
	int64_t arena = least + (c->top - least) / n * i;

	return pool_best(c->base, arena, pareto_best(c, arena, NULL));
}

/* For sets. */
static double
bound_of_sets(struct plan_selector *c, int64_t arena, double sec)
{
	const struct remat *r = c->r;
	double bound = 0, gap = c->opt->gap_pct / 100 * r->base_sec;

	if (c->exhausted) {
		const struct known_plan *f = pool_best_live(c->base, arena);

		return f ? f->sec : 0;
	}
	if (c->curve)
		bound = pareto_bound(c->curve, arena);
	if (has_small_program(c) && !watch_over(r->watch) && sec - bound > gap)
		bound = fmax(bound, remat_bound(r, c->constraint, arena, sec,
		                                gap, BOUND_NODES));
	return isfinite(bound) ? bound : 0;
}

/* For plans that repeat nodes as often as they like. */
static double
bound_of_any(struct plan_selector *c, int64_t arena, bool sequence)
{
	double bound = cut_bound_at(c->cuts, arena).sec;

	if (sequence && !c->r->host)
		bound = fmax(bound, recursive_bound(c->r, arena
		                                  - cut_bound_slots(c->cuts)));
	return isfinite(bound) ? bound : 0;
}

struct recompute_bound
selector_bound(struct plan_selector *c, int64_t arena,
               const struct known_plan *f)
{
	struct recompute_bound any = { bound_of_any(c, arena, f->step), "any" };
	struct recompute_bound once = { 0, "once" };

	if (f->step || any.sec >= f->sec)
		return any;
	once.sec = bound_of_sets(c, arena, f->sec);
	return once.sec > any.sec ? once : any;
}

const struct known_plan *
selector_smallest(struct plan_selector *c)
{
	return best_known_plan(c, selector_least(c));
}
