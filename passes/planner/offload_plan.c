/* Keep, recompute or offload.
 *
 * program x_s = 1: storage s is kept for backward; z_n: node n runs again;
 *         h_t: bytes in host memory while node t runs.  A kept storage may be
 *         there in the longest pause between two uses, so h_t takes the place
 *         of one more choice for each storage: the values with the longest
 *         pauses go first (Belady 1966), and a lane carries them in that order.
 *             x_s + z_def(s) >= 1,  z_n <= x_s + z_def(s) for operands s of n
 *             kept, repeated and other bytes at t  -  h_t  <=  arena
 *             h_t <= rate (seconds before t),  h_t <= rate (seconds behind t)
 *             h_t <= bytes that pause at t,  h_t <= host memory
 *         minimise the seconds of z and of waits.  Seconds before t are those
 *         of first runs, of z and of waits.
 * plans   selector_host (choose.c) searches for sets of that program, with h as
 *         a fluid.  Those for arenas around this one are timed with their
 *         transfers, as far as the bound leaves any hope; the fastest is taken
 *         that fits once it is placed.  In small graphs its set is changed,
 *         storage by storage.  Arenas are those of a grid.  Where ranks
 *         exchange values, clones may hide in transfers, so that nothing says
 *         how fast a plan is: plans of all sizes are timed instead.
 *         What is tried does not depend on the limit of host memory, which only
 *         rules plans out, so that more host memory makes no plan slower.
 * bound   No second, of clones or waits, brings more bytes than a lane carries
 *         in it: see cut_bound.c and compose.c.
 */
#include "passes/planner/offload_plan.h"
#include "passes/cost/cost.h"
#include "passes/overlap/overlap.h"
#include "passes/planner/exposed.h"
#include "passes/planner/set_generators.h"
#include "passes/place/place.h"

#include <math.h>
#include <string.h>

