/* Known plans, sets and sequences alike, and the choice among them. */
#include "passes/remat_model/plan_pool.h"

#include <math.h>
#include <string.h>

enum {
	RANGES = 1024,
	LATE_TRIES = 3                  /* plans packed when time is over */
};

/* ---- what is kept ---- */

static void
open_places(struct plan_pool *s, int32_t n)
{
	s->n = n;
	s->plan = arena_array(s->arena, (size_t)n, sizeof *s->plan);
	for (int32_t i = 0; i < n; i++)
		s->plan[i].live = s->plan[i].placed = -1;
}

struct plan_pool *
pool_new(const struct remat *r, const uint8_t *constraint, int64_t bytes,
         Arena *arena)
{
	struct plan_pool *s = arena_alloc(arena, sizeof *s);

	*s = (struct plan_pool){
		.r = r, .constraint = constraint, .arena = arena,
		.trial = schedule_new(r, arena), .top = INT64_MAX,
		.floor = -INFINITY, .width = bytes / (RANGES - 1) + 1,
	};
	open_places(s, 2 * RANGES + 1);
	return s;
}

struct known_plan *
pool_smallest(const struct plan_pool *s)
{
	return &s->plan[s->n - 1];
}

static bool
is_faster(const struct known_plan *x, const struct known_plan *f)
{
	return f->live < 0 || x->sec < f->sec
		|| (x->sec == f->sec && x->live < f->live);
}

static bool
is_smaller(const struct known_plan *x, const struct known_plan *f)
{
	return f->live < 0 || x->live < f->live
		|| (x->live == f->live && x->sec < f->sec);
}

/* Put x, whose set or sequence is the caller's, in the place f. */
static void
store_plan(struct plan_pool *s, struct known_plan *f,
           const struct known_plan *x)
{
	size_t n = (size_t)s->r->nstore;
	uint8_t *drop = f->drop;

	*f = *x;
	f->drop = NULL;
	if (x->step) {
		f->step = arena_copy(s->arena, x->step, (size_t)x->nstep
		                     * sizeof *x->step);
		return;
	}
	f->drop = drop ? drop : arena_array(s->arena, n + 1, 1);
	memcpy(f->drop, x->drop, n);
}

static void
take_if_wanted(struct plan_pool *s, const struct known_plan *x)
{
	int64_t at = x->live / s->width * 2;

	if (x->live >= s->top || x->sec < s->floor)
		return;
	if (at + 1 < s->n && is_faster(x, &s->plan[at]))
		store_plan(s, &s->plan[at], x);
	if (at + 1 < s->n && is_smaller(x, &s->plan[at + 1]))
		store_plan(s, &s->plan[at + 1], x);
	if (is_smaller(x, pool_smallest(s)))
		store_plan(s, pool_smallest(s), x);
}

struct remat_cost
pool_try_set(struct plan_pool *s, const uint8_t *drop)
{
	struct remat_cost c = schedule_set(s->trial, drop);

	take_if_wanted(s, &(struct known_plan){ .live = c.live, .placed = -1,
	          .sec = c.sec, .drop = (uint8_t *)drop });
	return c;
}

struct remat_cost
pool_try_steps(struct plan_pool *s, const struct rstep *step, int32_t n)
{
	struct remat_cost c = schedule_steps(s->trial, step, n);

	for (int32_t i = 0; i < s->n; i++)
		if (s->plan[i].live >= 0 && s->plan[i].live <= c.live
		    && s->plan[i].sec <= c.sec)
			return c;
	take_if_wanted(s, &(struct known_plan){ .live = c.live, .placed = -1,
	          .sec = c.sec, .step = (struct rstep *)step, .nstep = n });
	return c;
}

bool
pool_try_all_sets(struct plan_pool *s, const int32_t *storage, int n)
{
	uint8_t *drop = arena_array(s->arena, (size_t)s->r->nstore + 1, 1);
	struct known_plan *least;

	open_places(s, (1 << n) + 1);
	least = pool_smallest(s);
	remat_keep_all(s->r, s->constraint, drop);
	/* from both ends, should there be no time for all */
	for (int k = 0; k < 1 << n; k++) {
		int set = k % 2 ? (1 << n) - 1 - k / 2 : k / 2;
		struct known_plan x = { .placed = -1, .drop = drop };
		struct remat_cost c;

		if (k > 1 && watch_over(s->r->watch))
			return false;
		for (int i = 0; i < n; i++)
			drop[storage[i]] = set >> i & 1;
		c = schedule_set(s->trial, drop);
		x.live = c.live;
		x.sec = c.sec;
		store_plan(s, &s->plan[set], &x);
		if (is_smaller(&x, least))
			store_plan(s, least, &x);
	}
	return true;
}

