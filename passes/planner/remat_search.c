/* Keep or recompute: search for sets.
 *
 * what    good plans for every amount of memory, none for one in particular
 * method  1. descent: targets from keep-everything downwards; to meet the
 *            next one, drop again and again the storage, or the whole role
 *            over all layers, that removes most bytes above the target per
 *            second of recompute; then keep again what need not be dropped.
 *            Of many storages only the most promising ones are tried each
 *            time, and all are dropped in order of bytes per second, too;
 *         2. annealing at a fixed target: toggle and swap storages.
 *         Every plan that is evaluated may enter the pool.
 * cost    limited by counts of evaluations, never by the clock, and blind to
 *         the budget asked for
 */
#include "passes/planner/set_generators.h"

#include <math.h>
#include <string.h>

enum { TARGETS = 32, SINGLES = 256, KEEPS = 64, ENOUGH = 128 };

#define LARGE 1e9
#define LEAST_SHARE (1.0 / 64)

/* What may be done next, and what it is worth. */
struct change {
	double gain;                    /* or what it may be */
	struct remat_cost cost;         /* of the plan after it */
	double bound;                   /* gain of dropping at the target,
	                                 * at most as a rule */
	double share;                   /* of the bound, when it was evaluated
	                                 * last */
	bool known;                     /* it was */
};

struct descent {
	struct plan_pool *pool;
	const struct remat *r;
	Arena *arena;
	uint8_t *drop, *trial;
	struct remat_cost now;
	double eps;
	struct change *change;          /* by storage, then by group */
};

/* To evaluate every change before each one would take minutes. */
static bool
is_large(const struct descent *d)
{
	return (double)d->r->ncand * d->r->ncand * d->r->nnode > LARGE;
}

/* ---- the best change ---- */

/* The change of the greatest gain above 0; -1: there is none, or `most`
 * evaluations did not find it.  Where there are many, bounds and gains of
 * earlier rounds decide what is evaluated next, and few are: Minoux's
 * accelerated greedy algorithm (1978), with an end. */
static int32_t
find_best(struct descent *d, int32_t most,
          double (*gain)(struct descent *, int32_t, struct remat_cost *))
{
	int32_t n = d->r->nstore + d->r->ngroup, found = -1;
	int32_t enough = is_large(d) ? ENOUGH : INT32_MAX;
	struct change *c = d->change;

	for (int32_t i = 0; i < n && !is_large(d); i++)
		c[i].gain = INFINITY;
	for (int32_t k = 0; k < most; k++) {
		int32_t next = -1;

		for (int32_t i = 0; i < n; i++)
			if (c[i].gain > 0
			    && (next < 0 || c[i].gain > c[next].gain))
				next = i;
		if (next == found
		    || (k >= enough && found >= 0 && c[next].known))
			return found;
		if (watch_over(d->r->watch))
			break;
		c[next].gain = gain(d, next, &c[next].cost);
		if (c[next].gain > 0
		    && (found < 0 || c[next].gain > c[found].gain))
			found = next;
	}
	return -1;
}

/* ---- descent ---- */

static bool
is_movable(const struct descent *d, int32_t s)
{
	return d->r->store[s].candidate && !d->pool->constraint[s];
}

/* With many candidates only the outermost undropped storages of a role are
 * tried alone: layers in the middle do not differ. */
static bool
worth_alone(const struct descent *d, int32_t s)
{
	const struct remat *r = d->r;
	bool before = false, behind = false;

	if (r->ncand <= SINGLES)
		return true;
	for (int32_t t = 0; t < r->nstore && !(before && behind); t++)
		if (t != s && r->store[t].group == r->store[s].group
		    && is_movable(d, t) && !d->drop[t]) {
			before |= t < s;
			behind |= t > s;
		}
	return !(before && behind);
}

/* What drops gain at a new target, at most as a rule: a storage takes its bytes
 * from no more steps than it lives in now, and costs no less than its node
 * does. */
