/* Keep, recompute or offload.
 *
 * method  Plans for a grid of larger arenas, from keep-everything down, for
 *         this one, and presets, with as much offloaded as they need to fit
 *         (values.h).  A plan for more memory recomputes less and offloads
 *         more.  Each is timed with its transfers beside computation; the
 *         fastest that fits once it is placed is taken.  The grid does not
 *         depend on the budget.  In small graphs the set of the fastest is
 *         changed, storage by storage.
 * bound   Without its transfers, a step that offloads is a step on a device
 *         that has more memory: by the bytes that the host holds at one time.
 *         These have been sent since the step began and are fetched before it
 *         ends, so they are at most what a lane carries in half the step.
 */
#include "passes/planner/offload_plan.h"
#include "passes/cost/cost.h"
#include "passes/overlap/overlap.h"
#include "passes/planner/exposed.h"
#include "passes/planner/set_generators.h"
#include "passes/place/place.h"

#include <math.h>

enum {
	PLAN_GRID = 24, BRIEF_GRID = 6, REFINED = 3, EVEN = 5,
	CANDIDATES = PLAN_GRID + REFINED + EVEN + 3
};

int64_t
offload_sent(const Graph *g)
{
	int64_t sent = 0;

	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_HOST
		    && !(op_info[n->op].flags & F_FETCH))
			sent += g->val[node_sent(n)].nbytes;
	return sent;
}

struct candidate {
	struct offload_plan o;
	int share;                      /* of the arena, see share[] */
};

struct offload_search {
	Pass *p;
	const struct plan_source *from;
	int64_t arena;
	double below;                   /* a step must take less seconds */
	double least;                   /* seconds of the fastest so far */
	int64_t trials;                 /* sets to try beside */
	struct candidate candidate[CANDIDATES];
	int n;
};

/* Parts of the arena for what stays there, and with transfers in flight: what
 * fits by live bytes may not fit once it is placed. */
static const struct {
	double stays, flies;
} share[] = { { 1, 1 }, { 1, 0.98 }, { 1, 0.95 }, { 0.98, 0.98 },
	{ 0.95, 0.95 }, { 0.95, 0.9 }, { 0.9, 0.9 } };

enum { SHARES = sizeof share / sizeof *share };

static int64_t
part(double of, int64_t bytes)
{
	return (int64_t)(of * (double)bytes);
}

/* A graph planned and offloaded as the candidate says, with its transfers
 * overlapped as the live bytes allow; sets their seconds.  NULL: its live bytes
 * do not fit. */
static Graph *
offload_graph(const struct offload_search *s, struct candidate *c, Arena *a)
{
	int64_t room = part(share[c->share].flies, s->arena);
	struct offload_plan *o = &c->o;
	Graph *t = graph_trial(s->from->g);

	known_eval(s->from->w, &o->plan);
	schedule_apply(s->from->w, t);
	if (offload_values(t, &o->request, a)) {
		o->sec = overlap_unplaced_seconds(s->p, t, room);
		inplace_graph(t, a);
		if (place_live_bound(t, a) <= s->arena)
			return t;
	}
	graph_free(t);
	return NULL;
}

/* Offload for those shares of the arena, or the next ones for which the live
 * bytes fit; false: there are none, or it is too slow. */
static bool
time_candidate(const struct offload_search *s, struct candidate *c)
{
	for (; c->share < SHARES && !watch_over(s->p->watch); c->share++) {
		Arena *a = arena_new();
		Graph *t;
		bool fits;

		c->o.request = (struct offload_request){
			part(share[c->share].stays, s->arena),
			offload_host_room(s->p->opt, s->from->g),
			&s->p->opt->offload_values };
		t = offload_graph(s, c, a);
		fits = t != NULL;
		graph_free(t);
		arena_free(a);
		if (fits)
			return c->o.sec < s->below;
	}
	return false;
}

