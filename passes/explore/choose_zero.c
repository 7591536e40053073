#include "passes/explore/choose_zero.h"

#include "passes/cost/cost.h"
#include "passes/explore/trial.h"
#include "runtime/support/number.h"

enum { STAGES = 4 };

struct stage {
	bool fits;
	double sec;                     /* of a step, with overlap */
	int64_t bytes;                  /* its peak; if it does not fit, the
	                                 * least that works; 0: unknown */
};

/* Bytes that a stage may take; a budget in percent is one of what stage 0
 * takes, so that it is known when that is planned. */
static int64_t
find_limit(const Pass *p, const Graph *g, const struct planned *found)
{
	double memory = device_of(g)->memory;

	if (found->budget > 0)
		return found->budget;
	return p->opt->budget_bytes > 0 ? p->opt->budget_bytes
		: memory > 0 ? (int64_t)memory : INT64_MAX;
}

static struct stage
plan_stage(const Pass *p, const Graph *g, int64_t stage, int64_t *limit)
{
	struct stage found = { 0 };
	struct trial t;

	trial_init(&t, p);
	t.options.zero = stage;
	if (stage > 0 && t.options.budget_pct > 0) {
		t.options.budget_pct = 0;
		t.options.budget_bytes = *limit;
	}
	trial_plan(&t, g);
	if (stage == 0)
		*limit = find_limit(p, g, &t.pass.planned);
	found.bytes = t.pass.planned.minimum_peak;
	if (t.pass.planned.plan) {
		found.sec = t.pass.planned.exposed_sec;
		found.bytes = t.pass.planned.plan->sum.peak;
		found.fits = found.bytes <= *limit;
	}
	trial_close(&t);
	return found;
}

/* "0: 3.1 s", or what it needs. */
static const char *
describe_stage(Arena *arena, int64_t i, const struct stage *s)
{
	char bytes[24];

	if (s->fits)
		return arena_printf(arena, "%lld: %.4g s", (long long)i,
		                    s->sec);
	if (!s->bytes)
		return arena_printf(arena, "%lld: no plan", (long long)i);
	return arena_printf(arena, "%lld: needs %s", (long long)i,
	                    number_bytes(bytes, (double)s->bytes));
}

void
choose_zero(Pass *p, const Graph *g)
{
	const double SAME = 1 + 1e-3;
	struct options *o = arena_alloc(p->keep, sizeof *o);
	struct stage stage[STAGES];
	const char *text = "";
	int64_t best = -1, limit = INT64_MAX;

	for (int64_t i = 0; i < STAGES; i++) {
		stage[i] = plan_stage(p, g, i, &limit);
		if (stage[i].fits && (best < 0 || stage[i].sec * SAME
		                                  < stage[best].sec))
			best = i;
		text = arena_printf(p->keep, "%s%s%s", text, i ? ", " : "",
		                    describe_stage(p->keep, i, &stage[i]));
	}
	*o = *p->opt;
	o->zero = best < 0 ? STAGES - 1 : best;
	if (o->budget_pct > 0 && limit < INT64_MAX) {
		o->budget_pct = 0;
		o->budget_bytes = limit;
	}
	p->opt = o;
	if (!o->quiet && !watch_off(p->watch))
		diag_note(p->diag, "--zero auto: stage %lld; step time of "
		          "stage %s", (long long)o->zero, text);
}
