/* Choose the plan for a budget.
 *
 * what    the fastest known plan whose placed arena fits, and a lower bound
 * method  What is known does not depend on the budget: an archive from
 *         presets, descent and annealing (remat_search.c), and at fixed
 *         amounts of memory ("rungs") the plans that the 0-1 program leads
 *         to (remat_ilp.c).  Rungs are worked on from the budget downwards,
 *         until the bound of one says that no lower one can be faster.  Few
 *         candidates are tried one and all.
 *         So a larger budget chooses from at least as many plans, and the
 *         smallest budget that works is the same whatever was asked for.
 *         Plans that repeat nodes more than once (deep.c) are looked for when
 *         the budget is near the least that one recompute can do, or below.
 *         Where forward falls into parts (partition.c), the plans of a curve
 *         (compose.c) come in: the fastest one that fits, of those reckoned
 *         to need not much more than the budget.  They take the place of
 *         archive and rungs unless the graph is small.
 * cost    counted work: evaluations, pivots, branch and bound nodes
 */
#include "passes/plan/choose.h"
#include "passes/deep/deep.h"
#include "passes/curve/partition.h"

#include <math.h>
#include <string.h>

enum {
	RUNGS = 96, EXHAUSTIVE = 14, ILP_MAX = 800,
	SLACK = 200,                    /* parts of the arena */
	PARTS_MIN = 3, CLIMB_MAX = 100, DEEP_LARGE = 2000,
	ILP_NODES = 40, BOUND_NODES = 300
};

struct choice {
	struct remat *r;
	const uint8_t *must;
	const struct options *opt;
	struct archive *base;           /* the same for every budget */
	bool exhausted;                 /* and all plans of class "once" */
	int64_t top;                    /* arena of keep-everything */
	struct shelf extra;             /* from rungs, placed */
	bool climbed[RUNGS + 1];
	double bound[RUNGS + 1];        /* of rungs climbed */
	int64_t polish;                 /* evaluations of one annealing */
	struct memory_curve *curve;     /* NULL: no parts */
	struct found *known;            /* by number on the curve */
	struct deep *deep;              /* NULL: not looked for yet */
};

/* ---- what does not depend on the budget ---- */

static bool
try_all(struct choice *c)
{
	int32_t cand[EXHAUSTIVE], n = 0;

	for (int32_t s = 0; s < c->r->nstore; s++)
		if (c->r->store[s].candidate && !c->must[s])
			cand[n++] = s;
	return archive_all(c->base, cand, n);
}

/* Rungs are worth their time: there is no curve, or it has few values to
 * choose from, between the plans of which there are others. */
static bool
climbs(const struct choice *c)
{
	return c->r->ncand <= (c->curve ? CLIMB_MAX : ILP_MAX);
}

static void
try_presets(struct choice *c)
{
	struct remat *r = c->r;
	uint8_t *drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);

	/* runs even after the time limit: without it there may be no
	 * plan */
	remat_preset(r, c->must, REMAT_SELECTIVE, 1, drop);
	archive_try(c->base, drop);
	for (int64_t every = 1; every <= 1 || every < r->nlayer; every *= 2) {
		remat_preset(r, c->must, REMAT_EVERY, every, drop);
		archive_try(c->base, drop);
	}
}

/* Push the least memory further down. */
static void
squeeze(struct choice *c)
{
	struct archive *a = c->base;
	struct found *least = archive_smallest(a);

	for (int k = 0; k < 6 && !watch_over(c->r->watch); k++) {
		int64_t before = least->live;
		int64_t target = before - before / 128;

		if (c->r->ncand <= ILP_MAX)
			remat_ilp(a, target, 0, 0, c->polish);
		else
			remat_polish(a, target, c->polish, least->drop);
		if (least->live >= before)
			break;
	}
}

/* ---- rungs ---- */

/* The lowest rung is where the least known plan is. */
static int64_t
rung_bytes(const struct choice *c, int64_t rung)
{
	int64_t memory = c->top / RUNGS * rung;
	int64_t least = archive_smallest(c->base)->live;

	return memory > least ? memory : least;
}

/* Work on one rung alone, in an archive of its own; returns the bound. */
static double
climb(struct choice *c, int64_t memory)
{
	struct found *start = shelf_live(&c->base->known, memory), *f;
	Arena *arena = arena_new();
	struct archive *a = archive_new(c->r, c->must, arena);
	double gap = c->opt->gap_pct / 100 * c->r->base_sec, bound;

	if (start) {
		archive_try(a, start->drop);
		remat_polish(a, memory, c->polish, start->drop);
	}
	bound = remat_ilp(a, memory, gap, ILP_NODES, c->polish);
	f = shelf_best(&a->known, memory);
	if (f) {
		struct found *e = &c->extra.plan[c->extra.n++];

		*e = *f;
		e->drop = arena_copy(c->r->arena, f->drop,
		                     (size_t)c->r->nstore + 1);
	}
	arena_free(arena);
	return bound;
}

/* ---- the curve ---- */

static struct found *
on_curve(struct choice *c, int32_t i)
{
	struct found *f = &c->known[i];
	struct remat_cost cost;

	if (f->drop)
		return f;
	f->drop = arena_array(c->r->arena, (size_t)c->r->nstore + 1, 1);
	curve_plan(c->curve, i, f->drop);
	cost = remat_eval(c->r, f->drop);
	f->live = cost.live;
	f->sec = cost.sec;
	f->placed = -1;
	return f;
}

static struct found *
curve_best(struct choice *c, int64_t arena, struct found *best)
{
	int32_t n = c->curve ? curve_count(c->curve) : 0;

	for (int32_t i = 0; i < n && !watch_over(c->r->watch); i++) {
		struct found *f;

		if (curve_bytes(c->curve, i) > arena + c->top / SLACK
		    || (best && curve_least(c->curve, i) >= best->sec))
			continue;
		f = on_curve(c, i);
		if (f->live <= arena && (!best || f->sec < best->sec)
		    && found_placed(c->r, f) <= arena)
			best = f;
	}
	return best;
}

