/* Replay: the rules of memory and of sums: lifetime, saved, decision, place,
 * peak, budget, and the figures of the summary. */
#include "passes/replay/replay.h"
#include "passes/replay/replay_rules.h"

#include <math.h>

static void
claim_real(struct replay *r, const char *what, double claimed, double found)
{
	double most = fabs(claimed) > fabs(found) ? fabs(claimed)
		: fabs(found);

	if (!(fabs(claimed - found) <= 1e-9 * most
	      || fabs(claimed - found) <= 1e-12))
		FAULT(r, "sums", "%s is claimed to be %.12g, found %.12g",
		      what, claimed, found);
}

/* ---- lifetime, saved, decision ---- */

static Decision
decision_of(const struct replay *r, int64_t i, bool saved)
{
	if (r->p->tensor[i].kind != K_ACTIVATION)
		return D_NULL;
	return r->copied[i] ? D_OFFLOAD : r->again[i] ? D_RECOMPUTE
		: saved ? D_KEEP : D_FREE;
}

static void
take_place(struct replay *r, int64_t i, int64_t first, int64_t last)
{
	int64_t o = r->owner[i];

	if (!r->taken[o] || first < r->first[o])
		r->first[o] = first;
	if (!r->taken[o] || last > r->last[o])
		r->last[o] = last;
	r->taken[o] = true;
}

/* Between which turns an owner's place is taken: 0, 1, 2 of pool; -1: within
 * one. */
static int
pool_of_place(const struct replay *r, int64_t i)
{
	bool forward = r->first[i] <= r->boundary && r->boundary < r->last[i];
	bool weight = r->p->weight_slots > 0 && r->first[i] <= r->turned
		&& r->turned < r->last[i];

	return !r->taken[i] || r->p->tensor[i].host ? -1
		: forward ? weight : weight ? 2 : -1;
}

static void
find_pools(struct replay *r)
{
	const Plan *p = r->p;
	int64_t at = 0;

	r->pool[0].n = p->slots;
	r->pool[1].n = p->through_slots;
	r->pool[2].n = p->weight_slots;
	for (int64_t i = 0; i < p->ntensor; i++) {
		int pool = pool_of_place(r, i);

		if (pool >= 0)
			r->pool[pool].bytes += p->tensor[i].bytes;
	}
	for (int k = 0; k < 3; k++) {
		int64_t others = k ? 0 : p->other_slots;

		r->pool[k].at = at;
		if (r->pool[k].n > 1 || others > 0)
			r->pool[k].all = r->pool[k].n * r->pool[k].bytes
				+ others;
		at += r->pool[k].all;
	}
	r->slots_end = at;
	claim(r, "sums", "saved_bytes", p->sum.saved,
	      r->pool[0].bytes + r->pool[1].bytes);
	claim(r, "slot", "slot_bytes", p->slot_bytes, r->pool[0].bytes);
	claim(r, "slot", "through_bytes", p->through_bytes, r->pool[1].bytes);
	claim(r, "slot", "weight_bytes", p->weight_bytes, r->pool[2].bytes);
	if (p->weight_slots < 0 || p->through_slots < p->weight_slots
	    || !p->weight_slots != !p->through_slots)
		FAULT(r, "slot", "%" PRId64 " slots up to turns of weights, %"
		      PRId64 " from backward on", p->through_slots,
		      p->weight_slots);
}

void
replay_lifetimes(struct replay *r)
{
	const Plan *p = r->p;
	int64_t n = p->ntensor;
	int64_t *from = arena_array(r->arena, (size_t)n + 1, sizeof *from);
	int64_t *to = arena_array(r->arena, (size_t)n + 1, sizeof *to);

	for (int64_t i = 0; i < n; i++)
		from[i] = to[i] = -1;
	r->boundary = r->turned = -1;
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];

		if (s->phase == PH_FORWARD)
			r->boundary = i;
		if (s->phase == PH_FORWARD || s->phase == PH_BACKWARD)
			r->turned = i;
		for (int k = 0; k < s->nread + s->nwrite; k++) {
			int64_t x = k < s->nread ? s->read[k]
				: s->write[k - s->nread];

			if (x < 0)
				continue;
			from[x] = from[x] < 0 ? i : from[x];
			to[x] = to[x] < i ? i : to[x];
			to[x] = to[x] < s->wait ? s->wait : to[x];
		}
	}
	for (int64_t i = 0; i < n; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		bool saved;

		if (t->resident)
			from[i] = 0;
		if (t->resident || t->output)
			to[i] = p->nstep - 1;
		if (from[i] < 0)
			continue;       /* a fault of rule write */
		saved = !t->resident && from[i] <= r->boundary
			&& r->boundary < to[i];
		claim(r, "lifetime", name(r, i), t->first, from[i]);
		claim(r, "lifetime", name(r, i), t->last, to[i]);
		claim(r, "saved", name(r, i), t->saved, saved);
		claim(r, "decision", name(r, i), t->decision,
		      decision_of(r, i, saved));
		if (!t->resident)
			take_place(r, i, from[i], to[i]);
	}
	find_pools(r);
}

