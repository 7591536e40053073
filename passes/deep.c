/* Plans that compute values again more than once: the search for them.
 *
 * what    for memory below what plans of class "once" reach with ease: a set
 *         of sequences, none of which is both slower and larger than another
 * method  small graphs exactly (remat_exact.c); else the chain's nested
 *         segments (nested.c) and walks with a full arena (remat_evict.c), at
 *         amounts of memory that do not depend on the budget: the least that
 *         a walk gets through with, by bisection, and a ladder from there to
 *         the top.  Then what they leave idle is filled (deep_fill.c)
 * cost    counted work; nothing of this runs where one recompute will do
 */
#include "passes/deep.h"

#include <stdlib.h>

enum {
	LADDER = 24, BISECT = 12,
	WALK_WORK = 40000000,           /* of one search */
	REPEATS = 16                    /* steps per node, on average */
};

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
		{ 0.5, 1, 1 }, { 2, 1, 0 }, { 1, 0, 1 }, { 1, 1, 0.5 },
		{ 0, 1, 0 }, { 2, 1, 1 },
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
	d->steps.arena = arena_new();
	d->steps.limit = REPEATS * (int32_t)r->g->nnode;
	if (!remat_exact(d)) {
		nested_search(d);
		walk_all(d);
		deep_fill(d);
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