/* Offload beside this plan; whether that is the fastest so far. */
static bool
add_candidate(struct offload_search *s, const struct known_plan *f)
{
	struct candidate c = { .o.plan = *f };

	/* what ranks send may be hidden */
	if (!overlap_has_transfers(s->from->g)
	    && s->from->w->r->base_sec + f->sec >= s->below)
		return false;
	if (s->n == CANDIDATES || !time_candidate(s, &c))
		return false;
	c.o.plan = known_copy(s->from->w->r, f);
	s->candidate[s->n++] = c;
	if (c.o.sec >= s->least)
		return false;
	s->least = c.o.sec;
	return true;
}

/* What repeats evenly leaves a lane busy all the time. */
static void
add_even_plans(struct offload_search *s)
{
	static const struct {
		enum remat_mode mode;
		int64_t every;
	} preset[] = { { REMAT_EVERY, 2 }, { REMAT_EVERY, 3 },
		{ REMAT_EVERY, 4 }, { REMAT_FULL, 1 }, { REMAT_SELECTIVE, 1 } };
	const struct plan_source *from = s->from;
	const struct remat *r = from->w->r;
	struct known_plan f = { .live = -1, .placed = -1 };

	f.drop = arena_array(r->arena, (size_t)r->nstore + 1, 1);
	for (size_t i = 0; i < sizeof preset / sizeof *preset; i++) {
		remat_preset(r, from->constraint, preset[i].mode,
		             preset[i].every, f.drop);
		f.sec = known_eval(from->w, &f).sec;
		add_candidate(s, &f);
	}
}

/* The fastest plan for that arena, offloaded; whether it is the best so far. */
static bool
add_arena(struct offload_search *s, int64_t arena)
{
	const struct known_plan *f = selector_near(s->from->c, arena);

	return f && add_candidate(s, f);
}

/* The plans of the grid from `top` down, and some between the best one and the
 * next. */
static void
add_grid(struct offload_search *s, int64_t top)
{
	int grid = s->p->opt->brief ? BRIEF_GRID : PLAN_GRID;
	int64_t low = s->arena, high;

	for (int k = grid - 1; k > 0; k--)
		if (add_arena(s, top / grid * k))
			low = top / grid * k;
	high = low + top / grid;
	for (int i = 0; i < REFINED; i++) {
		int64_t middle = low + (high - low) / 2;

		if (add_arena(s, middle))
			low = middle;
		else
			high = middle;
	}
}

static struct candidate *
fastest_candidate(struct offload_search *s)
{
	struct candidate *c = s->n > 0 ? s->candidate : NULL;

	for (int i = 1; i < s->n; i++)
		if (s->candidate[i].o.sec < c->o.sec)
			c = &s->candidate[i];
	return c;
}

/* Try this set; whether it is the fastest so far, *c. */
static bool
try_set(struct offload_search *s, uint8_t *drop, struct candidate *c)
{
	struct candidate t = { .o.plan = { .live = -1, .placed = -1,
	                                   .drop = drop } };

	if (s->trials-- <= 0)
		return false;
	t.o.plan.sec = known_eval(s->from->w, &t.o.plan).sec;
	if (s->from->w->r->base_sec + t.o.plan.sec >= c->o.sec
	    || !time_candidate(s, &t) || t.o.sec >= c->o.sec * (1 - 1e-9))
		return false;
	*c = t;
	return true;
}

/* Flip storage i in the set, or with it the next one that differs. */
static void
improve_at(struct offload_search *s, uint8_t *drop, int32_t i,
           struct candidate *c)
{
	const struct remat *r = s->from->w->r;
	const uint8_t *fixed = s->from->constraint;
	int32_t left = 1;

	drop[i] = !drop[i];
	if (try_set(s, drop, c))
		return;
	for (int32_t k = i + 1; k < r->nstore && left > 0; k++) {
		if (!r->store[k].candidate || fixed[k] || drop[k] != drop[i])
			continue;
		left--;
		drop[k] = !drop[k];
		if (try_set(s, drop, c))
			return;
		drop[k] = !drop[k];
	}
	drop[i] = !drop[i];
}

/* Change the set of the fastest candidate, or of the fastest plan without
 * offload, storage by storage, while that makes it faster. */
