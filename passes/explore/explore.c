/* The whole pipeline with its searches. */
#include "passes/explore/explore.h"

#include "passes/explore/choose_zero.h"
#include "passes/explore/halves.h"
#include "passes/explore/low_memory.h"
#include "passes/explore/other_batch.h"
#include "passes/explore/suggest_tp.h"
#include "passes/explore/trial.h"

/* ---- halves of a batch ---- */

/* Seconds of a step with or without halves; -1: there is no plan. */
static double
try_halves(const Pass *p, const Graph *g, enum halves_choice halves)
{
	struct trial t;
	double sec = -1;

	trial_init(&t, p);
	t.options.halves = halves;
	trial_begin(&t, g);
	if (explore(&t.pass, t.graph, NULL, NULL) && t.pass.planned.plan)
		sec = t.pass.planned.exposed_sec;
	trial_close(&t);
	return sec;
}

static const char *
describe_step(Pass *p, double sec)
{
	return sec < 0 ? "no plan"
	     : arena_printf(p->keep, "%.4g s a step", sec);
}

static bool
are_halves_faster(Pass *p, const Graph *g)
{
	double off, on;
	bool faster;

	if (p->opt->tp < 2) {
		diag_note(p->diag, "--halves auto takes off: without --tp no "
		          "half waits for ranks");
		return false;
	}
	off = try_halves(p, g, SPLIT_OFF);
	on = try_halves(p, g, SPLIT_ON);
	faster = on >= 0 && (off < 0 || on < off);
	if (!watch_off(p->watch))
		diag_note(p->diag, "--halves auto takes %s; on: %s, off: %s",
		          faster ? "on" : "off", describe_step(p, on),
		          describe_step(p, off));
	return faster;
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
		halves = are_halves_faster(p, g) ? SPLIT_ON : SPLIT_OFF;
	return halves != SPLIT_ON || halve_batch(p, g);
}

/* ---- all passes ---- */

bool
explore(Pass *p, Graph *g, const char *stop_after,
        const struct dump_request *dump)
{
	struct pass_walk w = pass_walk_begin(p, g, stop_after, dump);
	Graph *other_batch = NULL, *whole = NULL;
	bool bound = pass_walk_reach(&w, p, g, pass_that_gives(P_STATIC));

	if (w.ok && !w.stopped && !choose_halves(p, g))
		return false;
	if (bound)
		other_batch = other_batch_graph(p, g);
	if (pass_walk_reach(&w, p, g, pass_that_gives(P_LOSS) + 1)) {
		if (other_batch)
			other_batch_check(p, g, other_batch);
		if (p->opt->zero == ZERO_AUTO && !p->opt->forward_only)
			choose_zero(p, g);
		if (may_suggest_tp(p, g))
			whole = graph_clone(g);
	}
	plan_variants(&w, p, g);
	if (!w.ok && p->planned.refused && whole)
		suggest_tp(p, whole);
	graph_free(whole);
	graph_free(other_batch);
	return w.ok;
}
