/* Plans that compute values again more than once: what is known of them.
 *
 * what    for memory below what plans of class "once" reach with ease: a set
 *         of sequences, none of which is both slower and larger than another
 * method  small graphs exactly (remat_exact.c); else the chain's nested
 *         segments (nested.c) and walks with a full arena (remat_evict.c), at
 *         amounts of memory that do not depend on the
 *         budget: the least that a walk gets through with, by bisection, and
 *         a ladder from there to the top
 * cost    counted work; nothing of this runs where one recompute will do
 */
#include "passes/deep.h"

#include <stdlib.h>
#include <string.h>

enum {
	PLANS = 256, LADDER = 12, BISECT = 12,
	WALK_WORK = 40000000,           /* of one search */
	REPEATS = 16                    /* steps per node, on average */
};

bool
steps_add(struct steps *s, NodeId node, bool clone, uint32_t makes)
{
	if (s->n >= s->limit)
		return false;
	if (s->n == s->cap) {
		struct rstep *old = s->step;
		int32_t cap = s->cap ? 2 * s->cap : 1024;

		s->step = arena_array(s->arena, (size_t)cap, sizeof *s->step);
		if (s->n)
			memcpy(s->step, old, (size_t)s->n * sizeof *old);
		s->cap = cap;
	}
	s->step[s->n++] = (struct rstep){ .node = node, .clone = clone,
	                                     .makes = makes };
	return true;
}

/* ---- known plans ---- */

static bool
worse(const struct found *f, int64_t live, double sec)
{
	return f->live >= live && f->sec >= sec;
}

struct remat_cost
deep_try(struct deep *d)
{
	struct remat *r = d->r;
	struct remat_cost c = remat_eval_steps(r, d->steps.step, d->steps.n);
	struct found *f;
	int32_t n = 0;

	if (c.live >= d->top || c.sec < d->floor)
		return c;
	for (int32_t i = 0; i < d->n; i++)
		if (d->plan[i].live <= c.live && d->plan[i].sec <= c.sec)
			return c;
	for (int32_t i = 0; i < d->n; i++)
		if (!worse(&d->plan[i], c.live, c.sec))
			d->plan[n++] = d->plan[i];
	d->n = n;
	if (n == PLANS)
		return c;
	f = &d->plan[d->n++];
	*f = (struct found){ .live = c.live, .placed = -1, .sec = c.sec,
	                     .nstep = d->steps.n };
	f->step = arena_copy(r->arena, d->steps.step,
	                     (size_t)d->steps.n * sizeof *f->step);
	return c;
}

static int64_t
placed(struct deep *d, struct found *f)
{
	if (f->placed < 0) {
		Arena *scratch = arena_new();

		found_eval(d->r, f);
		f->placed = remat_packed(d->r, scratch);
		arena_free(scratch);
	}
	return f->placed;
}

struct found *
deep_best(struct deep *d, int64_t arena)
{
	struct found *best = NULL;

	for (int32_t i = 0; i < d->n; i++) {
		struct found *f = &d->plan[i];

		if (f->live <= arena && (!best || f->sec < best->sec
		    || (f->sec <= best->sec && f->live < best->live))
		    && placed(d, f) <= arena)
			best = f;
	}
	return best;
}

int64_t
deep_least(struct deep *d)
{
	int64_t least = INT64_MAX;

	for (;;) {
		struct found *next = NULL;

		for (int32_t i = 0; i < d->n; i++) {
			struct found *f = &d->plan[i];

			if (f->placed >= 0)
				least = f->placed < least ? f->placed : least;
			else if (!next || f->live < next->live)
				next = f;
		}
		if (!next || next->live >= least)
			return least;
		placed(d, next);
	}
}

/* ---- walks ---- */

static bool
walk(struct deep *d, int64_t room, const struct evict_way *way, int64_t *work)
{
	if (!remat_evict(d->r, d->must, room, way, work, &d->steps))
		return false;
	deep_try(d);
	return true;
}

static void
walk_all(struct deep *d)
{
	static const struct evict_way way[] = {
		{ 1, 1, 1 }, { 1, 1, 0 }, { 0, 1, 1 }, { 1, 0.5, 0 },
	};
	enum { WAYS = sizeof way / sizeof way[0] };
	int64_t work = WALK_WORK, lo = 0, hi = d->top;

	for (int i = 0; i < BISECT && work > 0; i++) {
		int64_t mid = lo + (hi - lo) / 2;
		bool ok = false;

		for (int k = 0; k < WAYS && !ok; k++)
			ok = walk(d, mid, &way[k], &work);
		if (ok)
			hi = mid;
		else
			lo = mid;
	}
	for (int i = 0; i <= LADDER && work > 0; i++)
		for (int k = 0; k < WAYS; k++)
			walk(d, hi + (d->top - hi) * i / LADDER, &way[k],
			     &work);
}

struct deep *
deep_new(struct remat *r, const uint8_t *must, int64_t top, double floor)
{
	struct deep *d = arena_alloc(r->arena, sizeof *d);

	*d = (struct deep){ .r = r, .must = must, .top = top, .floor = floor };
	d->plan = arena_array(r->arena, PLANS + 1, sizeof *d->plan);
	d->steps.arena = arena_new();
	d->steps.limit = REPEATS * (int32_t)r->g->nnode;
	if (!remat_exact(d)) {
		nested_search(d);
		walk_all(d);
	}
	arena_free(d->steps.arena);
	d->steps = (struct steps){ 0 };
	return d;
}

/* ---- bound ---- */

struct item {
	double price;                   /* seconds per byte */
	int64_t size;
};

static int
by_price(const void *a, const void *b)
{
	double x = ((const struct item *)a)->price;
	double y = ((const struct item *)b)->price;

	return x < y ? -1 : x > y;
}

/* What backward reads and is not in memory when it begins has to be made
 * after that.  A node with several such outputs is shared out among them. */
double
deep_bound(const struct remat *r, int64_t arena)
{
	Arena *a = arena_new();
	struct item *item = arena_array(a, (size_t)r->nstore + 1,
	                                sizeof *item);
	int64_t *bytes = arena_array(a, r->g->nnode, sizeof *bytes);
	size_t n = 0;
	double sec = 0;

	for (int32_t s = 0; s < r->nstore; s++)
		if (r->store[s].candidate && r->store[s].direct)
			bytes[r->store[s].def] += r->store[s].size;
	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *t = &r->store[s];

		if (r->node[t->def].backward || !(t->direct || t->output))
			continue;
		arena -= t->size;
		if (t->candidate && t->size > 0)
			item[n++] = (struct item){ r->node[t->def].least_sec
				/ (double)bytes[t->def], t->size };
	}
	qsort(item, n, sizeof *item, by_price);
	for (size_t i = 0; i < n && arena < 0; i++) {
		int64_t less = item[i].size < -arena ? item[i].size : -arena;

		arena += less;
		sec += (double)less * item[i].price;
	}
	arena_free(a);
	return sec;
}
