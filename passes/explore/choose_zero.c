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
	if (stage > 0 && t.options.budget_pct > 0)
		set_budget_bytes(&t.options, *limit);
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

/* "stage 0: 3.1 s", or what it needs. */
static const char *
describe_stage(Arena *arena, int64_t i, const struct stage *s)
{
	char bytes[24];

	if (s->fits)
		return arena_printf(arena, "stage %lld: %.4g s a step",
		                    (long long)i, s->sec);
	if (!s->bytes)
		return arena_printf(arena, "stage %lld: no plan", (long long)i);
	return arena_printf(arena, "stage %lld: needs %s", (long long)i,
	                    number_bytes(bytes, (double)s->bytes));
}

/* Whether stage a is better than b. */
static bool
is_better_stage(const struct stage *a, const struct stage *b)
{
	const double SAME = 1 + 1e-3;

	if (a->fits != b->fits)
		return a->fits;
	return a->fits ? a->sec * SAME < b->sec
		: a->bytes && (!b->bytes || a->bytes < b->bytes);
}

void
choose_zero(Pass *p, const Graph *g)
{
	struct options *o = arena_alloc(p->keep, sizeof *o);
	struct stage stage[STAGES];
	const char *text = "";
	int64_t best = 0, limit = INT64_MAX;

	for (int64_t i = 0; i < STAGES; i++) {
		stage[i] = plan_stage(p, g, i, &limit);
		if (is_better_stage(&stage[i], &stage[best]))
			best = i;
		text = arena_printf(p->keep, "%s%s%s", text, i ? ", " : "",
		                    describe_stage(p->keep, i, &stage[i]));
	}
	*o = *p->opt;
	o->zero = best;
	if (o->budget_pct > 0 && limit < INT64_MAX)
		set_budget_bytes(o, limit);
	p->opt = o;
	if (stage[best].bytes && !o->quiet && !watch_off(p->watch))
		diag_note(p->diag, "--zero auto takes stage %lld; %s",
		          (long long)o->zero, text);
}
