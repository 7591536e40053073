/* Lifetimes, decisions and sums of a plan.
 *
 * what    from the tensors and steps of a plan: the lifetime and the decision
 *         of each tensor, and the summary
 * note    only the plan is read, so that plans of models and of standalone
 *         graphs are summed by the same code
 */
#include "passes/account/account.h"
#include "passes/cost/lanes.h"
#include "passes/place/pack.h"

static void
extend_lifetime(struct plan_tensor *t, int64_t step)
{
	if (t->first < 0)
		t->first = step;
	if (t->last < step)
		t->last = step;
}

/* What is sent, and where it goes to, until the transfer ends. */
static void
touch_sent(Plan *plan, const struct plan_step *s)
{
	int64_t of[2] = { plan_sent(s), s->write[0] };

	for (int k = 0; k < 2; k++)
		if (plan->tensor[of[k]].last < s->wait)
			plan->tensor[of[k]].last = s->wait;
}

static int64_t
last_forward(const Plan *plan)
{
	int64_t b = -1;

	for (int64_t i = 0; i < plan->nstep; i++)
		if (plan->step[i].phase == PH_FORWARD)
			b = i;
	return b;
}

/* The last step before turns of weights. */
static int64_t
last_backward(const Plan *plan)
{
	int64_t b = last_forward(plan);

	for (int64_t i = b + 1; i < plan->nstep; i++)
		if (plan->step[i].phase == PH_BACKWARD)
			b = i;
	return b;
}

/* The results of a step are computed again, though not stored. */
static void
mark_inlined(Plan *plan, int64_t step)
{
	const struct plan_step *s = &plan->step[step];

	for (int i = 0; i < s->nwrite; i++)
		if (s->write[i] >= 0)
			plan->tensor[s->write[i]].decision = D_RECOMPUTE;
}

static void
set_lifetimes(Plan *plan)
{
	int64_t end = plan->nstep - 1, boundary = last_forward(plan);

	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];

		for (int k = 0; k < s->nread; k++)
			extend_lifetime(&plan->tensor[s->read[k]], i);
		for (int k = 0; k < s->nwrite; k++)
			if (s->write[k] >= 0)
				extend_lifetime(&plan->tensor[s->write[k]], i);
		if (s->wait)
			touch_sent(plan, s);
	}
	for (int64_t i = 0; i < plan->ntensor; i++) {
		struct plan_tensor *t = &plan->tensor[i];

		if (t->resident) {
			t->first = 0;
			t->last = end;
		} else if (t->output) {
			t->last = end;
		}
		t->saved = !t->resident && t->first <= boundary
			&& boundary < t->last;
	}
}

static void
set_decisions(Plan *plan)
{
	for (int64_t i = 0; i < plan->ntensor; i++)
		if (plan->tensor[i].of >= 0)
			plan->tensor[plan->tensor[i].of].decision =
				D_RECOMPUTE;
	for (int64_t i = 0; i < plan->nstep; i++)
		for (int k = 0; k < plan->step[i].ninlined; k++)
			mark_inlined(plan, plan->step[i].inlined[k].of);
	for (int64_t i = 0; i < plan->ntensor; i++)
		if (plan_copy_of(&plan->tensor[i]) >= 0)
			plan->tensor[plan->tensor[i].copy_of].decision =
				D_OFFLOAD;
	for (int64_t i = 0; i < plan->ntensor; i++) {
		struct plan_tensor *t = &plan->tensor[i];

		if (t->kind != K_ACTIVATION)
			t->decision = D_NULL;
		else if (t->decision != D_RECOMPUTE
		         && t->decision != D_OFFLOAD)
			t->decision = t->saved ? D_KEEP : D_FREE;
	}
}

/* Resident bytes by kind. */
static void
sum_resident(struct plan_summary *s, const struct plan_tensor *t)
{
	int64_t *part[K_COUNT] = {
		[K_PARAM] = &s->param, [K_BUFFER] = &s->buffer,
		[K_CONSTANT] = &s->constant, [K_INPUT] = &s->input,
		[K_GRAD] = &s->grad, [K_STATE] = &s->optimizer,
		[K_WORKSPACE] = &s->workspace,
	};

	s->resident += t->bytes;
	if (part[t->kind])
		*part[t->kind] += t->bytes;
}

static void
raise_end(int64_t *end, const struct plan_tensor *t)
{
	if (*end < t->offset + t->bytes)
		*end = t->offset + t->bytes;
}

