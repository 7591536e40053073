/* Variants of a step, for small budgets.
 *
 * low memory      Applying a gradient as soon as it is complete frees its bytes
 *                 early, but rules out clipping by the norm over all.  Copies
 *                 of parameters that stay in memory need not be made in each
 *                 step.  For --update-in-backward auto, and copies likewise.
 * offload states  Optimizer states in host memory free their bytes, but are
 *                 transferred in each step, which takes long: some may be
 *                 enough.  For --offload auto.
 *
 * A step without any of them is planned first.  If the budget makes it
 * recompute or wait, the others are planned, too, and the one whose step is
 * fastest is taken; so more budget is never slower.
 */
#include "passes/explore/variants.h"

#include "passes/cost/cost.h"
#include "passes/grad/grad.h"
#include "passes/offload/offload.h"
#include "runtime/support/number.h"

/* Parts of all states, of which some may be in host memory.  From the fewest on
 * that are enough, every COARSE-th number of parts is tried. */
enum { PARTS = 64, COARSE = 16 };

/* What variants are made from, and what is known of them. */
struct forms {
	struct pass_walk *w;
	Pass *p;
	Graph *g;                       /* the best so far */
	const Graph *before;            /* as it was before updates */
	int64_t least[2];               /* budget that works without states in
	                                 * host memory; by low memory */
	int64_t bytes[PARTS];           /* of so many parts of the states; */
	int64_t most;                   /* ... of all that have room */
};

bool
plan_has_budget(const struct options *o)
{
	return o->budget_bytes > 0 || o->budget_pct > 0;
}

static bool
has_low_memory_variant(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return (plan_has_budget(o) || o->curve)
		&& (optim_may_update_in_backward(p, g)
		    || optim_copies(p, g, false) != optim_copies(p, g, true));
}

static bool
has_offload_variant(const Pass *p)
{
	const struct options *o = p->opt;

	return o->offload == OFFLOAD_AUTO && (plan_has_budget(o) || o->curve)
		&& o->optimizer != OPT_NONE && !o->forward_only;
}

static void
swap_graphs(Graph *a, Graph *b)
{
	Graph t = *a;

	*a = *b;
	*b = t;
}

static void
retire(Pass *p, Graph *g)
{
	if (p->retired)
		arena_join(p->retired, g->arena);
	else
		p->retired = g->arena;
}

static int64_t
least_budget(const Pass *p)
{
	return p->planned.refused ? p->planned.minimum_peak : p->planned.budget;
}

/* Whether the variant planned last is better than that of `best`. */
static bool
is_better(const Pass *p, const struct planned *best)
{
	return best->refused || (!p->planned.refused
	                         && p->planned.exposed_sec < best->exposed_sec);
}

/* Plan `trial`, the graph as it was before updates, as a variant; if that is
 * better it takes g's place.  The smallest budget that works, if it is refused;
 * else the budget. */
static int64_t
try_variant(struct pass_walk *w, Pass *p, Graph *g, Graph *trial,
            struct variant variant)
{
	struct planned best = p->planned;
	int64_t least;
	struct pass_walk again = *w;
	Graph *worse = best.reference;

	p->variant = variant;
	p->planned.refused = false;
	again.next = pass_that_gives(P_UPD);
	again.stopped = false;
	again.stop_after = NULL;
	pass_walk_reach(&again, p, trial, w->next);
	w->number = again.number;
	w->ok = again.ok;
	least = least_budget(p);
	if (!w->ok) {
		if (p->planned.reference != best.reference)
			graph_free(best.reference);
		return least;
	}
	if (is_better(p, &best)) {
		swap_graphs(g, trial);
	} else {
		worse = p->planned.reference;
		p->planned = best;
	}
	graph_free(worse);
	return least;
}

/* Nothing is faster than a step that neither recomputes nor waits. */
static bool
may_gain(const Pass *p, const Graph *g)
{
	const struct planned *d = &p->planned;

	/* the curve has a point in common with the other form at least */
	if (watch_over(p->watch) && !d->refused && !d->pareto_front)
		return false;
	return d->refused || d->pareto_front || d->recompute_sec > 0
		|| d->exposed_sec > d->step_sec * (1 + 1e-9)
		|| graph_has_op(g, OP_FETCH);
}