static void
bound_gains(struct descent *d)
{
	const struct remat *r = d->r;
	const struct schedule *w = d->pool->trial;
	int32_t n = r->nstore + r->ngroup;
	double *sec = arena_array(d->arena, (size_t)n + 1, sizeof *sec);
	int32_t *above = arena_array(d->arena, (size_t)w->nstep + 1,
	                             sizeof *above);

	/* steps above the target, before each */
	for (int32_t k = 0; k < w->nstep; k++)
		above[k + 1] = above[k] + (w->live[k] > w->target);
	for (int32_t i = 0; i < n; i++)
		d->change[i].bound = 0;
	for (int32_t y = 0; y < w->ninst; y++) {
		int32_t s = w->of_inst[y], last = w->last[y];
		int32_t group = r->nstore + r->store[s].group;
		double bytes;

		if (w->first[y] < 0 || d->drop[s] || !is_movable(d, s))
			continue;
		last = last < w->nstep ? last + 1 : w->nstep;
		bytes = (double)r->store[s].size
			* (above[last] - above[w->first[y]]);
		d->change[s].bound += bytes;
		d->change[group].bound += bytes;
		sec[s] = r->node[r->store[s].def].least_sec;
		sec[group] += sec[s];
	}
	for (int32_t i = 0; i < n; i++)
		d->change[i].bound /= sec[i] + d->eps;
}

/* Gains of a group's storages, and of itself; -1: all.  Where a change was
 * evaluated before, it is likely to come as near its bound again. */
static void
forget_gains(struct descent *d, int32_t group)
{
	const struct remat *r = d->r;

	for (int32_t i = 0; i < r->nstore + r->ngroup; i++)
		if (group < 0 || group == (i < r->nstore ? r->store[i].group
		                                         : i - r->nstore))
			d->change[i].gain = d->change[i].bound
				* d->change[i].share;
}

/* Drop storage i, or all of group i - nstore; returns how many these are. */
static int
drop_more(const struct descent *d, int32_t i, uint8_t *drop)
{
	const struct remat *r = d->r;
	int changed = 0;

	for (int32_t s = 0; s < r->nstore; s++)
		if ((i < r->nstore ? s == i
		     : r->store[s].group == i - r->nstore)
		    && is_movable(d, s) && !drop[s]) {
			drop[s] = 1;
			changed++;
		}
	return changed;
}

/* Bytes above the target removed per second. */
static double
drop_gain(struct descent *d, int32_t i, struct remat_cost *c)
{
	bool single = i < d->r->nstore;
	int changed;
	double x;

	memcpy(d->trial, d->drop, (size_t)d->r->nstore);
	changed = drop_more(d, i, d->trial);
	if (changed == 0 || (!single && changed == 1)
	    || (single && !worth_alone(d, i)))
		return -1;
	*c = pool_try_set(d->pool, d->trial);
	x = (d->now.over - c->over) / (fmax(c->sec - d->now.sec, 0) + d->eps);
	if (is_large(d))
		d->change[i].share = fmax(LEAST_SHARE,
		                          x / d->change[i].bound);
	d->change[i].known = true;
	return c->over < d->now.over ? x : -1;
}

static bool
drop_one_more(struct descent *d)
{
	const struct remat *r = d->r;
	int32_t i = find_best(d, INT32_MAX, drop_gain);

	if (i < 0)
		return false;
	drop_more(d, i, d->drop);
	d->now = d->change[i].cost;
	forget_gains(d, i < r->nstore ? r->store[i].group : i - r->nstore);
	return true;
}

static double
keep_gain(struct descent *d, int32_t s, struct remat_cost *c)
{
	if (s >= d->r->nstore || !d->drop[s] || !is_movable(d, s))
		return -1;
	d->drop[s] = 0;
	*c = pool_try_set(d->pool, d->drop);
	d->drop[s] = 1;
	return c->over <= 0 ? d->now.sec - c->sec : -1;
}

/* Keep again what the target allows, the dearest first. */
static void
keep_again(struct descent *d)
{
	const struct remat *r = d->r;
	int32_t most = is_large(d) ? KEEPS : INT32_MAX;

	for (int32_t s = 0; s < r->nstore + r->ngroup; s++)
		d->change[s].gain = s < r->nstore && d->drop[s]
			&& is_movable(d, s) ? r->node[r->store[s].def].sec : -1;
	for (int32_t s; (s = find_best(d, most, keep_gain)) >= 0;) {
		d->drop[s] = 0;
		d->now = d->change[s].cost;
	}
}

static struct descent
descent_new(struct plan_pool *pool)
{
	const struct remat *r = pool->r;
	struct descent d = { .pool = pool, .r = r, .arena = arena_new() };

	d.drop = arena_array(d.arena, (size_t)r->nstore + 1, 1);
	d.trial = arena_array(d.arena, (size_t)r->nstore + 1, 1);
	d.change = arena_array(d.arena, (size_t)(r->nstore + r->ngroup) + 1,
	                       sizeof *d.change);
	for (int32_t i = 0; i < r->nstore + r->ngroup; i++)
		d.change[i].share = 1;
	d.eps = r->base_sec * 1e-6;
	return d;
}