static void
sum_memory(Plan *plan, Arena *a)
{
	struct plan_summary *s = &plan->sum;
	int64_t *first = arena_array(a, (size_t)plan->ntensor + 1, 8);
	int64_t *last = arena_array(a, (size_t)plan->ntensor + 1, 8);
	int64_t *delta = arena_array(a, (size_t)plan->nstep + 2, 8);
	struct pack_slots slots = { last_forward(plan), plan->slots,
		last_backward(plan), plan->through_slots, plan->weight_slots,
		plan->other_slots };
	int64_t live = 0, slot[POOLS + 1] = { 0 };
	int64_t host_arena = 0;
	bool placed = false;

	s->arena = 0;
	for (int64_t i = 0; i < plan->ntensor; i++)
		first[i] = INT64_MAX;
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		int64_t o = t->alias_of >= 0 ? t->alias_of : i;

		if (t->first < first[o])
			first[o] = t->first;
		if (t->last > last[o])
			last[o] = t->last;
		placed |= t->offset >= 0;
		if (t->offset >= 0)
			raise_end(t->host ? &host_arena : &s->arena, t);
	}
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];

		if (t->alias_of >= 0)
			continue;
		if (t->host) {
			s->host += t->resident ? t->bytes : 0;
			continue;
		}
		if (t->resident) {
			sum_resident(s, t);
			continue;
		}
		if (t->low_precision_of >= 0) {
			s->nlow_precision++;
			s->low_precision_bytes += t->bytes;
		}
		slot[pack_pool_of(&slots, first[i], last[i])] += t->bytes;
		delta[first[i]] += t->bytes;
		delta[last[i] + 1] -= t->bytes;
	}
	s->saved = slot[POOL_FIRST] + slot[POOL_BOTH];
	plan->slot_bytes = slot[POOL_FIRST];
	plan->through_bytes = slot[POOL_BOTH];
	plan->weight_bytes = slot[POOL_SECOND];
	live = pack_other_slots(&slots, slot);
	s->live_bound = live;
	for (int64_t i = 0; i < plan->nstep; i++) {
		live += delta[i];
		if (live > s->live_bound)
			s->live_bound = live;
	}
	if (s->arena < plan_slots_bytes(plan))
		s->arena = plan_slots_bytes(plan);
	if (!placed)
		s->arena = s->live_bound;
	s->peak = s->resident + s->arena;
	s->host += host_arena;
}

double
reported_bound(double bound, double base, double step)
{
	if (bound > step * (1 + 1e-9))
		return base;
	return bound < step ? bound : step;
}

/* Whatever is recomputed, everything runs once: so much is sure of a plan for
 * which no bound is claimed. */
static void
set_bound(struct plan_summary *s, double base, double sec, Diag *diag)
{
	double bound = s->bound_class ? s->bound_sec : base;

	s->bound_sec = reported_bound(bound, base, sec);
	if (s->bound_sec < bound * (1 - 1e-9))
		diag_warn(diag, "the plan takes %g s, less than its lower "
		          "bound of %g s; the bound is ignored",
		          sec, bound);
	if (!s->bound_class || s->bound_sec < bound * (1 - 1e-9))
		s->bound_class = "any";
}

static void
sum_cost(Plan *plan, Diag *diag, Arena *scratch)
{
	struct plan_summary *s = &plan->sum;
	double *sec[PH_COUNT] = {
		&s->forward_sec, &s->recompute_sec, &s->backward_sec,
		&s->weight_sec, &s->update_sec
	};
	double base, sec_of_gap;

	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *t = &plan->step[i];

		*(lane_is_host(t->lane) ? &s->host_sec : sec[t->phase]) +=
			t->seconds;
		s->step_flops += t->flops;
		if (lane_is_link(t->lane)) {
			s->sent += t->sent;
			s->sent_sec += t->seconds;
		}
		s->fetched += t->lane == LANE_FETCH ? t->sent : 0;
		s->offloaded += t->lane == LANE_OFFLOAD ? t->sent : 0;
		if (t->phase == PH_RECOMPUTE)
			s->recompute_flops += t->flops;
		for (int k = 0; k < t->ninlined; k++) {
			*sec[t->phase] -= t->inlined[k].seconds;
			s->recompute_sec += t->inlined[k].seconds;
			s->recompute_flops += t->inlined[k].flops;
		}
	}
	base = s->forward_sec + s->backward_sec + s->weight_sec
		+ s->update_sec;
	s->step_sec = base + s->recompute_sec + s->host_sec;
	s->exposed_sec = lanes_of_plan(plan, false, scratch);
	if (s->exposed_sec > s->step_sec * (1 - 1e-12))
		s->exposed_sec = s->step_sec;   /* sums in another order */
	sec_of_gap = s->step_sec - s->host_sec + plan_waits(s);
	set_bound(s, base, sec_of_gap, diag);
	s->overhead = base > 0 ? s->recompute_sec / base : 0;
	s->gap = base > 0 ? (sec_of_gap - s->bound_sec) / base : 0;
}

void
plan_sum(Plan *plan, Diag *diag, Arena *scratch)
{
	set_lifetimes(plan);
	set_decisions(plan);
	sum_memory(plan, scratch);
	sum_cost(plan, diag, scratch);
}
