/* A device profile from measured steps.
 *
 * what    the plan says how much work its steps are, the measurements how
 *         long equal work took: peak rates from the ops that show them, and
 *         for every kind of op the ratio of measured to reckoned seconds
 * method  bandwidth is what the light loop reaches that moves most, beyond
 *         caches; the vector rate the best that a heavy one does; the rate of
 *         products is what matmuls leave when the traffic of their operands
 *         is taken off; the start of an op is the shortest time
 */
#include "passes/cost/cost.h"

#include <string.h>

struct measured_step {
	Op op;
	bool half;                      /* its first operand has 16 bits */
	double sec;                     /* measured */
	struct cost cost;
};

static bool
reads_half(const Plan *plan, const struct plan_step *s)
{
	return s->nread > 0 && dtype_is_half(plan->tensor[s->read[0]].dt);
}

/* The plan's steps that were measured, *count of them. */
static struct measured_step *
list_steps(Arena *arena, const Plan *plan,
           const struct device_profile *measured, int *count)
{
	struct measured_step *list = arena_array(arena, (size_t)plan->nstep + 1,
	                                         sizeof *list);
	int n = 0;

	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *s = &plan->step[i];
		struct measured_step *m = &list[n];

		m->op = op_find(s->op);
		m->half = reads_half(plan, s);
		m->cost = (struct cost){ .flops = s->flops, .bytes = s->bytes,
		                         .sec = s->seconds,
		                         .product = s->product };
		m->sec = device_measured(measured, m->op, s->flops, s->bytes);
		n += m->sec > 0 && !s->view;
	}
	*count = n;
	return list;
}

/* Of products whose operands have 16 bits, or have not; 0: there are none. */
static double
product_rate(const struct device_profile *d, const struct measured_step *step,
             int n, bool half)
{
	double flops = 0, sec = 0;

	for (int i = 0; i < n; i++) {
		const struct cost *c = &step[i].cost;

		if (step[i].op != OP_MATMUL || step[i].half != half)
			continue;
		flops += c->product;
		sec += step[i].sec - c->bytes / d->bandwidth;
	}
	return sec > 0 ? flops / sec : 0;
}

static void
set_peaks(struct device_profile *d, const struct measured_step *step, int n)
{
	double most = 0;

	d->launch = 1;
	for (int i = 0; i < n; i++)
		if (step[i].sec < d->launch)
			d->launch = step[i].sec;
	for (int i = 0; i < n; i++) {
		const struct cost *c = &step[i].cost;
		double t = step[i].sec;

		/* one that does little measures its own start */
		if (step[i].op != OP_LOOP || t < 10 * d->launch)
			continue;
		if (c->flops / t > d->vector_flops)
			d->vector_flops = c->flops / t;
		if (c->flops < c->bytes / 2 && c->bytes > most) {
			most = c->bytes;
			d->bandwidth = c->bytes / t;
		}
	}
	if (d->bandwidth > 0)
		d->product_flops = d->product_flops16 =
			product_rate(d, step, n, false);
}

/* Of ops whose operands have 16 bits, or have not. */
static void
set_scales(double *scale, const struct device_profile *d,
           const struct measured_step *step, int n, bool half)
{
	double took[OP_COUNT] = { 0 }, reckoned[OP_COUNT] = { 0 };
	struct device_profile plain = *d;

	memset(plain.scale, 0, sizeof plain.scale);
	memset(plain.scale16, 0, sizeof plain.scale16);
	for (int i = 0; i < n; i++) {
		if (step[i].half != half)
			continue;
		took[step[i].op] += step[i].sec;
		reckoned[step[i].op] += device_seconds(&plain, step[i].op, half,
		                                       &step[i].cost);
	}
	for (Op op = OP_NONE; op < OP_COUNT; op++)
		if (reckoned[op] > 0)
			scale[op] = took[op] / reckoned[op];
}

bool
device_fit(struct device_profile *d, const Plan *plan,
           const struct device_profile *measured)
{
	Arena *arena = arena_new();
	int n;
	struct measured_step *step = list_steps(arena, plan, measured, &n);
	bool ok;

	*d = (struct device_profile){ .name = "host", .serial = 1 };
	set_peaks(d, step, n);
	ok = d->product_flops > 0 && d->vector_flops > 0 && d->bandwidth > 0;
	if (ok)
		set_scales(d->scale, d, step, n, false);
	arena_free(arena);
	return ok;
}

bool
device_fit16(struct device_profile *d, const Plan *plan,
             const struct device_profile *measured)
{
	Arena *arena = arena_new();
	int n;
	struct measured_step *step = list_steps(arena, plan, measured, &n);
	double rate = product_rate(d, step, n, true);

	if (rate > 0) {
		d->product_flops16 = rate;
		set_scales(d->scale16, d, step, n, true);
	}
	arena_free(arena);
	return rate > 0;
}
