/* Predictions within the budget: what a budget adds to the plan of a candidate
 * without one, from points of curves.
 */
#include "passes/auto/inside.h"
#include "passes/auto/bounds.h"

#include <math.h>
#include <stdio.h>

struct auto_curve *
points_curve(struct search *s, const struct auto_config *c)
{
	for (size_t i = 0; i < s->ncurve; i++)
		if (auto_curve_serves(&s->curve[i], c))
			return &s->curve[i];
	s->curve = arena_grow(s->arena, s->curve, s->ncurve, &s->curve_cap,
	                      s->ncurve + 1, sizeof *s->curve);
	s->curve[s->ncurve] = (struct auto_curve){ .like = *c,
		.most = INFINITY };
	return &s->curve[s->ncurve++];
}

double
points_excess(const struct search *s, const struct auto_candidate *c)
{
	return (double)(c->open.peak - s->r->budget)
		* (c->open.curve_bytes > 0 ? c->open.curve_bytes : 1);
}

static void
take_point(const struct search *s, struct auto_candidate *c,
           const struct auto_point *p)
{
	double gain = auto_step_gain(&c->open, c->config.accum, p->sec);

	c->plan = c->open;
	c->plan.sec += gain;
	c->plan.recompute += p->sec > 0 ? gain * p->recompute / p->sec : 0;
	c->plan.peak = s->r->budget;
	c->plan.host = p->host;
	c->state = c->config.offload && p->host == 0 ? AUTO_SAME
		: AUTO_PLANNED;
}

static void
refuse_by_curve(const struct search *s, struct auto_candidate *c, double most)
{
	double least = points_excess(s, c) - most;

	if (c->open.curve_bytes > 0)
		least /= c->open.curve_bytes;
	c->state = AUTO_REFUSED;
	c->plan = (struct auto_plan){ .predicted = true, .at_least = true,
		.least = s->r->budget + (int64_t)least };
	snprintf(c->plan.why, AUTO_WHY, "a step needs about %lld B",
	         (long long)c->plan.least);
}

/* What shards less of the same micro-batch needs no less memory. */
void
points_refuse_larger(struct search *s, const struct auto_candidate *c)
{
	int64_t family = s->of_candidate[c - s->found->candidate];

	if (c->state != AUTO_REFUSED || c->plan.least <= 0
	    || !c->open.predicted)
		return;
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *o = &s->found->candidate[i];

		if (s->of_candidate[i] != family || o->state != AUTO_OPEN
		    || o->config.pp != c->config.pp
		    || o->config.offload != c->config.offload
		    || o->config.zero > c->config.zero
		    || auto_shards(&o->config) > auto_shards(&c->config)
		    || (o->config.accum == 1 && c->config.accum > 1))
			continue;
		o->state = AUTO_REFUSED;
		o->plan = c->plan;
		o->plan.predicted = o->plan.at_least = true;
		o->plan.states = 0;
	}
}

/* Whether what is known decides. */
bool
points_settle(struct search *s, struct auto_candidate *c)
{
	const struct auto_curve *v = points_curve(s, &c->config);
	double excess = points_excess(s, c);
	struct auto_point p;

	if (excess > v->most)
		refuse_by_curve(s, c, v->most);
	else if (auto_curve_at(v, excess, &p))
		take_point(s, c, &p);
	points_refuse_larger(s, c);
	return c->state != AUTO_BOUND;
}

/* Bytes beside those that are resident; 0: it is a pipeline, whose stages have
 * several. */
double
points_left(const struct auto_candidate *c, double peak)
{
	return c->config.pp > 1 ? 0
		: fmax(peak - (double)c->open.resident, 0);
}

/* Fewer replicas that shard leave less memory for the same micro-batch, which
 * adds as many seconds at least. */
void
points_bound(struct search *s, struct auto_candidate *c)
{
	double left = points_left(c, (double)s->r->budget), most = 0;

	for (size_t i = 0; left > 0 && i < s->ncurve; i++)
		if (auto_curve_is_near(&s->curve[i], &c->config))
			most = fmax(most, auto_curve_least(&s->curve[i],
			                                   left));
	bound_raise(c, c->open.sec + (double)c->config.accum * most);
}

/* The answer of a job for a point. */
void
points_take(struct search *s, struct auto_candidate *c,
            const struct auto_job *job)
{
	struct auto_curve *v = points_curve(s, &c->config);
	struct auto_point p = job->point;

	if (job->plan.least > 0) {
		if (job->point.bytes < v->most)
			v->most = job->point.bytes;
		refuse_by_curve(s, c, job->point.bytes);
		return;
	}
	p.left = points_left(c, (double)c->open.peak - p.bytes);
	auto_curve_add(v, &p, s->arena);
	auto_curve_nearest(v, points_excess(s, c), &p);
	take_point(s, c, &p);
}

bool
points_serve(const struct auto_candidate *c)
{
	return c && c->state == AUTO_BOUND && c->open.predicted;
}
