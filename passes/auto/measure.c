/* What a plan says of a configuration. */
#include "passes/auto/auto.h"
#include "passes/cost/lanes.h"

static double
inlined_sec(const struct plan_step *s)
{
	double sec = 0;

	for (int k = 0; k < s->ninlined; k++)
		sec += s->inlined[k].seconds;
	return sec;
}

/* Bytes of the arena that a step takes alone: what it reads and writes, each
 * place once. */
static int64_t
working_set(const Plan *p, int64_t step, int64_t *seen)
{
	const struct plan_step *s = &p->step[step];
	int64_t sum = 0;

	for (int k = 0; k < s->nread + s->nwrite; k++) {
		int64_t t = k < s->nread ? s->read[k] : s->write[k - s->nread];

		while (t >= 0 && p->tensor[t].alias_of >= 0)
			t = p->tensor[t].alias_of;
		if (t < 0 || p->tensor[t].resident || p->tensor[t].host
		    || seen[t] == step + 1)
			continue;
		seen[t] = step + 1;
		sum += p->tensor[t].bytes;
	}
	return sum;
}

/* Resident 16-bit tensors may be copies, which a budget does without. */
static void
measure_needs(const Plan *p, struct auto_plan *r, Arena *a)
{
	int64_t *seen = arena_array(a, (size_t)p->ntensor + 1, sizeof *seen);
	int64_t most = 0;

	for (int64_t i = 0; i < p->nstep; i++) {
		int64_t bytes = p->step[i].view ? 0 : working_set(p, i, seen);

		most = bytes > most ? bytes : most;
	}
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		if (!t->resident || t->host || t->alias_of >= 0)
			continue;
		r->states += t->kind == K_STATE ? t->bytes : 0;
		r->needs += dtype_is_half(t->dt) ? 0 : t->bytes;
	}
	r->needs += most;
}

int64_t
auto_root(const Plan *p, int64_t t)
{
	while (t >= 0 && p->tensor[t].alias_of >= 0)
		t = p->tensor[t].alias_of;
	return t;
}

static bool
is_cast(const Plan *p, const struct plan_step *s)
{
	return s->nread == 1 && s->nwrite == 1 && s->read[0] >= 0
		&& s->write[0] >= 0 && dtype_is_half(p->tensor[s->write[0]].dt)
		&& !dtype_is_half(p->tensor[s->read[0]].dt);
}

/* Elements of a trained parameter count with 16 bits in gradients, if the plan
 * has any such values. */
static void
measure_parameters(const Plan *p, struct auto_plan *r, Arena *a)
{
	bool *trained = arena_array(a, (size_t)p->ntensor + 1, sizeof *trained);
	bool *read = arena_array(a, (size_t)p->ntensor + 1, sizeof *read);
	bool half = false;

	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];
		bool updates = s->phase == PH_UPDATE;

		for (int k = 0; k < s->nread; k++) {
			int64_t t = auto_root(p, s->read[k]);

			if (t >= 0 && (updates || !is_cast(p, s)))
				*(updates ? &trained[t] : &read[t]) = true;
		}
	}
	for (int64_t i = 0; i < p->ntensor; i++)
		half |= dtype_is_half(p->tensor[i].dt);
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		double n = (double)shape_nelem(&t->shape);
		double bytes = n * (double)dtype_info[t->dt].nbytes;

		if (t->kind != K_PARAM || !trained[i] || t->alias_of >= 0)
			continue;
		if (half && !read[i])
			r->cast_bytes += 2 * n;
		else
			r->uncast_bytes += bytes;
		r->gradient_bytes += half ? 2 * n : bytes;
	}
}