enum {
	LEVELS = 1152,                   /* arenas of the grid, up to that of
	                                 * keep-everything */
	DOWN = 192, UP = 48,             /* most that are looked at */
	BRIEF = 4,                      /* the same where time is short */
	SIZES = 24                      /* arenas of all sizes, where what ranks
	                                 * send may hide clones */
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

struct offload_search {
	Pass *p;
	const struct plan_source *from;
	struct plan_selector *host;     /* plans of the program */
	struct plan_selector *bound;    /* its bounds, with the limit of host
	                                 * memory */
	int64_t arena, room;
	double rate;                    /* bytes a second of a lane */
	bool hides;                     /* what ranks send may be hidden */
	double below;                   /* a step must take less seconds */
	struct offload_plan *best;      /* the fastest so far */
	bool found;
	/* with the least seconds: of plans that wait for lanes, in all; of
	 * those that do not, or are too slow, of clones */
	struct known_plan waiting, other;
	double waiting_sec;
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

/* Offload beside a plan with the k-th shares of the arena.  Sets seconds, and
 * if they are less than the fastest plan's the bytes once it is placed.  False:
 * its live bytes do not fit. */
static bool
offload_beside(const struct offload_search *s, int k, struct offload_plan *o)
{
	Arena *a = arena_new();
	Graph *t = graph_trial(s->from->g);
	bool fits = false;

	o->request = (struct offload_request){ part(share[k].stays, s->arena),
		offload_names_values(s->p) ? s->room : INT64_MAX,
		&s->p->opt->offload_values };
	o->placed = INT64_MAX;
	known_eval(s->from->w, &o->plan);
	schedule_apply(s->from->w, t);
	if (offload_values(t, &o->request, a)) {
		o->sec = overlap_unplaced_seconds(s->p, t,
			part(share[k].flies, s->arena));
		o->sent = offload_sent(t);
		inplace_graph(t, a);
		fits = place_live_bound(t, a) <= s->arena;
		if (fits && o->sec < s->below)
			o->placed = place_graph(t, s->arena, s->p->watch, a);
	}
	graph_free(t);
	arena_free(a);
	return fits;
}

static void
note_plan(struct offload_search *s, const struct known_plan *f, double sec)
{
	const struct remat *r = s->from->w->r;

	if (f->step)
		return;
	if (sec > (r->base_sec + f->sec) * (1 + 1e-9)) {
		if (s->waiting.drop && sec >= s->waiting_sec)
			return;
		s->waiting = known_copy(r, f);
		s->waiting_sec = sec;
	} else if (!s->other.drop || f->sec < s->other.sec) {
		s->other = known_copy(r, f);
	}
}

/* Offload beside this plan, if that is the fastest so far; its seconds. */
static double
add_offloaded(struct offload_search *s, const struct known_plan *f)
{
	struct offload_plan o = { .plan = *f,
		.sec = s->from->w->r->base_sec + f->sec };

	if (!s->hides && o.sec >= s->below) {
		note_plan(s, f, o.sec);
		return o.sec;
	}
	for (int k = 0; k < SHARES && !watch_over(s->p->watch); k++) {
		if (!offload_beside(s, k, &o) || (o.sec < s->below
			&& o.sent <= s->room && o.placed > s->arena))
			continue;
		note_plan(s, f, o.sec);
		if (o.sec >= s->below || o.sent > s->room)
			return o.sec;
		*s->best = o;
		s->best->plan = known_copy(s->from->w->r, f);
		s->found = true;
		s->below = o.sec;
		return o.sec;
	}
	return INFINITY;
}

/* Plans between the fastest that waits and one that does not: up to a storage
 * as the one, from there on as the other. */
static void
try_mixtures(struct offload_search *s, bool upto)
{
	const struct known_plan x = s->waiting, y = s->other;
	const struct remat *r = s->from->w->r;
	size_t all = (size_t)r->nstore, low = 0, high = all;
	struct known_plan f = { .live = -1, .placed = -1 };

	if (!x.drop || !y.drop)
		return;
	f.drop = arena_array(r->arena, all + 1, 1);
	while (high - low > 1 && !watch_over(s->p->watch)) {
		size_t n = low + (high - low) / 2;

		memcpy(f.drop, upto ? y.drop : x.drop, all);
		memcpy(f.drop + n, (upto ? x.drop : y.drop) + n, all - n);
		f.sec = known_eval(s->from->w, &f).sec;
		if ((add_offloaded(s, &f) > (r->base_sec + f.sec) * (1 + 1e-9))
		    == upto)
			low = n;
		else
			high = n;
	}
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
		add_offloaded(s, &f);
	}
}

/* Whether the changed set, at one more trial, is the fastest so far. */
static bool
is_faster_set(struct offload_search *s, struct known_plan *f, int64_t *trials)
{
	double before = s->below;

	if ((*trials)-- <= 0)
		return false;
	f->sec = known_eval(s->from->w, f).sec;
	add_offloaded(s, f);
	return s->below < before * (1 - 1e-9);
}

/* Flip storage i in the set, or with it the next one that differs. */
static void
improve_at(struct offload_search *s, struct known_plan *f, int32_t i,
           int64_t *trials)
{
	const struct remat *r = s->from->w->r;
	const uint8_t *fixed = s->from->constraint;
	uint8_t *drop = f->drop;
	int32_t k = i + 1;

	drop[i] = !drop[i];
	if (is_faster_set(s, f, trials))
		return;
	while (k < r->nstore && (!r->store[k].candidate || fixed[k]
	                         || drop[k] == drop[i]))
		k++;
	if (k < r->nstore) {
		drop[k] = !drop[k];
		if (is_faster_set(s, f, trials))
			return;
		drop[k] = !drop[k];
	}
	drop[i] = !drop[i];
}

/* Change the set, storage by storage, while that makes the fastest plan
 * faster. */
static void
improve_set(struct offload_search *s, const struct known_plan *of,
            int64_t *trials)
{
	const struct remat *r = s->from->w->r;
	struct known_plan f = { .live = -1, .placed = -1 };
	double before;

	if (!of || !of->drop || of->step)
		return;
	f.drop = known_copy(r, of).drop;
	do {
		before = s->below;
		for (int32_t i = 0; i < r->nstore; i++)
			if (r->store[i].candidate && !s->from->constraint[i])
				improve_at(s, &f, i, trials);
	} while (s->below < before && *trials > 0);
}

/* From some plans that are fast in one way or another. */
static void
improve_sets(struct offload_search *s, const struct known_plan *taken)
{
	const int64_t nnode = s->from->g->nnode;
	const struct known_plan waiting = s->waiting, other = s->other;
	int64_t trials = 3000000 / (nnode * nnode);

	improve_set(s, s->found ? &s->best->plan : taken, &trials);
	improve_set(s, &waiting, &trials);
	improve_set(s, &other, &trials);
}

/* Plans for the arenas of the grid from this one on, up or down, while there is
 * hope. */
static void
try_levels(struct offload_search *s, bool up)
{
	int64_t width = selector_top(s->host) / LEVELS + 1;
	int64_t at = s->arena / width + up;
	const double base = s->from->w->r->base_sec;
	const struct known_plan *f, *last = NULL;

	for (int n = s->p->opt->brief ? BRIEF : up ? UP : DOWN;
	     n > 0 && at > 0 && !watch_over(s->p->watch); n--) {
		int64_t over = up ? (at - 1) * width - s->arena : 0;
		double wait = over > 0 ? (double)over / s->rate : 0;

		f = selector_near(s->host, at * width);
		if (!f || (!s->hides && base + wait
		           + selector_bound(s->bound, at * width, f).sec
		           >= s->below))
			return;
		if (f != last)
			add_offloaded(s, f);
		last = f;
		at += up ? 1 : -1;
	}
}

/* Plans for a few arenas of all sizes, of which no bound says that they are too
 * slow: of the program, and sets that are known without host memory. */
static void
try_all_sizes(struct offload_search *s)
{
	int64_t step = selector_top(s->host) / SIZES + 1;
	const struct known_plan *f, *last = NULL;

	for (int k = 1; k < 2 * SIZES && !watch_over(s->p->watch); k++) {
		f = k < SIZES ? selector_near(s->host, (SIZES - k) * step)
			: selector_known_set(s->from->c, 2 * SIZES - k, SIZES);
		if (f && f != last)
			add_offloaded(s, f);
		last = f;
	}
}

static void
try_grid(struct offload_search *s)
{
	if (s->hides && !s->p->opt->brief) {
		try_all_sizes(s);
		return;
	}
	try_levels(s, false);
	try_levels(s, true);
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

/* Bytes a second of a lane. */
static double
lane_rate(const Graph *g)
{
	const struct device_profile *d = device_of(g);

	return 1 / (device_host_seconds(d, 1) - device_host_seconds(d, 0));
}

/* Bytes of host memory that values may have. */
static int64_t
host_room(const Pass *p, const Graph *g)
{
	int64_t room = offload_host_room(p->opt, g);

	return room < GRAPH_BYTES_MAX ? room : GRAPH_BYTES_MAX;
}

/* No step of the graph takes less: optimizer states go to host memory and come
 * back, too. */
static double
least_seconds(const Pass *p, const struct plan_source *from)
{
	Graph *t;
	double sec;

	if (!overlap_has_transfers(from->g)
	    || overlap_has_rank_transfers(from->g))
		return 0;
	t = graph_trial(from->g);
	sec = overlap_unplaced_seconds(p, t, GRAPH_BYTES_MAX);
	graph_free(t);
	return sec;
}

bool
offload_best(Pass *p, const struct plan_source *from,
             const struct known_plan *taken, struct offload_plan *best)
{
	const struct remat *r = from->w->r;
	struct offload_search s = { .p = p, .from = from,
		.arena = p->planned.budget - r->resident,
		.rate = lane_rate(from->g),
		.hides = overlap_has_rank_transfers(from->g), .best = best };
	struct known_plan all;
	double below;

	if (!offload_takes_values(p))
		return false;
	s.below = seconds_without(p, from, taken);
	if (p->variant.below > 0 && !offload_names_values(p))
		s.below = fmin(s.below, p->variant.below);
	if (least_seconds(p, from) >= s.below)
		return false;
	below = s.below;
	s.host = selector_host(from->c, s.rate, GRAPH_BYTES_MAX);
	s.bound = s.host;
	s.room = offload_names_values(p) ? host_room(p, from->g)
		: GRAPH_BYTES_MAX;
	all = keep_all_plan(from);
	add_offloaded(&s, &all);
	if (taken)
		add_offloaded(&s, taken);
	add_even_plans(&s);
	try_grid(&s);
	if (!p->opt->brief)
		try_mixtures(&s, true);
	try_mixtures(&s, false);
	if (!p->opt->brief)
		improve_sets(&s, taken);
	if (!s.found || best->sent <= host_room(p, from->g))
		return s.found;
	s.below = below;
	s.found = false;
	s.room = host_room(p, from->g);
	s.bound = selector_host(from->c, s.rate, s.room);
	try_grid(&s);
	return s.found;
}

/* Where ranks send: what the arena and the host hold at one time in a step of
 * less than `sec` seconds, at most.  All in the host has gone there since the
 * step began and comes back before it ends. */
static int64_t
arena_with_host(const Pass *p, const Graph *g, int64_t arena, double sec)
{
	double most = fmin(sec / 2 * lane_rate(g), (double)host_room(p, g));

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

	if (!offload_takes_values(p))
		return selector_bound(from->c, arena, plan);
	if (!overlap_has_rank_transfers(from->g))
		return selector_bound(selector_host(from->c, lane_rate(from->g),
			host_room(p, from->g)), arena, plan);
	return selector_bound(from->c, arena_with_host(p, from->g, arena,
		sec > all ? sec : all), plan);
}
