/* Pipelines: seconds and bytes from those of the whole model, or of all stages.
 *
 * step    sum of T + (N - 1) max T + U, with T the seconds of a stage's turns
 *         of a micro-batch and U those of its update (Zheng et al., Alpa,
 *         2022).  With V chunks ranks wait for a V-th of what they do under
 *         1F1B (Narayanan et al. 2021), under ZB-H1 for a third, if forward,
 *         backward and weights take equally long (Qi et al. 2023)
 * predict stages are shared out by layers: all but the last have equally many,
 *         in halves of a layer, and the last has what follows all layers.  A
 *         stage holds a micro-batch for each that is in flight (1F1B).  The
 *         seconds that a budget adds rise as the square of the bytes that it
 *         lacks (curve.c)
 */
#include "passes/auto/auto.h"

#include <math.h>

struct stage_sizes {
	double first, last;             /* layers of a stage; of the last one */
	double most;                    /* seconds of the slowest for a
	                                 * micro-batch */
};

/* Layers by stage such that the slowest is fastest; ends: seconds of what is
 * beside the layers. */
static struct stage_sizes
share_layers(double layers, int64_t stages, double layer, double ends)
{
	struct stage_sizes best = { .most = INFINITY };

	for (double last = 0; last <= layers; last += 0.5) {
		double each = (layers - last) / (double)(stages - 1);
		double first = ceil(2 * each) / 2;
		double most = fmax(first * layer, last * layer + ends);

		if (most < best.most)
			best = (struct stage_sizes){ first, last, most };
	}
	return best;
}

/* The part of what stages wait for under 1F1B that they wait for. */
static double
idle_share(const struct auto_request *r)
{
	return r->chunks > 1 ? 1 / (double)r->chunks
		: r->zero_bubble ? 1.0 / 3 : 1;
}

/* Micro-batches that the rank of stage s holds, in all its layers. */
static double
slots_at(const struct auto_request *r, const struct auto_config *c, int64_t s)
{
	double p = (double)c->pp, v = (double)r->chunks, own = p - (double)s;

	if (v > 1)
		own = (2 * (own - 1) + (v - 1) * p + 1) / v;
	else if (r->zero_bubble)
		own = p;
	return fmin(own, (double)c->accum);
}

/* Bytes of a stage; ends: beside its layers. */
static double
stage_bytes(const struct auto_plan *p, double layers, double slots,
            double ends)
{
	return ends + layers * (p->more_resident
		+ slots * (p->more_bytes - p->more_resident));
}

/* What a budget does: see struct auto_plan. */
static void
set_curve(const struct auto_request *r, const struct auto_config *c,
          const struct auto_plan *p, const struct stage_sizes *s, double layers,
          double ends, double last_bytes, struct auto_plan *to)
{
	double budget = (double)r->budget, sum = 0;
	double first = stage_bytes(p, s->first, slots_at(r, c, 0), ends)
		- budget;
	double lack = first / (s->first * slots_at(r, c, 0));
	double last = (last_bytes - budget)
		/ (fmax(s->last, 0.5) * slots_at(r, c, c->pp - 1));
	double most = fmax(lack, last);

	to->curve_bytes = layers * most
		/ fmax(fmax(first, last_bytes - budget), 1);
	for (int64_t k = 0; k < c->pp - 1 && lack > 0; k++) {
		double slots = slots_at(r, c, k);
		double over = stage_bytes(p, s->first, slots,
		                          k ? 0 : ends) - budget;
		double x = fmax(over / (s->first * slots), 0) / most;

		sum += x * x;
	}
	if (last > 0)
		sum += last / most * (last / most);
	to->curve_sec = s->first / layers * ((double)c->accum - 1 + sum);
}

static void
share_out(struct auto_plan *p, double stages)
{
	p->compute /= stages;
	p->recompute /= stages;
	p->sent_sec /= stages;
	p->sent /= stages;
	p->swapped /= stages;
	p->update_sec /= stages;
}

void
auto_pipeline(const struct auto_request *r, const struct auto_config *c,
              int64_t layers, struct auto_plan *to)
{
	const struct auto_plan p = *to;
	const double n = (double)layers, micro = (double)c->accum;
	double ends = fmax(p.micro_shown - n * p.more_sec, 0);
	double resident = fmax((double)p.resident - n * p.more_resident, 0);
	double beside = fmax((double)p.peak - n * p.more_bytes, resident);
	struct stage_sizes s = share_layers(n, c->pp, p.more_sec, ends);
	double first = stage_bytes(&p, s.first, slots_at(r, c, 0), resident);
	double last = stage_bytes(&p, s.last, slots_at(r, c, c->pp - 1),
	                          beside);
	double turns = micro * s.most
		+ idle_share(r) * (p.micro_shown - s.most);

	share_out(to, (double)c->pp);
	to->needs /= c->pp;
	to->states /= c->pp;
	to->sec = turns + (p.sec - micro * p.micro_shown) / (double)c->pp;
	to->idle = turns - micro * p.micro_shown / (double)c->pp;
	to->peak = (int64_t)fmax(first, last);
	to->resident = (int64_t)(s.first * p.more_resident + resident);
	to->curve_bytes = to->curve_sec = 1;
	if (r->budget > 0 && to->peak > r->budget)
		set_curve(r, c, &p, &s, n, resident, last, to);
}

/* What the stages of a rank take together. */
static struct auto_plan
join_rank(const struct auto_plan *stage, int n, int ranks, int rank)
{
	struct auto_plan all = { 0 };

	for (int k = rank; k < n; k += ranks) {
		all.sec += stage[k].sec;
		all.micro_shown += stage[k].micro_shown;
		all.peak += stage[k].peak;
		all.resident += stage[k].resident;
		all.needs = stage[k].needs > all.needs ? stage[k].needs
			: all.needs;
	}
	return all;
}

void
auto_join_stages(const struct auto_plan *stage, int n, int ranks, int64_t accum,
                 double sec, struct auto_plan *to)
{
	const double micro = (double)accum;
	double most = 0, sum = 0, update = 0, own = 0;

	*to = (struct auto_plan){ .ok = true };
	for (int k = 0; k < n; k++) {
		to->compute += stage[k].compute;
		to->recompute += stage[k].recompute;
		to->sent_sec += stage[k].sent_sec;
		to->sent += stage[k].sent;
		to->update_sec += stage[k].update_sec;
	}
	for (int k = 0; k < ranks; k++) {
		const struct auto_plan s = join_rank(stage, n, ranks, k);

		sum += s.micro_shown;
		most = fmax(most, s.micro_shown);
		update = fmax(update, s.sec - micro * s.micro_shown);
		own += s.sec;
		to->peak = s.peak > to->peak ? s.peak : to->peak;
		to->resident = s.resident > to->resident ? s.resident
			: to->resident;
		to->needs = s.needs > to->needs ? s.needs : to->needs;
	}
	share_out(to, ranks);
	to->micro_shown = sum;
	to->sec = sec > 0 ? sec : sum + (micro - 1) * most + update;
	to->busiest = to->sec;
	to->idle = to->sec - own / ranks;
}