static bool
has_better(const struct plan_pool *s, const struct known_plan *f)
{
	for (int32_t i = 0; i < s->n; i++) {
		const struct known_plan *g = &s->plan[i];

		if (g->live >= 0 && g->live <= f->live && g->sec <= f->sec
		    && (g->live < f->live || g->sec < f->sec || g < f))
			return true;
	}
	return false;
}

struct plan_pool *
pool_front(const struct plan_pool *s, int64_t live, struct schedule *trial,
           Arena *arena)
{
	struct plan_pool *front = arena_alloc(arena, sizeof *front);
	const struct known_plan **known;
	Arena *scratch = arena_new();
	int32_t n = 0;

	known = arena_array(scratch, (size_t)s->n, sizeof *known);
	for (int32_t i = 0; i < s->n; i++) {
		const struct known_plan *f = &s->plan[i];

		if (f->live >= 0 && f->live <= live && !has_better(s, f))
			known[n++] = f;
	}
	*front = *s;
	front->arena = arena;
	front->trial = trial;
	front->top = 0;
	open_places(front, n);
	for (int32_t i = 0; i < n; i++)
		store_plan(front, &front->plan[i], known[i]);
	arena_free(scratch);
	return front;
}

/* ---- what is chosen ---- */

struct known_plan
known_copy(const struct remat *r, const struct known_plan *f)
{
	struct known_plan copy = *f;

	if (f->step)
		copy.step = arena_copy(r->arena, f->step, (size_t)f->nstep
		                       * sizeof *f->step);
	else
		copy.drop = arena_copy(r->arena, f->drop, (size_t)r->nstore);
	return copy;
}

struct remat_cost
known_eval(struct schedule *w, const struct known_plan *f)
{
	return f->step ? schedule_steps(w, f->step, f->nstep)
		: schedule_set(w, f->drop);
}

int64_t
known_placed(struct schedule *w, struct known_plan *f)
{
	if (f->placed < 0) {
		Arena *scratch = arena_new();

		known_eval(w, f);
		f->placed = schedule_packed(w, scratch);
		arena_free(scratch);
	}
	return f->placed;
}

/* The faster one, of equally fast ones a set, which has the better bound, or
 * else the smaller; NULL is none. */
static struct known_plan *
known_better(struct known_plan *f, struct known_plan *g)
{
	if (!f || !g)
		return f ? f : g;
	if (g->sec < f->sec || g->sec > f->sec)
		return g->sec < f->sec ? g : f;
	if (!g->step != !f->step)
		return g->step ? f : g;
	return g->live < f->live ? g : f;
}

/* The plan with the fewest live bytes of those that are not packed, or of
 * all. */
static struct known_plan *
smallest_plan(const struct plan_pool *s, bool packed)
{
	struct known_plan *best = NULL;

	for (int32_t i = 0; i < s->n; i++) {
		struct known_plan *f = &s->plan[i];

		if (f->live >= 0 && (packed || f->placed < 0)
		    && (!best || f->live < best->live))
			best = f;
	}
	return best;
}

struct known_plan *
pool_best(const struct plan_pool *s, int64_t arena, struct known_plan *than)
{
	struct known_plan *last = smallest_plan(s, true);
	double floor = -1;

	for (int tries = 0;; tries++) {
		/* packing takes its time: then only one more, the smallest */
		bool late = tries > LATE_TRIES
			&& watch_over(s->r->watch);
		struct known_plan *best = NULL;

		/* the fastest one that is slower than all seen so far */
		for (int32_t i = 0; i < s->n; i++) {
			struct known_plan *f = &s->plan[i];

			if (f->live >= 0 && f->live <= arena
			    && f->sec >= floor
			    && !(late && f->placed < 0 && f != last)
			    && f->placed <= arena
			    && known_better(than, f) == f)
				best = known_better(best, f);
		}
		if (!best)
			return than;
		if (known_placed(s->trial, best) <= arena)
			return best;
		floor = best->sec;
	}
}

struct known_plan *
pool_best_live(const struct plan_pool *s, int64_t live)
{
	struct known_plan *best = NULL;

	for (int32_t i = 0; i < s->n; i++)
		if (s->plan[i].live >= 0 && s->plan[i].live <= live)
			best = known_better(best, &s->plan[i]);
	return best;
}

/* Plans are packed as long as one may be smaller than the smallest. */
int64_t
pool_least(const struct plan_pool *s)
{
	int64_t least = INT64_MAX;

	for (;;) {
		struct known_plan *next = smallest_plan(s, false);

		for (int32_t i = 0; i < s->n; i++)
			if (s->plan[i].live >= 0 && s->plan[i].placed >= 0
			    && s->plan[i].placed < least)
				least = s->plan[i].placed;
		if (!next || next->live >= least
		    || (least < INT64_MAX && watch_over(s->r->watch)))
			return least;
		known_placed(s->trial, next);
	}
}
