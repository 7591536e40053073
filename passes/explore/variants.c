/* Variants of a step, for small budgets.
 *
 * low memory      Applying a gradient as soon as it is complete frees its bytes
 *                 early, but rules out clipping by the norm over all.  Copies
 *                 of parameters that stay in memory need not be made in each
 *                 step.  For --update-in-backward auto, and copies likewise.
 * offload states  Optimizer states in host memory free their bytes, but are
 *                 transferred in each step.  For --offload auto.
 *
 * A step without any of them is planned first.  If the budget makes it
 * recompute or wait, the others are planned, too, and the one whose step is
 * fastest is taken; so more budget is never slower.
 */
#include "passes/explore/variants.h"

#include "passes/grad/grad.h"
#include "runtime/support/number.h"

enum { VARIANTS = 3 };

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

/* Those that may be better than a step without, or in little time the one that
 * takes least memory; how many. */
static int
list_variants(const Pass *p, const Graph *g, struct variant v[VARIANTS])
{
	bool low = has_low_memory_variant(p, g), off = has_offload_variant(p);
	bool all = !(low && off && p->opt->brief);
	int n = 0;

	if (low && all)
		v[n++] = (struct variant){ .low_memory = true };
	if (off && all)
		v[n++] = (struct variant){ .offload_states = true };
	if (low && off)
		v[n++] = (struct variant){ .low_memory = true,
			                   .offload_states = true };
	return n;
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

/* Whether the variant planned last is better than that of `best`. */
static bool
is_better(const Pass *p, const struct planned *best)
{
	return best->refused || (!p->planned.refused
	                         && p->planned.exposed_sec < best->exposed_sec);
}

/* Plan `trial`, the graph as it was before updates, as a variant; if that is
 * better it takes g's place. */
static void
try_variant(struct pass_walk *w, Pass *p, Graph *g, Graph *trial,
            struct variant variant)
{
	struct planned best = p->planned;
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
	if (!w->ok) {
		if (p->planned.reference != best.reference)
			graph_free(best.reference);
		return;
	}
	if (is_better(p, &best)) {
		swap_graphs(g, trial);
	} else {
		worse = p->planned.reference;
		p->planned = best;
	}
	graph_free(worse);
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

	if (d->nhost_state < d->nstate && !d->refused)
		diag_note(p->diag, "--host-memory %s: %u of %u optimizer "
		          "states are offloaded",
		          number_bytes(room, (double)p->opt->host_memory),
		          d->nhost_state, d->nstate);
}

void
plan_variants(struct pass_walk *w, Pass *p, Graph *g)
{
	struct variant v[VARIANTS];
	Graph *before = NULL;
	int n = 0;

	if (pass_walk_reach(w, p, g, pass_that_gives(P_UPD)))
		n = list_variants(p, g, v);
	if (n > 0)
		before = graph_clone(g);
	p->variant.allow_refusal = n > 0;
	if (!pass_walk_reach(w, p, g, pass_that_gives(P_PLANNED) + 1))
		n = 0;
	for (int i = 0; i < n && w->ok && may_gain(p, g); i++) {
		Graph *trial = graph_clone(before);

		v[i].allow_refusal = i + 1 < n || !p->planned.refused;
		if (!p->planned.refused && !p->planned.pareto_front)
			v[i].below = p->planned.exposed_sec;
		try_variant(w, p, g, trial, v[i]);
		retire(p, trial);
	}
	p->variant.allow_refusal = false;
	note_states_without_room(p);
	pass_walk_finish(w, p, g);
	/* clones share the contents of values with their original */
	if (before)
		retire(p, before);
}