static void
note_states_without_room(const Pass *p)
{
	const struct planned *d = &p->planned;
	char room[24];

	if (!d->state_parts && d->nhost_state < d->nstate && !d->refused)
		diag_note(p->diag, "--host-memory %s: %u of %u optimizer "
		          "states are offloaded",
		          number_bytes(room, (double)p->opt->host_memory),
		          d->nhost_state, d->nstate);
}

/* last: a refusal of this one is reported. */
static int64_t
try_form(struct forms *f, struct variant v, bool last)
{
	const struct planned *d = &f->p->planned;
	Graph *trial = graph_clone(f->before);
	int64_t least;

	v.allow_refusal = !last || !d->refused;
	if (!d->refused && !d->pareto_front)
		v.below = d->exposed_sec;
	least = try_variant(f->w, f->p, f->g, trial, v);
	retire(f->p, trial);
	return least;
}

static bool
may_try(const struct forms *f)
{
	return f->w->ok && may_gain(f->p, f->g);
}

/* A lane carries them to the device and back in each step. */
static bool
may_gain_with(const struct forms *f, int64_t bytes)
{
	const struct planned *d = &f->p->planned;

	return d->refused || d->pareto_front
		|| device_host_seconds(device_of(f->g), (double)bytes)
		   < d->exposed_sec;
}

/* Whether this part of the states is tried; least: the budget that works
 * without. */
static bool
is_tried(const struct forms *f, int part, int64_t least)
{
	const struct planned *d = &f->p->planned;
	int64_t bytes = f->bytes[part];

	/* curves have all */
	if (d->pareto_front || bytes > f->most || bytes == f->bytes[part - 1])
		return false;
	return least > d->budget ? least - bytes <= d->budget
		: part % COARSE == 0;
}

/* With states in host memory, first the fewest that may be enough, at last all.
 * The limit of host memory does not decide which parts there are. */
static void
try_states(struct forms *f, bool low, bool last)
{
	struct variant v = { .low_memory = low, .offload_states = true };
	int64_t least = f->least[low];

	for (int i = 1; i < PARTS && may_try(f)
	     && may_gain_with(f, f->bytes[i]); i++) {
		int64_t needs;

		if (!is_tried(f, i, least))
			continue;
		v.state_room = f->bytes[i];
		needs = try_form(f, v, false);
		least = needs > f->p->planned.budget ? needs + f->bytes[i]
			: needs;
	}
	v.state_room = 0;
	if (may_try(f) && may_gain_with(f, f->most))
		try_form(f, v, last);
}

/* Of the form that is planned first. */
static void
find_parts(struct forms *f)
{
	Arena *scratch = arena_new();
	int64_t limit = f->p->opt->host_memory;
	int64_t all = offload_bytes(f->p, f->g, INT64_MAX, scratch);

	for (int i = 0; i < PARTS; i++)
		f->bytes[i] = offload_bytes(f->p, f->g, all / PARTS * i,
		                            scratch);
	f->most = limit ? offload_bytes(f->p, f->g, limit, scratch) : all;
	arena_free(scratch);
}

void
plan_variants(struct pass_walk *w, Pass *p, Graph *g)
{
	struct forms f = { .w = w, .p = p, .g = g };
	Graph *before = NULL;
	bool low = false, off = false, all;

	if (pass_walk_reach(w, p, g, pass_that_gives(P_UPD))) {
		low = has_low_memory_variant(p, g);
		off = has_offload_variant(p);
	}
	/* in little time, what takes least memory */
	all = !(low && off && p->opt->brief);
	if (low || off)
		f.before = before = graph_clone(g);
	p->variant.allow_refusal = low || off;
	if (pass_walk_reach(w, p, g, pass_that_gives(P_PLANNED) + 1)) {
		f.least[false] = f.least[true] = least_budget(p);
		if (off)
			find_parts(&f);
		if (low && all && may_try(&f))
			f.least[true] = try_form(&f, (struct variant){
				.low_memory = true }, !off);
		if (off && all)
			try_states(&f, false, !low);
		if (off && low)
			try_states(&f, true, true);
	}
	p->variant.allow_refusal = false;
	note_states_without_room(p);
	pass_walk_finish(w, p, g);
	/* clones share the contents of values with their original */
	if (before)
		retire(p, before);
}