static void
descent_end(struct descent *d)
{
	d->pool->trial->target = INT64_MAX;
	arena_free(d->arena);
}

static bool
drop_to_target(struct descent *d, int64_t target)
{
	d->pool->trial->target = target;
	d->now = pool_try_set(d->pool, d->drop);
	if (is_large(d))
		bound_gains(d);
	forget_gains(d, -1);
	while (d->now.over > 0)
		if (!drop_one_more(d))
			return false;
	return true;
}

/* Toggle and swap at random, colder and colder. */
static void
anneal(struct descent *d, int64_t evals, uint64_t seed)
{
	const struct remat *r = d->r;
	int32_t *cand = arena_array(d->arena, (size_t)r->ncand + 1, 4);
	int32_t n = 0;
	double scale = r->base_sec / (1 + (double)d->pool->trial->target);
	double hot = r->base_sec * 2e-3;

	for (int32_t s = 0; s < r->nstore; s++)
		if (is_movable(d, s))
			cand[n++] = s;
	if (n == 0)
		return;
	for (int64_t k = 0; k < evals && !watch_over(r->watch); k++) {
		double heat = hot * pow(1e-3, (double)k / (double)evals);
		int flips = 1 + (int)((seed >> 60) % 3);
		struct remat_cost c;
		double gain;

		memcpy(d->trial, d->drop, (size_t)r->nstore);
		for (int i = 0; i < flips; i++) {
			seed = seed * 6364136223846793005u
				+ 1442695040888963407u;
			d->trial[cand[(seed >> 33) % (uint32_t)n]] ^= 1;
		}
		c = pool_try_set(d->pool, d->trial);
		gain = d->now.sec - c.sec + scale * (d->now.over - c.over);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		if (gain >= 0 || exp(gain / heat)
		    > (double)(seed >> 11) * 0x1p-53) {
			uint8_t *t = d->drop;

			d->drop = d->trial;
			d->trial = t;
			d->now = c;
		}
	}
}

void
remat_polish(struct plan_pool *pool, int64_t target, int64_t evals,
             const uint8_t *start)
{
	struct descent d = descent_new(pool);

	memcpy(d.drop, start, (size_t)pool->r->nstore);
	if (drop_to_target(&d, target))
		keep_again(&d);
	anneal(&d, evals, 0x2545f4914f6cdd1d);
	if (d.now.over <= 0)
		keep_again(&d);
	descent_end(&d);
}

/* Drop storages one by one, the most bytes per second of their nodes first:
 * what few evaluations are certain to find.  What backward does not read is
 * kept until its turn comes, as clones may read it. */
static void
drop_in_order(struct descent *d)
{
	const struct remat *r = d->r;
	int32_t next;

	remat_keep_all(r, d->pool->constraint, d->drop);
	for (int32_t s = 0; s < r->nstore; s++)
		if (is_movable(d, s))
			d->drop[s] = 0;
	do {
		double most = 0;

		next = -1;
		for (int32_t s = 0; s < r->nstore; s++) {
			double x = (double)r->store[s].size
				/ (r->node[r->store[s].def].sec + d->eps);

			if (is_movable(d, s) && !d->drop[s] && x > most) {
				most = x;
				next = s;
			}
		}
		if (next >= 0)
			d->drop[next] = 1;
		pool_try_set(d->pool, d->drop);
	} while (next >= 0 && !watch_over(r->watch));
}

void
remat_search(struct plan_pool *pool)
{
	struct descent d = descent_new(pool);
	size_t n = (size_t)d.r->nstore;
	uint8_t *path = arena_array(d.arena, n + 1, 1);
	int64_t top;

	if (is_large(&d))
		drop_in_order(&d);
	remat_keep_all(d.r, pool->constraint, d.drop);
	top = schedule_set(pool->trial, d.drop).live;
	for (int i = TARGETS - 1; i >= 0 && !watch_over(d.r->watch); i--) {
		if (!drop_to_target(&d, top / TARGETS * i))
			break;
		memcpy(path, d.drop, n);
		keep_again(&d);
		memcpy(d.drop, path, n);
	}
	descent_end(&d);
}
