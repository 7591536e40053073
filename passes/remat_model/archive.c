/* The best sets known: in each range of memory the fastest and the smallest.
 *
 * note    Nothing depends on the budget asked for: equal graphs give equal
 *         archives, so a larger budget can only choose from more plans.
 */
#include "passes/remat_model/remat_model.h"

#include <string.h>

enum { SLOTS = 1024 };

struct known_plan *
archive_smallest(const struct archive *a)
{
	return &a->known.plan[a->known.n - 1];
}

static void
init_slots(struct archive *a, int32_t n)
{
	a->known.n = n;
	a->known.plan = arena_array(a->arena, (size_t)n,
	                            sizeof *a->known.plan);
	for (int32_t i = 0; i < n; i++)
		a->known.plan[i].live = a->known.plan[i].placed = -1;
}

static bool
is_faster(double sec, int64_t live, const struct known_plan *f)
{
	return f->live < 0 || sec < f->sec || (sec == f->sec && live < f->live);
}

static bool
is_smaller(double sec, int64_t live, const struct known_plan *f)
{
	return f->live < 0 || live < f->live
		|| (live == f->live && sec < f->sec);
}

static void
store_set(struct archive *a, struct known_plan *f, const struct remat_cost *c,
          const uint8_t *drop)
{
	f->live = c->live;
	f->sec = c->sec;
	f->placed = -1;
	if (!f->drop)
		f->drop = arena_array(a->arena,
			(size_t)a->known.trial->r->nstore + 1, 1);
	memcpy(f->drop, drop, (size_t)a->known.trial->r->nstore);
}

struct remat_cost
archive_try(struct archive *a, const uint8_t *drop)
{
	struct remat_cost c = schedule_set(a->known.trial, drop);
	int64_t at = c.live / a->width;
	struct known_plan *f =
		&a->known.plan[2 * (at < SLOTS ? at : SLOTS - 1)];
	struct known_plan *least = archive_smallest(a);

	if (at < SLOTS && is_faster(c.sec, c.live, f))
		store_set(a, f, &c, drop);
	if (at < SLOTS && is_smaller(c.sec, c.live, f + 1))
		store_set(a, f + 1, &c, drop);
	if (is_smaller(c.sec, c.live, least))
		store_set(a, least, &c, drop);
	return c;
}

/* All sets of n storages, each in a slot of its own. */
bool
archive_all(struct archive *a, const int32_t *cand, int n)
{
	const struct remat *r = a->known.trial->r;
	uint8_t *drop = arena_array(a->arena, (size_t)r->nstore + 1, 1);
	struct known_plan *least;

	init_slots(a, (1 << n) + 1);
	least = archive_smallest(a);
	remat_keep_all(r, a->constraint, drop);
	/* from both ends, should there be no time for all */
	for (int k = 0; k < 1 << n; k++) {
		int set = k % 2 ? (1 << n) - 1 - k / 2 : k / 2;
		struct remat_cost c;

		if (k > 1 && watch_over(r->watch))
			return false;

		for (int i = 0; i < n; i++)
			drop[cand[i]] = set >> i & 1;
		c = schedule_set(a->known.trial, drop);
		store_set(a, &a->known.plan[set], &c, drop);
		if (is_smaller(c.sec, c.live, least))
			store_set(a, least, &c, drop);
	}
	return true;
}

void
remat_keep_all(const struct remat *r, const uint8_t *constraint, uint8_t *drop)
{
	for (int32_t s = 0; s < r->nstore; s++)
		drop[s] = constraint[s] == 'k' ? 0 : constraint[s] == 'r' ? 1
			: r->store[s].candidate && !r->store[s].direct;
}

struct archive *
archive_new(const struct remat *r, const uint8_t *constraint, Arena *arena)
{
	struct archive *a = arena_alloc(arena, sizeof *a);
	uint8_t *drop = arena_array(arena, (size_t)r->nstore + 1, 1);

	a->known.trial = schedule_new(r, arena);
	a->arena = arena;
	a->constraint = constraint;
	init_slots(a, 2 * SLOTS + 1);
	remat_keep_all(r, constraint, drop);
	/* plans above keep-everything are of no use */
	a->width = schedule_set(a->known.trial, drop).live / (SLOTS - 1) + 1;
	archive_try(a, drop);
	return a;
}
