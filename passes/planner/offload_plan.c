/* Keep, recompute or offload.
 *
 * method  Plans for a grid of larger arenas, from keep-everything down, for
 *         this one, and presets, with as much offloaded as they need to fit
 *         (values.h).  A plan for more memory recomputes less and offloads
 *         more.  Each is timed with its transfers beside computation, and
 *         placed.  The grid does not depend on the budget.
 * bound   Without its transfers, a step that offloads is a step on a device
 *         that has more memory: by the bytes that the host holds at one time.
 *         These have been sent since the step began and are fetched before it
 *         ends, so they are at most what a lane carries in half the step.
 */
#include "passes/planner/offload_plan.h"
#include "passes/cost/cost.h"
#include "passes/overlap/overlap.h"
#include "passes/planner/set_generators.h"
#include "passes/place/place.h"

#include <math.h>

enum { PLAN_GRID = 12, REFINED = 3 };

struct offload_search {
	Pass *p;
	const Graph *g;
	struct schedule *trial;
	int64_t arena;
	struct offload_plan *best;
	double below;                   /* a step must take less seconds */
	bool found;
};

/* Seconds of a step of the graph with these values offloaded; INFINITY: it does
 * not fit once it is placed; NAN: its live bytes do not fit. */
static double
time_offloaded(const struct offload_search *s,
               const struct offload_request *request)
{
	Graph *t = graph_clone(s->g);
	Arena *a = arena_new();
	double sec = NAN;
	bool all;

	schedule_apply(s->trial, t);
	if (offload_values(t, request, a)) {
		sec = overlap_exposed_seconds(s->p, t, &all);
		inplace_graph(t, a);
		if (place_live_bound(t, a) > s->arena
		    || place_graph(t, s->arena, s->p->watch, a) > s->arena)
			sec = INFINITY;
	}
	arena_free(a);
	graph_free(t);
	return sec;
}

/* What fits by live bytes may not once it is placed. */
static bool
try_offloaded(struct offload_search *s, const struct known_plan *f)
{
	static const double share[] = { 1, 0.98, 0.95, 0.9 };
	double sec = INFINITY;
	bool better = false;

	/* what ranks send may be hidden */
	if (!overlap_has_transfers(s->g)
	    && s->trial->r->base_sec + f->sec >= s->below)
		return false;
	known_eval(s->trial, f);
	for (int k = 0; k < 4 && sec == INFINITY
	     && !watch_over(s->p->watch); k++) {
		struct offload_request request = {
			(int64_t)(share[k] * (double)s->arena),
			offload_host_room(s->p->opt, s->g),
			&s->p->opt->offload_values };

		sec = time_offloaded(s, &request);
		if (sec < s->below) {
			*s->best = (struct offload_plan){
				known_copy(s->trial->r, f), request, sec };
			s->below = sec;
			s->found = better = true;
		}
	}
	return better;
}

/* What repeats evenly leaves a lane busy all the time. */
static void
try_even_plans(struct offload_search *s, const uint8_t *constraint)
{
	static const struct {
		enum remat_mode mode;
		int64_t every;
	} preset[] = { { REMAT_EVERY, 2 }, { REMAT_EVERY, 3 },
		{ REMAT_EVERY, 4 }, { REMAT_FULL, 1 }, { REMAT_SELECTIVE, 1 } };
	const struct remat *r = s->trial->r;
	struct known_plan f = { .live = -1, .placed = -1 };

	for (size_t i = 0; i < sizeof preset / sizeof *preset; i++) {
		f.drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);
		remat_preset(r, constraint, preset[i].mode, preset[i].every,
		             f.drop);
		f.sec = known_eval(s->trial, &f).sec;
		try_offloaded(s, &f);
	}
}

/* The fastest plan for that arena, offloaded; whether it is the best so far. */
static bool
try_arena(struct offload_search *s, struct plan_selector *c, int64_t arena)
{
	const struct known_plan *f = selector_near(c, arena);

	return f && try_offloaded(s, f);
}

/* Between the best point of the grid and the next one. */
static void
refine(struct offload_search *s, struct plan_selector *c, int64_t low,
       int64_t high)
{
	for (int i = 0; i < REFINED; i++) {
		int64_t middle = low + (high - low) / 2;

		if (try_arena(s, c, middle))
			low = middle;
		else
			high = middle;
	}
}

bool
offload_best(Pass *p, const Graph *g, struct plan_selector *c,
             const uint8_t *constraint, struct schedule *w, int64_t arena,
             const struct known_plan *taken, double below,
             struct offload_plan *best)
{
	struct offload_search s = { p, g, w, arena, best, below, false };
	struct known_plan all = { .live = -1, .placed = -1 };
	int64_t top, at = arena;

	all.drop = arena_array(w->r->arena, (size_t)w->r->nstore + 1, 1);
	remat_keep_all(w->r, constraint, all.drop);
	all.sec = known_eval(w, &all).sec;
	top = known_placed(w, &all);
	try_offloaded(&s, &all);
	if (taken)
		try_offloaded(&s, taken);
	for (int k = PLAN_GRID - 1; k > 0; k--)
		if (try_arena(&s, c, top / PLAN_GRID * k))
			at = top / PLAN_GRID * k;
	refine(&s, c, at, at + top / PLAN_GRID);
	try_even_plans(&s, constraint);
	return s.found;
}

bool
offload_takes_values(const Pass *p)
{
	return p->opt->offload == OFFLOAD_AUTO && !p->opt->forward_only;
}

int64_t
offload_arena(const Pass *p, const Graph *g, int64_t arena, double sec)
{
	const struct device_profile *d = device_of(g);
	double latency = device_host_seconds(d, 0);
	double rate = 1 / (device_host_seconds(d, 1) - latency);
	double most = sec / 2 * rate;
	double host = (double)offload_host_room(p->opt, g);

	if (!offload_takes_values(p))
		return arena;
	if (most > host)
		most = host;
	return most < (double)(GRAPH_BYTES_MAX - arena) ? arena + (int64_t)most
	       : GRAPH_BYTES_MAX;
}