/* ---- place, peak, budget ---- */

/* Compare each place with those that begin while it is taken. */
static void
check_places(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *start = arena_array(r->arena, (size_t)p->nstep + 2,
	                             sizeof *start);
	int64_t *order = arena_array(r->arena, (size_t)p->ntensor + 1,
	                             sizeof *order);
	int64_t n = 0;

	for (int64_t i = 0; i < p->ntensor; i++)        /* sort by first */
		if (r->taken[i]) {
			start[r->first[i] + 1]++;
			n++;
		}
	for (int64_t k = 0; k < p->nstep; k++)
		start[k + 1] += start[k];
	for (int64_t i = 0; i < p->ntensor; i++)
		if (r->taken[i])
			order[start[r->first[i]]++] = i;
	for (int64_t a = 0; a < n; a++)
		for (int64_t b = a + 1; b < n; b++) {
			int64_t x = order[a], y = order[b];
			const struct plan_tensor *s = &p->tensor[x];
			const struct plan_tensor *t = &p->tensor[y];

			if (r->first[y] > r->last[x])
				break;
			if (s->host == t->host
			    && s->offset < t->offset + t->bytes
			    && t->offset < s->offset + s->bytes)
				FAULT(r, "place", "tensor %" PRId64 " and %s "
				      "overlap while both are alive", x,
				      name(r, y));
		}
}

/* Whether the micro-batch has its slot of the pool during the turns of the
 * place. */
static bool
owns_slot(const struct replay *r, int64_t i, int pool)
{
	if (!r->pool[pool].all)
		return false;
	if (!r->p->weight_slots)
		return pool == 0;
	return pool == 1 || (pool == 0 ? r->last[i] <= r->turned
		: r->first[i] > r->boundary);
}

/* What a turn finds of another one lies in the first slot of its pool, if there
 * are several; all else behind the last slot, or in a first one that the
 * micro-batch has meanwhile. */
static void
check_slots(struct replay *r)
{
	const Plan *p = r->p;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		int pool = pool_of_place(r, i);
		bool fits;

		if (!r->taken[i] || t->host || !t->bytes)
			continue;
		if (pool >= 0 && !r->pool[pool].all)
			pool = -1;
		fits = pool < 0 && t->offset >= r->slots_end;
		for (int k = 0; k < 3; k++)
			fits |= (pool < 0 ? owns_slot(r, i, k) : pool == k)
				&& t->offset >= r->pool[k].at
				&& t->offset + t->bytes
				<= r->pool[k].at + r->pool[k].bytes;
		if (!fits)
			FAULT(r, "slot", "%s is%s alive between turns, and "
			      "lies at %" PRId64, name(r, i),
			      pool < 0 ? " not" : "", t->offset);
	}
}

/* The end of the arena; *host: of that in host memory. */
static int64_t
check_offsets(struct replay *r, int64_t live_bound, int64_t *host)
{
	const Plan *p = r->p;
	int64_t placed = 0, moving = 0, arena = 0, align = p->sum.alignment;

	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		moving += !t->resident;
		placed += t->offset != -1;
		if (t->resident && t->offset != -1)
			FAULT(r, "place", "%s is resident but has an offset",
			      name(r, i));
	}
	if (placed && placed != moving)
		FAULT(r, "place", "expected an offset for every tensor outside "
		      "resident memory, or for none");
	if (!placed || placed != moving)
		return live_bound;
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		if (t->resident)
			continue;
		if (t->alias_of != -1 && t->offset
		    != p->tensor[t->alias_of].offset + t->alias_offset)
			FAULT(r, "place", "%s is not at the offset of its "
			      "owner",
			      name(r, i));
		if (t->alias_of == -1 && (align < 1 || t->offset % align))
			FAULT(r, "place", "%s is not aligned", name(r, i));
		if (t->host && t->offset + t->bytes > *host)
			*host = t->offset + t->bytes;
		else if (!t->host && t->offset + t->bytes > arena)
			arena = t->offset + t->bytes;
	}
	check_places(r);
	check_slots(r);
	return arena < r->slots_end ? r->slots_end : arena;
}

