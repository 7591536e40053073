/* Keep or recompute: search for sets.
 *
 * what    good plans for every amount of memory, none for one in particular
 * method  1. descent: targets from keep-everything downwards; to meet the
 *            next one, drop again and again the storage, or the whole role
 *            over all layers, that removes most bytes above the target per
 *            second of recompute; then keep again what need not be dropped;
 *         2. annealing at a fixed target: toggle and swap storages.
 *         Every plan that is evaluated may enter the pool.
 * cost    limited by counts of evaluations, never by the clock, and blind to
 *         the budget asked for
 */
#include "passes/planner/set_generators.h"

#include <math.h>
#include <string.h>

enum { TARGETS = 32, SINGLES = 256 };

struct descent {
	struct plan_pool *pool;
	const struct remat *r;
	Arena *arena;
	uint8_t *drop, *trial;
	struct remat_cost now;
	double eps;
};

static bool
is_movable(const struct descent *d, int32_t s)
{
	return d->r->store[s].candidate && !d->pool->constraint[s];
}

/* Gain of the trial plan: bytes above the target removed per second. */
static double
drop_gain(struct descent *d, struct remat_cost *c)
{
	*c = pool_try_set(d->pool, d->trial);
	if (!(c->over < d->now.over))
		return -1;
	return (d->now.over - c->over)
		/ (fmax(c->sec - d->now.sec, 0) + d->eps);
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

static bool
drop_one_more(struct descent *d)
{
	const struct remat *r = d->r;
	struct remat_cost c, best_cost = d->now;
	double best = 0;
	int32_t what = -1;

	for (int32_t i = 0; i < r->nstore + r->ngroup; i++) {
		int changed = 0;

		memcpy(d->trial, d->drop, (size_t)r->nstore);
		for (int32_t s = 0; s < r->nstore; s++) {
			bool hit = i < r->nstore ? s == i
				: r->store[s].group == i - r->nstore;

			if (hit && is_movable(d, s) && !d->drop[s]) {
				d->trial[s] = 1;
				changed++;
			}
		}
		if (changed == 0 || (i >= r->nstore && changed == 1)
		    || (i < r->nstore && !worth_alone(d, i)))
			continue;
		if (watch_over(r->watch))
			return false;
		double x = drop_gain(d, &c);

		if (x > best) {
			best = x;
			best_cost = c;
			what = i;
		}
	}
	if (what < 0)
		return false;
	for (int32_t s = 0; s < r->nstore; s++)
		if (is_movable(d, s) && (what < r->nstore ? s == what
		    : r->store[s].group == what - r->nstore))
			d->drop[s] = 1;
	d->now = best_cost;
	return true;
}

/* Keep again what the target allows, the dearest first. */
static void
keep_again(struct descent *d)
{
	const struct remat *r = d->r;

	for (;;) {
		struct remat_cost c, best_cost = d->now;
		int32_t what = -1;

		for (int32_t s = 0; s < r->nstore; s++) {
			if (!d->drop[s] || !is_movable(d, s))
				continue;
			if (watch_over(r->watch))
				return;
			d->drop[s] = 0;
			c = pool_try_set(d->pool, d->drop);
			d->drop[s] = 1;
			if (c.over <= 0 && c.sec < best_cost.sec) {
				best_cost = c;
				what = s;
			}
		}
		if (what < 0)
			return;
		d->drop[what] = 0;
		d->now = best_cost;
	}
}

static struct descent
descent_new(struct plan_pool *pool)
{
	const struct remat *r = pool->r;
	struct descent d = { .pool = pool, .r = r, .arena = arena_new() };

	d.drop = arena_array(d.arena, (size_t)r->nstore + 1, 1);
	d.trial = arena_array(d.arena, (size_t)r->nstore + 1, 1);
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

void
remat_search(struct plan_pool *pool)
{
	struct descent d = descent_new(pool);
	size_t n = (size_t)d.r->nstore;
	uint8_t *path = arena_array(d.arena, n + 1, 1);
	int64_t top;

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
