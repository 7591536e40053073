/* The whole pipeline with its searches. */
#include "passes/explore/explore.h"

#include "passes/explore/choose_zero.h"
#include "passes/explore/halves.h"
#include "passes/explore/other_batch.h"
#include "passes/explore/plan_stages.h"
#include "passes/explore/suggest_tp.h"
#include "passes/explore/trial.h"
#include "passes/explore/variants.h"

/* ---- halves of a batch ---- */

struct step {
	double sec;                     /* -1: there is no plan */
	int64_t budget;                 /* bytes; -1: none */
	const char *text;
};

/* A step with or without halves; budget: in bytes, -1: p's own. */
static struct step
try_halves(Pass *p, const Graph *g, enum halves_choice halves, int64_t budget)
{
	struct step step = { .sec = -1 };
	struct trial t;

	trial_init(&t, p);
	t.options.halves = halves;
	if (budget > 0)
		set_budget_bytes(&t.options, budget);
	trial_begin(&t, g);
	if (explore(&t.pass, t.graph, NULL, NULL) && t.pass.planned.plan)
		step.sec = t.pass.planned.exposed_sec;
	step.budget = t.pass.planned.budget;
	step.text = step.sec < 0
		? arena_printf(p->keep, "no plan, %s", diag_reason(t.pass.diag))
		: arena_printf(p->keep, "%.4g s a step", step.sec);
	trial_close(&t);
	return step;
}

/* A budget in percent becomes one of what the whole batch takes. */
static enum halves_choice
take_faster(Pass *p, const Graph *g)
{
	struct step off, on;
	bool faster;

	if (p->opt->tp < 2) {
		diag_note(p->diag, "--halves auto takes off: without --tp no "
		          "half waits for ranks");
		return SPLIT_OFF;
	}
	if (p->opt->stages) {
		diag_note(p->diag, "--halves auto takes off: stages of a "
		          "pipeline do not run halves");
		return SPLIT_OFF;
	}
	off = try_halves(p, g, SPLIT_OFF, -1);
	on = try_halves(p, g, SPLIT_ON, off.budget);
	faster = on.sec >= 0 && (off.sec < 0 || on.sec < off.sec);
	if (off.budget > 0)
		pin_budget(p, off.budget);
	if (!watch_off(p->watch) && (on.sec >= 0 || off.sec >= 0))
		diag_note(p->diag, "--halves auto takes %s; on: %s; off: %s",
		          faster ? "on" : "off", on.text, off.text);
	return faster ? SPLIT_ON : SPLIT_OFF;
}

static bool
choose_halves(Pass *p, Graph *g)
{
	enum halves_choice halves = p->opt->halves;

	if (halves == SPLIT_OFF || g->halves)
		return true;
	if (g->props & P_STATIC)
		return diag_error(p->diag, "--halves: expected a graph whose "
		                  "shapes are not inferred yet, found one "
		                  "after pass fold; try: --halves off");
	if (halves == SPLIT_AUTO)
		halves = take_faster(p, g);
	return halves != SPLIT_ON || halve_batch(p, g);
}

/* ---- all passes ---- */

/* Whether pass loss was reached. */
static bool
reach_loss(struct pass_walk *w, Pass *p, Graph *g)
{
	bool bound = pass_walk_reach(w, p, g, pass_that_gives(P_STATIC)), ok;
	Graph *other_batch = NULL;

	if (w->ok && !w->stopped && !choose_halves(p, g)) {
		w->ok = false;
		return false;
	}
	if (bound)
		other_batch = other_batch_graph(p, g);
	ok = pass_walk_reach(w, p, g, pass_that_gives(P_LOSS) + 1);
	if (ok && other_batch)
		other_batch_check(p, g, other_batch);
	graph_free(other_batch);
	return ok;
}

bool
explore_to_loss(Pass *p, Graph *g)
{
	struct pass_walk w = pass_walk_begin(p, g, NULL, NULL);

	return reach_loss(&w, p, g);
}

bool
explore(Pass *p, Graph *g, const char *stop_after,
        const struct dump_request *dump)
{
	struct pass_walk w = pass_walk_begin(p, g, stop_after, dump);
	Graph *whole = NULL;

	if (reach_loss(&w, p, g)) {
		if (p->opt->zero == ZERO_AUTO && !p->opt->forward_only)
			choose_zero(p, g);
		if (may_suggest_tp(p, g))
			whole = graph_clone(g);
	}
	if (!w.ok)
		return false;
	if (p->opt->stages)
		plan_stages(&w, p, g);
	else
		plan_variants(&w, p, g);
	if (!w.ok && p->planned.refused && whole)
		suggest_tp(p, whole);
	graph_free(whole);
	return w.ok;
}