static int64_t
find_live_bound(struct replay *r)
{
	const Plan *p = r->p;
	int64_t *delta = arena_array(r->arena, (size_t)p->nstep + 2,
	                             sizeof *delta);
	int64_t live = 0, most;

	for (int k = 0; k < 3; k++)
		live += r->pool[k].all ? r->pool[k].all - r->pool[k].bytes : 0;
	most = live;
	for (int64_t i = 0; i < p->ntensor; i++)
		if (r->taken[i] && !p->tensor[i].host) {
			delta[r->first[i]] += p->tensor[i].bytes;
			delta[r->last[i] + 1] -= p->tensor[i].bytes;
		}
	for (int64_t k = 0; k < p->nstep; k++) {
		live += delta[k];
		most = live > most ? live : most;
	}
	return most;
}

void
replay_memory(struct replay *r)
{
	const struct plan_summary *s = &r->p->sum;
	int64_t part[K_COUNT] = { 0 }, resident = 0, host = 0;
	int64_t bound = find_live_bound(r), arena;

	arena = check_offsets(r, bound, &host);
	for (int64_t i = 0; i < r->p->ntensor; i++) {
		const struct plan_tensor *t = &r->p->tensor[i];

		if (t->resident && t->alias_of == -1 && t->host) {
			host += t->bytes;
		} else if (t->resident && t->alias_of == -1) {
			resident += t->bytes;
			part[t->kind] += t->bytes;
		}
	}
	claim(r, "peak", "live_bound_bytes", s->live_bound, bound);
	claim(r, "peak", "arena_bytes", s->arena, arena);
	claim(r, "peak", "resident_bytes", s->resident, resident);
	claim(r, "peak", "param_bytes", s->param, part[K_PARAM]);
	claim(r, "peak", "buffer_bytes", s->buffer, part[K_BUFFER]);
	claim(r, "peak", "constant_bytes", s->constant, part[K_CONSTANT]);
	claim(r, "peak", "input_bytes", s->input, part[K_INPUT]);
	claim(r, "peak", "grad_bytes", s->grad, part[K_GRAD]);
	claim(r, "peak", "optimizer_bytes", s->optimizer, part[K_STATE]);
	claim(r, "peak", "workspace_bytes", s->workspace, part[K_WORKSPACE]);
	claim(r, "peak", "peak_bytes", s->peak, resident + arena);
	claim(r, "host", "host_bytes", s->host, host);
	if (s->budget >= 0 && resident + arena > s->budget)
		FAULT(r, "budget", "peak %" PRId64 " exceeds the budget %"
		      PRId64, resident + arena, s->budget);
}

static int64_t
next_resident(const Plan *p, int64_t i)
{
	while (i < p->ntensor && (!p->tensor[i].resident
	                          || p->tensor[i].alias_of >= 0))
		i++;
	return i;
}

/* The same tensors in resident memory. */
static bool
same_residents(const Plan *p, const Plan *q)
{
	int64_t n = 0;

	for (int64_t i = next_resident(p, 0); i < p->ntensor;
	     i = next_resident(p, i + 1)) {
		const struct plan_tensor *t = &p->tensor[i];
		int64_t k = next_resident(q, 0);

		while (k < q->ntensor && q->tensor[k].val != t->val)
			k = next_resident(q, k + 1);
		if (k == q->ntensor || q->tensor[k].bytes != t->bytes
		    || q->tensor[k].kind != t->kind)
			return false;
		n++;
	}
	for (int64_t k = next_resident(q, 0); k < q->ntensor;
	     k = next_resident(q, k + 1))
		n--;
	return n == 0;
}

