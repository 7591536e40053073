/* Replay: check every claim of a plan, rule by rule.
 *
 * what    follows which values exist, where they lie and how long, over the
 *         schedule alone; nothing that the plan derives is believed
 * method  one walk for values, one for repeated work, one for lifetimes, one
 *         for memory, one for sums.  Faults carry the name of the rule that
 *         the plan file's description gives it.
 * cost    linear, but for the comparison of places alive together
 * refuses no plan silently: a fault ends the compilation
 *
 * Shares no code with the planner, the placer or the report.
 */
#include "passes/replay/replay_rules.h"
#include "passes/replay/replay.h"

/* ---- form: ids are in range, what is referred to is first hand ---- */

static bool
is_id(int64_t x, int64_t n)
{
	return x >= 0 && x < n;
}

static bool
check_tensor_form(struct replay *r, int64_t i)
{
	const Plan *p = r->p;
	const struct plan_tensor *t = &p->tensor[i];
	int64_t need = 1, low = t->low_precision_of, copy = plan_copy_of(t);

	if ((t->of != -1 && (!is_id(t->of, p->ntensor)
	     || p->tensor[t->of].of != -1))
	    || (low != -1 && (!is_id(low, p->ntensor)
	        || p->tensor[low].of != -1 || t->of != -1
	        || p->tensor[low].low_precision_of != -1))
	    || (copy != -1 && (!is_id(copy, p->ntensor)
	        || p->tensor[copy].of != -1 || t->of != -1
	        || p->tensor[copy].kind == K_TRANSFERRED))
	    || (t->alias_of != -1 && (!is_id(t->alias_of, p->ntensor)
	        || p->tensor[t->alias_of].alias_of != -1))
	    || t->bytes < 0 || t->alias_offset < 0 || t->offset < -1) {
		FAULT(r, "form", "%s refers to no tensor or has a negative "
		      "size", name(r, i));
		return false;
	}
	if (t->shape.rank >= 0 && t->dt != DT_NONE) {
		need = dtype_info[t->dt].nbytes;
		for (int k = 0; k < t->shape.rank; k++)
			if (!mul_ok(need, t->shape.dim[k], &need))
				need = INT64_MAX;
		if (t->bytes < need)
			FAULT(r, "form", "%s has fewer bytes than its shape "
			      "needs", name(r, i));
	}
	return true;
}

static bool
check_step_form(struct replay *r, int64_t i)
{
	const Plan *p = r->p;
	const struct plan_step *s = &p->step[i];
	bool ok = s->of == -1 || (is_id(s->of, p->nstep)
		&& p->step[s->of].of == -1);

	for (int k = 0; k < s->nread; k++)
		ok &= is_id(s->read[k], p->ntensor);
	for (int k = 0; k < s->nwrite; k++)
		ok &= s->write[k] == -1 || is_id(s->write[k], p->ntensor);
	for (int k = 0; k < s->ninlined; k++)
		ok &= is_id(s->inlined[k].of, i)
			&& p->step[s->inlined[k].of].of == -1;
	ok &= !s->wait || (s->wait > i && s->wait < p->nstep
		&& s->nread >= 1 && s->nread <= (lane_is_host(s->lane) ? 2 : 1)
		&& s->nwrite == 1
		&& s->write[0] >= 0);
	ok &= s->seconds >= 0 && s->flops >= 0 && s->bytes >= 0
		&& s->workspace >= 0 && (int)s->phase >= 0
		&& s->phase < PH_COUNT;
	if (!ok)
		FAULT(r, "form", "instruction %" PRId64 " refers to a tensor "
		      "or instruction that does not exist", i);
	return ok;
}

static bool
check_form(struct replay *r)
{
	bool ok = true;

	for (int64_t i = 0; i < r->p->ntensor; i++)
		ok &= check_tensor_form(r, i);
	for (int64_t i = 0; i < r->p->nstep; i++)
		ok &= check_step_form(r, i);
	return ok;
}

/* ---- all rules ---- */

bool
plan_replay(Plan *p, Diag *diag)
{
	Arena *a = arena_new();
	size_t n = (size_t)p->ntensor + 1;
	struct replay r = {
		.p = p, .diag = diag, .arena = a,
		.owner = arena_array(a, n, sizeof *r.owner),
		.value = arena_array(a, n, sizeof *r.value),
		.valid = arena_array(a, n, sizeof *r.valid),
		.writer = arena_array(a, n, sizeof *r.writer),
		.again = arena_array(a, n, sizeof *r.again),
		.copied = arena_array(a, n, sizeof *r.copied),
		.sharing = arena_array(a, n, sizeof *r.sharing),
		.nsharing = arena_array(a, n, sizeof *r.nsharing),
		.first = arena_array(a, n, sizeof *r.first),
		.last = arena_array(a, n, sizeof *r.last),
		.taken = arena_array(a, n, sizeof *r.taken),
	};

	if (check_form(&r)) {
		replay_aliases(&r);
		replay_values(&r);
		replay_repeats(&r);
		replay_waits(&r);
		replay_host(&r);
		replay_lifetimes(&r);
		replay_memory(&r);
		replay_sums(&r);
	}
	arena_free(a);
	p->replayed = r.faults == 0;
	return p->replayed;
}

bool
pass_replay(Pass *p, Graph *g)
{
	bool ok;

	(void)g;
	if (!p->planned.plan)
		return diag_error(p->diag, "pass replay must run after "
		                  "account");
	ok = plan_replay(p->planned.plan, p->diag);
	if (p->planned.reference_plan)
		ok &= plan_replay(p->planned.reference_plan, p->diag);
	return ok;
}
