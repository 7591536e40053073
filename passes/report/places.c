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
		int32_t layer = p->layer && t->val && p->reference
			&& t->val < p->reference->nval
			? p->layer[t->val] : -1;

		if (t->resident)
			continue;
		if (decision_rank(t->decision) > decision_rank(own->decision))
			own->decision = t->decision;
		if (own->layer < 0)
			own->layer = layer;
	}
	return place;
}
