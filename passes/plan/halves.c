/* Keep in 16 bits: which plan, and how much of it.
 *
 * what    a plan for more memory than there is, with what it keeps rounded
 * method  What is worth its bytes when all is kept in 32 bits is so, too, when
 *         all takes half of that.  So plans for a ladder of arenas from
 *         keep-everything down to the least are rewritten, the first parts of
 *         what they keep or all of it, placed, and their steps added up.  The
 *         ladder does not depend on the budget, nor what is found on it: a
 *         larger budget chooses from at least as many plans.
 * cost    (HALVES_RUNGS + 1) * SAVE_PARTS rewrites and placements at most, less
 *         those of plans that recompute longer than the best one takes
 */
#include "passes/plan/halves.h"
#include "passes/cost/cost.h"
#include "passes/place/place.h"

#include <math.h>

void
halves_ladder(struct ladder *l, struct remat *r, struct choice *c,
              const uint8_t *must)
{
	struct found all = { .live = -1, .placed = -1 };
	int64_t top, least = choice_least(c);
	const struct found *last = NULL;

	all.drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);
	remat_keep_all(r, must, all.drop);
	all.sec = found_eval(r, &all).sec;
	top = found_placed(r, &all);
	l->plan[0] = all;
	l->n = 1;
	for (int k = HALVES_RUNGS - 1; k >= 0; k--) {
		const struct found *f = choice_take(c, least
			+ (top - least) / HALVES_RUNGS * k);

		if (f && f != last)
			l->plan[l->n++] = *f;
		last = f;
	}
}

/* Which values may be kept so: not what the user wants kept. */
static const bool *
find_wish(const Pass *p, const Graph *g, const struct remat *r,
          const uint8_t *must)
{
	bool *may = save_eligible(g, p->opt->save_dtype, p->scratch);

	for (int32_t s = 0; s < r->nstore; s++)
		may[r->store[s].owner] &= must[s] != 'k';
	return may;
}

static double
seconds_of(const Graph *g)
{
	double sum = 0;

	FOR_NODES (n, g)
		sum += node_cost(g, n->of ? &g->node[n->of] : n).sec;
	return sum;
}

/* Arena and seconds above keep-everything of a plan rewritten so; -1: nothing
 * of it is. */
static int64_t
measure(const Pass *p, const Graph *g, struct remat *r, const struct found *f,
        const struct save_request *wish, double *sec)
{
	Graph *t = graph_clone(g);
	Arena *scratch = arena_new();
	int64_t arena = -1;

	found_eval(r, f);
	remat_apply(r, t);
	if (save_rewrite(t, wish, p->target, scratch) > 0) {
		inplace_graph(t, scratch);
		arena = place_graph(t, p->watch, scratch);
		*sec = fmax(f->sec, seconds_of(t) - r->base_sec);
	}
	arena_free(scratch);
	graph_free(t);
	return arena;
}

struct search {
	const Pass *p;
	const Graph *g;
	struct remat *r;
	struct save_request wish;
	int64_t arena;
	double below;
	struct halves *best;
	bool found;
};

static void
try_plan(struct search *s, const struct found *f)
{
	for (int parts = 1; parts <= SAVE_PARTS; parts++) {
		double sec, limit = s->found ? s->best->sec : s->below;
		int64_t arena;

		if (f->sec >= limit || watch_over(s->p->watch))
			return;
		s->wish.parts = parts;
		arena = measure(s->p, s->g, s->r, f, &s->wish, &sec);
		if (arena >= 0 && arena < s->best->least)
			s->best->least = arena;
		if (arena < 0 || arena > s->arena || sec >= limit)
			continue;
		s->best->plan = *f;
		s->best->wish = s->wish;
		s->best->sec = sec;
		s->found = true;
	}
}

bool
halves_best(Pass *p, const Graph *g, struct remat *r, struct ladder *l,
            const uint8_t *must, int64_t arena, double below,
            struct halves *best)
{
	struct search s = { .p = p, .g = g, .r = r, .arena = arena,
	                    .below = below, .best = best };

	best->least = INT64_MAX;
	s.wish = (struct save_request){ .to = p->opt->save_dtype,
		.nval = g->nval, .eligible = find_wish(p, g, r, must) };
	for (int i = 0; i < l->n; i++)
		try_plan(&s, &l->plan[i]);
	return s.found;
}