/* Arena from which on one recompute will do. */
static int64_t
deep_top(const struct choice *c)
{
	int64_t least = archive_smallest(c->base)->live;

	/* the search is long on large graphs, and composing as good */
	if (c->curve && c->r->nnode > DEEP_LARGE)
		return least + least / 8;
	return least + least / 2;
}

static void
go_deep(struct choice *c)
{
	int64_t top = deep_top(c);
	const struct found *f;

	if (c->deep)
		return;
	f = curve_best(c, top, shelf_best(&c->base->known, top));
	c->deep = deep_new(c->r, c->must, top, f ? f->sec : 0);
}

static struct found *
best_of(struct choice *c, int64_t arena)
{
	struct found *best = curve_best(c, arena, NULL);
	struct found *base = shelf_live(&c->base->known, arena), *deep;

	/* packing takes longer than everything else here */
	if (!best || (base && base->sec < best->sec))
		best = found_better(best,
			shelf_best(&c->base->known, arena));
	best = found_better(best, shelf_best(&c->extra, arena));
	if (arena >= deep_top(c))
		return best;
	go_deep(c);
	deep = shelf_best(&c->deep->known, arena);
	/* of equals the set, which has the better bound */
	return best && (!deep || deep->sec >= best->sec) ? best : deep;
}

/* No plan within so much memory is faster. */
static bool
proven(const struct choice *c, int64_t arena, const struct found *f)
{
	return c->curve && f
		&& f->sec <= curve_bound(c->curve, arena) * (1 + 1e-9);
}

static struct found *
descend(struct choice *c, int64_t arena)
{
	struct found *best = best_of(c, arena);
	int64_t rung = arena / (c->top / RUNGS);

	if (c->exhausted || proven(c, arena, best) || !climbs(c))
		return best;
	if (rung > RUNGS)
		rung = RUNGS;
	for (; rung >= 0; rung--) {
		int64_t memory = rung_bytes(c, rung);

		if (watch_over(c->r->watch))
			break;
		if (!c->climbed[rung])
			c->bound[rung] = climb(c, memory);
		c->climbed[rung] = true;
		best = best_of(c, arena);
		if (memory > c->top / RUNGS * rung
		    || (best && (best->sec <= c->bound[rung]
		                 || proven(c, memory, best))))
			break;
	}
	return best;
}

/* ---- entry ---- */

static void
find_curve(struct choice *c)
{
	struct partition *y = partition_new(c->r, c->must);
	int32_t n;

	if (!y || y->n < PARTS_MIN || !partition_solve(y))
		return;
	c->curve = curve_new(y);
	if (!c->curve)
		return;
	n = curve_count(c->curve);
	c->known = arena_array(c->r->arena, (size_t)n + 1, sizeof *c->known);
	if (n > 0)                      /* for the least that works */
		archive_try(c->base, on_curve(c, n - 1)->drop);
}

struct choice *
choice_new(struct remat *r, const uint8_t *must, const struct options *opt)
{
	struct choice *c = arena_alloc(r->arena, sizeof *c);
	uint8_t *drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);
	int free = 0;

	c->r = r;
	c->must = must;
	c->opt = opt;
	c->polish = 1000000 / (int64_t)r->nnode;
	if (c->polish < 1200)
		c->polish = 1200;
	if (c->polish > 8000)
		c->polish = 8000;
	c->extra.r = r;
	c->extra.plan = arena_array(r->arena, RUNGS + 1,
	                            sizeof *c->extra.plan);
	c->base = archive_new(r, must, r->arena);
	remat_keep_all(r, must, drop);
	c->top = remat_eval(r, drop).live;
	if (c->top < RUNGS)
		c->top = RUNGS;
	for (int32_t s = 0; s < r->nstore; s++)
		free += r->store[s].candidate && !must[s];
	if (free <= EXHAUSTIVE) {
		c->exhausted = try_all(c);
		if (!c->exhausted)
			try_presets(c);
		return c;
	}
	find_curve(c);
	if (c->curve)                   /* little is left to be found */
		c->polish /= 2;
	if (!c->curve || climbs(c))
		remat_search(c->base);
	try_presets(c);
	if (!c->curve || climbs(c))
		squeeze(c);
	return c;
}

int64_t
choice_least(struct choice *c)
{
	int64_t once = shelf_least(&c->base->known), least;

	go_deep(c);
	least = shelf_least(&c->deep->known);
	return least < once ? least : once;
}

const struct found *
choice_take(struct choice *c, int64_t arena)
{
	return descend(c, arena);
}

double
choice_bound(struct choice *c, int64_t arena, const struct found *f)
{
	struct remat *r = c->r;
	double bound = 0, gap = c->opt->gap_pct / 100 * r->base_sec;

	if (f->step) {
		bound = deep_bound(r, arena);
		if (c->curve)
			bound = fmax(bound, curve_bound_any(c->curve, arena));
		return isfinite(bound) ? bound : 0;
	}
	if (c->exhausted) {
		f = shelf_live(&c->base->known, arena);
		return f ? f->sec : 0;
	}
	if (c->curve)
		bound = curve_bound(c->curve, arena);
	if (climbs(c) && !watch_over(r->watch) && f->sec - bound > gap)
		bound = fmax(bound, remat_bound(r, c->must, arena, f->sec,
		                                gap, BOUND_NODES));
	return isfinite(bound) ? bound : 0;
}

const struct found *
choice_smallest(struct choice *c)
{
	return best_of(c, choice_least(c));
}
