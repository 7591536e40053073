/* The low-memory variant of a step, for small budgets.
 *
 * Applying a gradient as soon as it is there frees its bytes early, but rules
 * out clipping by the norm over all.  Copies of parameters that stay in memory
 * need not be made in each step.  With --update-in-backward auto, and copies
 * likewise, two variants are planned if a budget makes the first recompute:
 * updates at the end with copies, and low memory.  The one whose step is faster
 * is taken; so more budget is never slower.
 */
#include "passes/explore/low_memory.h"

#include "passes/grad/grad.h"

static bool
has_low_memory_variant(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return o && (o->budget_bytes > 0 || o->budget_pct > 0 || o->curve)
		&& (optim_may_update_in_backward(p, g)
		    || optim_copies(p, g, false) != optim_copies(p, g, true));
}

static void
swap_graphs(Graph *a, Graph *b)
{
	Graph t = *a;

	*a = *b;
	*b = t;
}

/* Plan `before`, the graph as it was before updates, as the low-memory variant;
 * if that is better it takes g's place. */
static void
try_low_memory(struct pass_walk *w, Pass *p, Graph *g, Graph *before)
{
	struct planned late = p->planned;
	struct pass_walk again = *w;
	Graph *worse = late.reference;

	/* the curve has a point in common with the other form at least */
	if (watch_over(p->watch) && !late.refused && !late.pareto_front)
		return;
	p->variant = (struct variant){ .low_memory = true,
	                               .allow_refusal = !late.refused };
	p->planned.refused = false;
	again.next = pass_that_gives(P_UPD);
	again.stopped = false;
	again.stop_after = NULL;
	pass_walk_reach(&again, p, before, w->next);
	w->number = again.number;
	w->ok = again.ok;
	if (!w->ok) {
		if (p->planned.reference != late.reference)
			graph_free(late.reference);
		return;
	}
	if (!late.refused && (p->planned.refused
	                      || p->planned.exposed_sec >= late.exposed_sec)) {
		worse = p->planned.reference;
		p->planned = late;
	} else {
		swap_graphs(g, before);
	}
	graph_free(worse);
	p->variant.allow_refusal = false;
}

void
plan_variants(struct pass_walk *w, Pass *p, Graph *g)
{
	Graph *before = NULL;

	if (pass_walk_reach(w, p, g, pass_that_gives(P_UPD))
	    && has_low_memory_variant(p, g)) {
		before = graph_clone(g);
		p->variant.allow_refusal = true;
	}
	if (pass_walk_reach(w, p, g, pass_that_gives(P_PLANNED) + 1) && before
	    && (p->planned.refused || p->planned.recompute_sec > 0
	        || p->planned.pareto_front))
		try_low_memory(w, p, g, before);
	pass_walk_finish(w, p, g);
	/* clones share the contents of values with their original */
	p->retired = before ? before->arena : NULL;
}