void
auto_measure(const Plan *p, int64_t accum, struct auto_plan *r, Arena *a)
{
	const double times = (double)accum;
	double lane[LANES] = { 0 };

	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];
		double n = s->phase == PH_UPDATE ? 1 : times;
		double again = s->phase == PH_RECOMPUTE ? s->seconds
			: inlined_sec(s);

		lane[s->lane] += n * (s->lane == LANE_COMPUTE
		                      ? s->seconds - again : s->lane_sec);
		if (lane_is_link(s->lane)) {
			r->sent_sec += n * s->lane_sec;
			r->sent += n * s->sent;
		} else if (lane_is_host(s->lane)) {
			r->swapped += n * s->sent;
		} else {
			r->recompute += n * again;
			r->compute += n * (s->seconds - again);
			*(s->phase == PH_UPDATE ? &r->update_sec
			  : &r->micro_sec) += s->seconds;
		}
	}
	for (int i = 0; i < LANES; i++)
		r->busiest = lane[i] > r->busiest ? lane[i] : r->busiest;
	r->sec = lanes_of_plan(p, false, a);
	r->micro_shown = lanes_of_plan(p, true, a);
	r->sec += (times - 1) * r->micro_shown;
	r->peak = p->sum.peak;
	r->resident = p->sum.resident;
	r->host = p->sum.host;
	measure_needs(p, r, a);
	measure_parameters(p, r, a);
	r->ok = true;
}

static void
blend(double *x, double other, double share)
{
	*x += share * (other - *x);
}

void
auto_mix_plans(struct auto_plan *r, const struct auto_plan *other, double share,
               int64_t accum)
{
	/* the first plan has the update */
	r->sec += share * (double)accum * (other->micro_shown - r->micro_shown);
	blend(&r->compute, other->compute, share);
	blend(&r->recompute, other->recompute, share);
	blend(&r->sent_sec, other->sent_sec, share);
	blend(&r->micro_sec, other->micro_sec, share);
	blend(&r->micro_shown, other->micro_shown, share);
	r->peak = other->peak > r->peak ? other->peak : r->peak;
}

static int32_t
layer_of_step(const Plan *p, const Graph *g, const int32_t *of, int64_t step)
{
	const Node *n = &g->node[p->step[step].gnode];
	int32_t layer = -1;

	for (int i = 0; i < n->norigin; i++)
		if (of[n->origin[i]] > layer)
			layer = of[n->origin[i]];
	return layer;
}

/* By tensor with bytes of its own: the first step that reads or writes it. */
static int64_t *
find_first_steps(const Plan *p, Arena *a)
{
	int64_t *at = arena_array(a, (size_t)p->ntensor + 1, sizeof *at);

	for (int64_t i = p->nstep - 1; i >= 0; i--) {
		const struct plan_step *s = &p->step[i];

		for (int k = 0; k < s->nread + s->nwrite; k++) {
			int64_t t = auto_root(p, k < s->nread ? s->read[k]
			                    : s->write[k - s->nread]);

			if (t >= 0)
				at[t] = i;
		}
	}
	return at;
}

/* Bytes of layers but the last that stay while backward begins; what else
 * does, of layers as many as the others have on average. */
static void
measure_held(const Plan *p, const Graph *g, const int32_t *of, int32_t n,
             struct auto_plan *r, Arena *a)
{
	int64_t *first = find_first_steps(p, a), end = 0;
	int64_t *most = arena_array(a, (size_t)p->ntensor + 1, sizeof *most);
	double held = 0, resident = 0;

	while (end < p->nstep && p->step[end].phase == PH_FORWARD)
		end++;
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];
		int64_t root = auto_root(p, i);

		if (!t->host && ((t->first < end && t->last >= end)
		                 || p->tensor[root].resident)
		    && t->bytes > most[root])
			most[root] = t->bytes;
	}
	for (int64_t i = 0; i < p->ntensor; i++) {
		int32_t k = most[i] > 0 ? layer_of_step(p, g, of, first[i])
			: -1;

		if (k < 0 || k == n - 1)
			continue;
		held += (double)most[i];
		resident += p->tensor[i].resident ? (double)most[i] : 0;
	}
	r->layer_bytes = held / (n - 1);
	r->layer_resident = resident / (n - 1);
	r->ends_saved = (double)p->sum.saved
		- n * (r->layer_bytes - r->layer_resident);
}

void
auto_measure_layers(const Plan *p, const Graph *g, const int32_t *of, int32_t n,
                    struct auto_plan *r, Arena *a)
{
	const double layers = n - 1;

	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];
		int32_t k = layer_of_step(p, g, of, i);
		double sec = s->phase == PH_RECOMPUTE ? s->lane_sec
			: inlined_sec(s);

		r->again += sec;
		if (k < 0 || k == n - 1)
			continue;
		r->layer_again += sec / layers;
		if (s->lane == LANE_COMPUTE)
			r->layer_recompute += sec / layers;
	}
	measure_held(p, g, of, n, r, a);
}
