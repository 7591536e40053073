/* If a budget is too small: plan the model for 2, 4 and 8 ranks, and suggest
 * the first --tp that fits.  A refusal should not take much longer for that, so
 * there is no suggestion if sharding strategies are hard to find.
 */
#include "passes/explore/suggest_tp.h"

#include "passes/explore/trial.h"

bool
may_suggest_tp(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return o && !o->candidate && !o->tp && !g->ranks
		&& (o->budget_bytes > 0 || o->budget_pct > 0);
}

/* The peak of one of so many ranks of the graph, which is whole; -1: it does
 * not fit the budget, or there is no layout; *hard: because strategies are hard
 * to find. */
static int64_t
peak_of_rank(const Pass *p, const Graph *whole, int64_t ranks, bool *hard)
{
	struct trial t;
	const struct planned *found = &t.pass.planned;
	int64_t peak = -1;

	trial_init(&t, p);
	t.options.tp = ranks;
	t.options.dp = t.options.dp ? t.options.dp : DP_TRY;
	t.options.strategy_draft = true;
	t.pass.result.strategy_sec = -1;
	trial_plan(&t, whole);
	if (found->plan && found->plan->sum.peak <= found->budget)
		peak = found->plan->sum.peak;
	*hard = t.pass.result.strategy_sec < 0;
	trial_close(&t);
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
