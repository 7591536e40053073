/* Known plans, sets and sequences alike, and the choice among them. */
#include "passes/remat_model/remat_model.h"

enum { LATE_TRIES = 3 };                /* plans packed when time is over */

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

struct known_plan *
known_better(struct known_plan *f, struct known_plan *g)
{
	if (!f || !g)
		return f ? f : g;
	return g->sec < f->sec || (g->sec <= f->sec && g->live < f->live)
		? g : f;
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
pool_best(const struct plan_pool *s, int64_t arena)
{
	struct known_plan *last = smallest_plan(s, true);
	double floor = -1;

	for (int tries = 0;; tries++) {
		/* packing takes its time: then only one more, the smallest */
		bool late = tries > LATE_TRIES
			&& watch_over(s->trial->r->watch);
		struct known_plan *best = NULL;

		/* the fastest one that is slower than all seen so far */
		for (int32_t i = 0; i < s->n; i++) {
			struct known_plan *f = &s->plan[i];

			if (f->live >= 0 && f->live <= arena
			    && f->sec >= floor
			    && !(late && f->placed < 0 && f != last)
			    && f->placed <= arena)
				best = known_better(best, f);
		}
		if (!best || known_placed(s->trial, best) <= arena)
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
		    || (least < INT64_MAX && watch_over(s->trial->r->watch)))
			return least;
		known_placed(s->trial, next);
	}
}
