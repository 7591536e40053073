/* The decision and the layer of each tensor that owns memory in the arena. */
#include "passes/report/report.h"

static int
decision_rank(Decision d)
{
	return d == D_KEEP ? 3 : d == D_RECOMPUTE ? 2 : d == D_FREE ? 1 : 0;
}

struct report_place *
report_places(const Pass *p, const Plan *plan)
{
	struct report_place *place = arena_array(p->keep,
		(size_t)plan->ntensor + 1, sizeof *place);

	for (int64_t i = 0; i < plan->ntensor; i++)
		place[i] = (struct report_place){ .decision = D_NULL,
		                                  .layer = -1 };
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		struct report_place *own = &place[t->alias_of < 0
		                                  ? i : t->alias_of];
		int32_t layer = p->planned.layer && t->val
				&& p->planned.reference
				&& t->val < p->planned.reference->nval
			? p->planned.layer[t->val]
			: -1;

		if (t->resident)
			continue;
		if (decision_rank(t->decision) > decision_rank(own->decision))
			own->decision = t->decision;
		if (own->layer < 0)
			own->layer = layer;
	}
	return place;
}

static int64_t
place_of(const Plan *plan, int64_t t)
{
	return plan->tensor[t].alias_of < 0 ? t : plan->tensor[t].alias_of;
}

/* Place of the first result; of a step that recomputes, of the original. */
static int64_t
first_place(const Plan *plan, const struct plan_step *s)
{
	for (int k = 0; k < s->nwrite; k++) {
		int64_t t = s->write[k];

		if (t >= 0 && plan->tensor[t].kind != K_WORKSPACE)
			return place_of(plan, plan->tensor[t].of < 0
			                ? t : plan->tensor[t].of);
	}
	return -1;
}

static bool
writes_place(const Plan *plan, const struct plan_step *s, int64_t place)
{
	for (int k = 0; k < s->nwrite; k++)
		if (s->write[k] >= 0 && place_of(plan, s->write[k]) == place)
			return true;
	return false;
}

double
report_recompute_seconds(const Plan *plan, int64_t i, Decision decision)
{
	double sec = 0;

	for (int64_t k = 0; k < plan->nstep; k++) {
		const struct plan_step *s = &plan->step[k];
		bool counts = decision == D_RECOMPUTE
			? s->phase == PH_RECOMPUTE && first_place(plan, s) == i
			: s->phase == PH_FORWARD && writes_place(plan, s, i);

		if (counts)
			sec += s->seconds;
		for (int j = 0; j < s->ninlined; j++) {
			const struct plan_inlined *in = &s->inlined[j];

			if (counts)
				sec -= in->seconds;
			if (decision == D_RECOMPUTE
			    && first_place(plan, &plan->step[in->of]) == i)
				sec += in->seconds;
		}
	}
	return sec;
}
