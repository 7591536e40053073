/* If a budget is too small: plan the model for 2, 4 and 8 ranks, and suggest
 * the first --tp that fits.  A refusal should not take much longer for that, so
 * there is no suggestion if sharding strategies are hard to find.
 */
#include "passes/explore/suggest_tp.h"

#include "passes/explore/low_memory.h"

#include <stdio.h>

bool
may_suggest_tp(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return o && !o->tp && !g->ranks
		&& (o->budget_bytes > 0 || o->budget_pct > 0);
}

/* The peak of one of so many ranks of the graph, which is whole; -1: it does
 * not fit the budget, or there is no layout; *hard: because strategies are hard
 * to find. */
static int64_t
peak_of_rank(const Pass *p, const Graph *whole, int64_t ranks, bool *hard)
{
	struct pass_walk w = { .next = pass_that_gives(P_LOSS) + 1,
	                       .ok = true };
	FILE *nowhere = fopen("/dev/null", "w");
	struct options o = *p->opt;
	Pass trial = { .opt = &o, .target = p->target, .watch = p->watch };
	Graph *g;
	int64_t peak = -1;

	if (!nowhere)
		return -1;
	o.tp = ranks;
	o.dp = o.dp ? o.dp : DP_TRY;
	o.slim = o.strategy_draft = true;
	o.account = o.compare = o.curve = o.stats = false;
	trial.diag = diag_new("ckc", nowhere);
	trial.keep = arena_new();
	trial.result.strategy_sec = -1;
	g = graph_clone(whole);
	plan_variants(&w, &trial, g);
	if (w.ok && trial.planned.plan->sum.peak <= trial.planned.budget)
		peak = trial.planned.plan->sum.peak;
	*hard = trial.result.strategy_sec < 0;
	graph_free(g);
	arena_free(trial.retired);
	arena_free(trial.keep);
	diag_free(trial.diag);
	fclose(nowhere);
	return peak;
}

void
suggest_tp(const Pass *p, const Graph *whole)
{
	enum { MOST = 8 };
	int64_t peak = -1, t = 1;
	bool hard = false;

	while (peak < 0 && t < MOST && !hard && !watch_off(p->watch)) {
		t *= 2;
		/* a rank needs its share at least */
		if (p->planned.minimum_peak / t <= p->planned.budget)
			peak = peak_of_rank(p, whole, t, &hard);
	}
	if (peak >= 0)
		diag_more(p->diag, "  %lld B per rank on %lld ranks, which is "
		          "enough: tensor parallelism shards matrices, their "
		          "optimizer state and gradients; try: --tp %lld",
		          (long long)peak,
		          (long long)t, (long long)t);
}
