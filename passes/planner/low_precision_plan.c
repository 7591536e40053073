/* Keep values in 16 bits: choose the plan, and the share of its values.
 *
 * what    a plan for more memory than there is, with what it keeps rounded
 * method  What is worth its bytes when all is kept in 32 bits is so, too, when
 *         all takes half of that.  So plans for a grid of arenas from
 *         keep-everything down to the least are rewritten, the first parts of
 *         what they keep or all of it, placed, and their steps added up, unless
 *         they recompute longer than the best one takes.  The grid does not
 *         depend on the budget, nor what is found on it: a larger budget
 *         chooses from at least as many plans.
 * cost    (PLAN_GRID + 1) * LOW_PRECISION_PARTS rewrites and placements at
 *         most, less those of plans that recompute longer than the best one
 *         takes
 */
#include "passes/planner/low_precision_plan.h"
#include "passes/cost/cost.h"
#include "passes/place/place.h"

#include <math.h>

enum { PLAN_GRID = 12 };

/* Which values may be kept so: not what the user wants kept. */
static const bool *
find_request(const Pass *p, const Graph *g, const struct remat *r,
             const uint8_t *constraint)
{
	bool *may = low_precision_eligible(g, p->opt->save_dtype, p->scratch);

	for (int32_t s = 0; s < r->nstore; s++)
		may[r->store[s].owner] &= constraint[s] != 'k';
	return may;
}

static double
seconds_of(const Graph *g)
{
	double sum = 0;

	FOR_NODES (n, g)
		sum += first_cost(g, n).sec;
	return sum;
}

/* Arena and seconds above keep-everything of a plan rewritten so; -1: nothing
 * of it is. */
static int64_t
measure_rounded(const Pass *p, const Graph *g, struct schedule *w,
                const struct known_plan *f,
                const struct low_precision_request *request, double *sec)
{
	Graph *t = graph_clone(g);
	Arena *scratch = arena_new();
	int64_t arena = -1;

	known_eval(w, f);
	schedule_apply(w, t);
	if (low_precision_rewrite(t, request, p->target, scratch) > 0) {
		inplace_graph(t, scratch);
		arena = place_graph(t, 0, p->watch, scratch);
		*sec = fmax(f->sec, seconds_of(t) - w->r->base_sec);
	}
	arena_free(scratch);
	graph_free(t);
	return arena;
}

struct rounded_search {
	const Pass *p;
	const Graph *g;
	struct schedule *trial;
	struct low_precision_request request;
	int64_t arena;
	double below;
	struct low_precision_plan *best;
	bool found;
};

/* Seconds above keep-everything that a plan must stay below. */
static double
limit_of(const struct rounded_search *s)
{
	return s->found ? s->best->sec : s->below;
}

static void
try_rounded(struct rounded_search *s, const struct known_plan *f)
{
	for (int parts = 1; parts <= LOW_PRECISION_PARTS; parts++) {
		double sec, limit = limit_of(s);
		int64_t arena;

		if (f->sec >= limit || watch_over(s->p->watch))
			return;
		s->request.parts = parts;
		arena = measure_rounded(s->p, s->g, s->trial, f, &s->request,
		                        &sec);
		if (arena >= 0 && arena < s->best->least)
			s->best->least = arena;
		if (arena < 0 || arena > s->arena || sec >= limit)
			continue;
		s->best->plan = known_copy(s->trial->r, f);
		s->best->request = s->request;
		s->best->sec = sec;
		s->found = true;
	}
}

bool
low_precision_best(Pass *p, const struct plan_source *from, int64_t arena,
                   double below, struct low_precision_plan *best)
{
	const struct remat *r = from->w->r;
	struct rounded_search s = { .p = p, .g = from->g, .arena = arena,
	                            .trial = from->w, .below = below,
	                            .best = best };
	struct known_plan all;
	int64_t top, least = selector_least(from->c);

	best->least = INT64_MAX;
	s.request = (struct low_precision_request){
		.to = p->opt->save_dtype,
		.nval = from->g->nval,
		.eligible = find_request(p, from->g, r, from->constraint)
	};
	all = keep_all_plan(from);
	top = known_placed(from->w, &all);
	try_rounded(&s, &all);
	for (int k = PLAN_GRID - 1; k >= 0; k--) {
		const struct known_plan *f = selector_near(from->c, least
			+ (top - least) / PLAN_GRID * k);

		if (f)
			try_rounded(&s, f);
	}
	return s.found;
}
