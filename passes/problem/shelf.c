/* Known plans, sets and sequences alike, and the choice among them. */
#include "passes/problem/remat.h"

enum { LATE_TRIES = 3 };                /* plans packed when time is over */

struct remat_cost
found_eval(struct remat *r, const struct found *f)
{
	return f->step ? remat_eval_steps(r, f->step, f->nstep)
		: remat_eval(r, f->drop);
}

int64_t
found_placed(struct remat *r, struct found *f)
{
	if (f->placed < 0) {
		Arena *scratch = arena_new();

		found_eval(r, f);
		f->placed = remat_packed(r, scratch);
		arena_free(scratch);
	}
	return f->placed;
}

struct found *
found_better(struct found *f, struct found *g)
{
	if (!f || !g)
		return f ? f : g;
	return g->sec < f->sec || (g->sec <= f->sec && g->live < f->live)
		? g : f;
}

/* The plan with the fewest live bytes of those that are not packed, or of
 * all. */
static struct found *
leanest(const struct shelf *s, bool packed)
{
	struct found *best = NULL;

	for (int32_t i = 0; i < s->n; i++) {
		struct found *f = &s->plan[i];

		if (f->live >= 0 && (packed || f->placed < 0)
		    && (!best || f->live < best->live))
			best = f;
	}
	return best;
}

struct found *
shelf_best(const struct shelf *s, int64_t arena)
{
	struct found *last = leanest(s, true);
	double floor = -1;

	for (int tries = 0;; tries++) {
		/* packing takes its time: then only one more, the leanest */
		bool late = tries > LATE_TRIES && watch_over(s->r->watch);
		struct found *best = NULL;

		/* the fastest one that is slower than all seen so far */
		for (int32_t i = 0; i < s->n; i++) {
			struct found *f = &s->plan[i];

			if (f->live >= 0 && f->live <= arena
			    && f->sec >= floor
			    && !(late && f->placed < 0 && f != last)
			    && f->placed <= arena)
				best = found_better(best, f);
		}
		if (!best || found_placed(s->r, best) <= arena)
			return best;
		floor = best->sec;
	}
}

struct found *
shelf_live(const struct shelf *s, int64_t live)
{
	struct found *best = NULL;

	for (int32_t i = 0; i < s->n; i++)
		if (s->plan[i].live >= 0 && s->plan[i].live <= live)
			best = found_better(best, &s->plan[i]);
	return best;
}

/* Plans are packed as long as one may be smaller than the smallest. */
int64_t
shelf_least(const struct shelf *s)
{
	int64_t least = INT64_MAX;

	for (;;) {
		struct found *next = leanest(s, false);

		for (int32_t i = 0; i < s->n; i++)
			if (s->plan[i].live >= 0 && s->plan[i].placed >= 0
			    && s->plan[i].placed < least)
				least = s->plan[i].placed;
		if (!next || next->live >= least
		    || (least < INT64_MAX && watch_over(s->r->watch)))
			return least;
		found_placed(s->r, next);
	}
}