bool
plans_share_arena(const Plan *p, const Plan *q)
{
	return p->replayed && q->replayed && p->slots > 0 && q->slots > 0
		&& p->other_slots == q->slots * q->slot_bytes
		&& q->other_slots == p->slots * p->slot_bytes
		&& p->other_slots > 0 && q->other_slots > 0
		&& p->sum.resident == q->sum.resident && same_residents(p, q);
}

/* ---- sums ---- */

/* Seconds of a step: each lane carries one transfer after the other. */
static double
find_exposed(struct replay *r)
{
	double *ends = arena_array(r->arena, (size_t)r->p->nstep + 1,
	                           sizeof *ends);
	double clock = 0, free_at[LANES] = { 0 };

	for (int64_t i = 0; i < r->p->nstep; i++) {
		const struct plan_step *t = &r->p->step[i];

		if (t->lane != LANE_COMPUTE) {
			double *on = &free_at[t->lane];
			int64_t end = t->wait ? t->wait : i;

			*on = fmax(clock, *on) + t->lane_sec;
			ends[end] = fmax(ends[end], *on);
		} else {
			clock += t->seconds;
		}
		clock = fmax(clock, ends[i]);
	}
	return clock;
}

void
replay_sums(struct replay *r)
{
	const struct plan_summary *s = &r->p->sum;
	double sec[PH_COUNT] = { 0 }, flops[PH_COUNT] = { 0 };
	double step = 0, step_flops = 0, host_sec = 0, base, over, shown;
	double fetched = 0, offloaded = 0;

	for (int64_t i = 0; i < r->p->nstep; i++) {
		const struct plan_step *t = &r->p->step[i];
		double in_sec = 0, in_flops = 0;

		for (int k = 0; k < t->ninlined; k++) {
			in_sec += t->inlined[k].seconds;
			in_flops += t->inlined[k].flops;
		}
		if (in_sec > t->seconds || in_flops > t->flops)
			FAULT(r, "inline", "instruction %" PRId64 " costs "
			      "less than the instructions inlined in it", i);
		if (lane_is_host(t->lane)) {
			host_sec += t->seconds;
			*(t->lane == LANE_FETCH ? &fetched : &offloaded) +=
				t->sent;
			continue;
		}
		sec[t->phase] += t->seconds - in_sec;
		sec[PH_RECOMPUTE] += in_sec;
		flops[t->phase] += t->flops - in_flops;
		flops[PH_RECOMPUTE] += in_flops;
	}
	for (int i = 0; i < PH_COUNT; i++) {
		step += sec[i];
		step_flops += flops[i];
	}
	base = step - sec[PH_RECOMPUTE];
	shown = host_sec > 0 ? fmax(find_exposed(r), step) : step;
	step += host_sec;
	if (!(s->bound_sec <= shown * (1 + 1e-9)))
		FAULT(r, "sums", "bound_seconds %.12g is above the cost %.12g",
		      s->bound_sec, shown);
	over = shown > s->bound_sec ? shown - s->bound_sec : 0;
	claim_real(r, "forward_seconds", s->forward_sec, sec[PH_FORWARD]);
	claim_real(r, "backward_seconds", s->backward_sec, sec[PH_BACKWARD]);
	claim_real(r, "weight_seconds", s->weight_sec, sec[PH_WEIGHT]);
	claim_real(r, "update_seconds", s->update_sec, sec[PH_UPDATE]);
	claim_real(r, "recompute_seconds", s->recompute_sec,
	           sec[PH_RECOMPUTE]);
	claim_real(r, "step_seconds", s->step_sec, step);
	claim_real(r, "exposed_seconds", s->exposed_sec, find_exposed(r));
	claim_real(r, "fetched", s->fetched, fetched);
	claim_real(r, "offloaded", s->offloaded, offloaded);
	claim_real(r, "host_seconds", s->host_sec, host_sec);
	claim_real(r, "recompute_flops", s->recompute_flops,
	           flops[PH_RECOMPUTE]);
	claim_real(r, "step_flops", s->step_flops, step_flops);
	claim_real(r, "overhead", s->overhead,
	           base > 0 ? sec[PH_RECOMPUTE] / base : 0);
	claim_real(r, "gap", s->gap, base > 0 ? over / base : 0);
}
