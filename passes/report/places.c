/* The decision and the layer of each tensor that owns memory in the arena, the
 * steps that touch it, and what its recomputation takes. */
#include "passes/report/report.h"

const char *const report_phase[PH_COUNT] = {
	[PH_FORWARD] = "forward", [PH_RECOMPUTE] = "recompute",
	[PH_BACKWARD] = "backward", [PH_WEIGHT] = "weight",
	[PH_UPDATE] = "update",
};

static int
decision_rank(Decision d)
{
	return d == D_KEEP ? 4 : d == D_OFFLOAD ? 3 : d == D_RECOMPUTE ? 2
		: d == D_FREE ? 1 : 0;
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

/* Whether an earlier result of the step lies in the place of result k. */
static bool
is_repeated(const Plan *plan, const struct plan_step *s, int k)
{
	for (int i = 0; i < k; i++)
		if (s->write[i] >= 0 && place_of(plan, s->write[i])
		    == place_of(plan, s->write[k]))
			return true;
	return false;
}

static void
add_seconds(double *sum, const struct plan_step *s)
{
	*sum += s->seconds;
	for (int j = 0; j < s->ninlined; j++)
		*sum -= s->inlined[j].seconds;
}

static void
note_seconds(struct report_place *place, const Plan *plan,
             const struct plan_step *s)
{
	int64_t first = first_place(plan, s);

	if (s->phase == PH_RECOMPUTE && first >= 0)
		add_seconds(&place[first].recompute_sec, s);
	for (int k = 0; s->phase == PH_FORWARD && k < s->nwrite; k++)
		if (s->write[k] >= 0 && !is_repeated(plan, s, k))
			add_seconds(&place[place_of(plan, s->write[k])]
			            .forward_sec, s);
	for (int j = 0; j < s->ninlined; j++) {
		first = first_place(plan, &plan->step[s->inlined[j].of]);
		if (first >= 0)
			place[first].recompute_sec += s->inlined[j].seconds;
	}
}

static void
note_first(int64_t *step, int64_t id)
{
	if (*step < 0)
		*step = id;
}

static void
note_steps(struct report_place *place, const Plan *plan, int64_t id)
{
	const struct plan_step *s = &plan->step[id];

	for (int k = 0; k < s->nwrite; k++)
		if (s->write[k] >= 0)
			note_first(&place[s->write[k]].written, id);
	for (int k = 0; k < s->nread && !s->view; k++) {
		int64_t t = s->read[k];

		if (t < 0)
			continue;
		note_first(&place[t].read[s->phase], id);
		note_first(&place[place_of(plan, t)].read[s->phase], id);
	}
}

struct report_place *
report_places(const Pass *p, const Plan *plan)
{
	struct report_place *place = arena_array(p->keep,
		(size_t)plan->ntensor + 1, sizeof *place);

	for (int64_t i = 0; i < plan->ntensor; i++)
		place[i] = (struct report_place){
			.decision = D_NULL, .layer = -1, .written = -1,
			.read = { -1, -1, -1, -1 },
		};
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		struct report_place *own = &place[place_of(plan, i)];
		const Graph *g = p->planned.reference;
		int32_t layer = p->planned.layer && t->val && g
			&& t->val < g->nval ? p->planned.layer[t->val] : -1;

		if (t->resident)
			continue;
		if (decision_rank(t->decision) > decision_rank(own->decision))
			own->decision = t->decision;
		if (own->layer < 0)
			own->layer = layer;
	}
	for (int64_t i = 0; i < plan->nstep; i++) {
		note_seconds(place, plan, &plan->step[i]);
		note_steps(place, plan, i);
	}
	return place;
}