static void
improve_fastest(struct offload_search *s, const struct known_plan *taken)
{
	const struct remat *r = s->from->w->r;
	const struct candidate *fastest = fastest_candidate(s);
	struct candidate c = { .o.sec = s->below };
	uint8_t *drop;
	double before;

	if (!fastest && !taken)
		return;
	if (fastest)
		c = *fastest;
	else
		c.o.plan = *taken;
	if (c.o.plan.step || s->n == CANDIDATES)
		return;
	drop = known_copy(r, &c.o.plan).drop;
	do {
		before = c.o.sec;
		for (int32_t i = 0; i < r->nstore; i++)
			if (r->store[i].candidate && !s->from->constraint[i])
				improve_at(s, drop, i, &c);
	} while (c.o.sec < before && s->trials > 0);
	if (c.o.plan.drop == drop)
		s->candidate[s->n++] = c;
}

/* Whether the candidate fits once it is placed. */
static bool
place_candidate(const struct offload_search *s, struct candidate *c)
{
	Arena *a = arena_new();
	Graph *t = offload_graph(s, c, a);

	c->o.placed = INT64_MAX;
	if (t) {
		c->o.placed = place_graph(t, s->arena, s->p->watch, a);
		c->o.sent = offload_sent(t);
	}
	graph_free(t);
	arena_free(a);
	return c->o.placed <= s->arena;
}

/* The fastest candidate that fits once it is placed.  One that does not is
 * tried with less room. */
static bool
take_fastest(struct offload_search *s, struct offload_plan *best)
{
	while (s->n > 0 && !watch_over(s->p->watch)) {
		struct candidate *c = fastest_candidate(s), *last;

		if (place_candidate(s, c)) {
			*best = c->o;
			return true;
		}
		c->share++;
		last = &s->candidate[s->n - 1];
		if (!time_candidate(s, c)) {
			*c = *last;
			s->n--;
		}
	}
	return false;
}

bool
offload_takes_values(const Pass *p)
{
	return p->opt->offload == OFFLOAD_AUTO && !p->opt->forward_only;
}

bool
offload_names_values(const Pass *p)
{
	return offload_takes_values(p) && p->opt->offload_values.n > 0;
}

/* Seconds that a step with offloaded values must stay below. */
static double
seconds_without(const Pass *p, const struct plan_source *from,
                const struct known_plan *taken)
{
	bool all;

	if (!taken || offload_names_values(p))
		return INFINITY;
	return overlap_has_transfers(from->g)
		? exposed_seconds(p, from, taken, INFINITY, &all, NULL)
		: from->w->r->base_sec + taken->sec;
}

bool
offload_best(Pass *p, const struct plan_source *from,
             const struct known_plan *taken, struct offload_plan *best)
{
	const struct remat *r = from->w->r;
	struct offload_search s = { .p = p, .from = from,
		.arena = p->planned.budget - r->resident, .least = INFINITY,
		.trials = 3000000 / ((int64_t)from->g->nnode
		                      * from->g->nnode) };
	struct known_plan all;

	if (!offload_takes_values(p))
		return false;
	s.below = seconds_without(p, from, taken);
	all = keep_all_plan(from);
	add_candidate(&s, &all);
	if (taken)
		add_candidate(&s, taken);
	add_grid(&s, known_placed(from->w, &all));
	add_even_plans(&s);
	improve_fastest(&s, taken);
	return take_fastest(&s, best);
}

/* What the arena and the host hold at one time, at most, in a step of less than
 * `sec` seconds: all in the host has gone there, and comes back. */
static int64_t
arena_with_host(const Pass *p, const Graph *g, int64_t arena, double sec)
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

struct recompute_bound
offload_bound(const Pass *p, const struct plan_source *from,
              const struct known_plan *plan, double sec)
{
	const struct remat *r = from->w->r;
	int64_t arena = p->planned.budget - r->resident;
	double all = r->base_sec + plan->sec;

	arena = arena_with_host(p, from->g, arena, sec > all ? sec : all);
	return selector_bound(from->c, arena, plan);
}
