/* Which configurations are planned.
 *
 * what    best first, after the lower bounds of seconds: the candidates with
 *         the least bounds are planned until none is left that may be among
 *         the best SHOWN.  A plan without a budget is a bound itself, as a
 *         budget adds recomputation or waits; but where it may also bring
 *         updates into backward, only its busiest lane is
 * bound   first of a micro-batch and the update on one device: ranks share
 *         them without any loss, replicas the update with ZeRO.  Then of a
 *         family, configurations that differ only in replicas, ZeRO, stages
 *         and the number of micro-batches: its micro-batch without replicas,
 *         with the transfers of its ranks; or if replicas share experts, as
 *         many replicas without any transfers.  What the family needs is shared
 *         out at best, too, so that some are refused without a plan
 * exact   if the seconds of an op fall at most in proportion to its share, and
 *         replicas do not help ranks to hide their transfers
 * repeats candidates are planned in waves of one size, so that the answer does
 *         not depend on how many run at once
 * predict a plan may be predicted (predict.c).  What a budget adds to it then
 *         comes from the curve of its micro-batch (curve.c), which gets a point
 *         where none is near.  A family bounds those of n times as many ranks,
 *         a point those with less memory: both come before what they bound,
 *         and as long as nothing is known to fit, points come first.  What
 *         shards less than a candidate that does not fit does not fit either.
 *         The best ones are planned at the end, for some seconds
 */
#include "passes/auto/auto.h"
#include "runtime/support/now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LEAST: configurations whose smallest budgets a refusal finds; FIRST:
 * predictions within the budget at a time until one is known. */
enum { WAVE = 8, SHOWN = 11, LEAST = 2, FIRST = 2 };

/* Of the best predicted seconds, which are not exact: bounds that are looked
 * at, and those with host memory, whose plans take longest. */
static const double PREDICTED = 1.03, WITH_HOST = 0.95;

/* Of the least bound: those that may be the first prediction. */
static const double NEAR = 1.25;

/* Seconds before progress is reported. */
static const double QUIET = 2;

/* Configurations with the same micro-batch on the same ranks. */
struct family {
	struct auto_config config;      /* one micro-batch; one replica, or as
	                                 * many as share experts */
	bool known;                     /* `plan` is that without a budget */
	struct auto_plan plan;
};

struct search {
	const struct auto_request *r;
	AutoPlanner *planner;
	void *of;
	struct auto_found *found;
	struct family *family;
	int64_t nfamily;
	int64_t *of_candidate;          /* family */
	bool predicts;                  /* some plans are only predicted */
	struct auto_curve *curve;
	size_t ncurve, curve_cap;
	double began;
	FILE *progress;
	Arena *arena;
};

/* ---- families ---- */

static bool
is_of_family(const struct auto_config *f, const struct auto_config *c)
{
	return f->tp == c->tp && f->ep == c->ep && f->sp == c->sp
		&& f->halves == c->halves && f->batch == c->batch;
}

/* Candidates of a family mostly stand side by side. */
static int64_t
family_of(struct search *s, const struct auto_config *c)
{
	int64_t i = s->nfamily;

	while (i > 0 && !is_of_family(&s->family[i - 1].config, c))
		i--;
	if (i > 0)
		return i - 1;
	s->family[s->nfamily].config = (struct auto_config){ .tp = c->tp,
		.dp = c->ep, .pp = 1, .ep = c->ep, .batch = c->batch,
		.accum = 1, .sp = c->sp, .halves = c->halves };
	return s->nfamily++;
}

/* One device has a family for each batch, even if all candidates shard. */
static void
list_families(struct search *s)
{
	const struct auto_found *f = s->found;

	s->family = arena_array(s->arena, 2 * (size_t)f->n + 1,
	                        sizeof *s->family);
	s->of_candidate = arena_array(s->arena, (size_t)f->n + 1,
	                              sizeof *s->of_candidate);
	for (int64_t i = 0; i < f->n; i++) {
		const struct auto_config *c = &f->candidate[i].config;
		const struct auto_config one = { .tp = 1, .pp = 1, .ep = 1,
			.batch = c->batch };

		family_of(s, &one);
		s->of_candidate[i] = family_of(s, c);
	}
}

static bool
is_one_device(const struct auto_config *c)
{
	return auto_ranks(c) == 1;
}

/* On one device, for all batches. */
static bool
plan_batches(struct search *s)
{
	struct auto_job *job = arena_array(s->arena, (size_t)s->nfamily + 1,
	                                   sizeof *job);
	struct auto_found *f = s->found;
	int n = 0, k = 0;

	for (int64_t i = 0; i < s->nfamily; i++)
		if (is_one_device(&s->family[i].config))
			job[n++] = (struct auto_job){ .flops = true,
				.config = s->family[i].config };
	if (!s->planner(s->of, job, n))
		return false;
	f->nplan += n;
	for (int64_t i = 0; i < s->nfamily; i++) {
		struct family *own = &s->family[i];

		if (!is_one_device(&own->config))
			continue;
		own->plan = job[k].plan;
		if (job[k++].late)
			snprintf(own->plan.why, AUTO_WHY, "it was not planned "
			         "within --plan-time");
		own->known = true;
		if (own->plan.ok && f->flops <= 0) {
			f->flops = own->plan.flops / (double)own->config.batch;
			f->peak_flops = own->plan.peak_flops;
			f->tokens = own->plan.tokens;
		}
	}
	return true;
}

/* The update's share of what it takes on one replica. */
static double
update_bound(const struct search *s, const struct auto_config *c, double sec)
{
	int64_t group = auto_shards(c) * c->ep;

	group = group < c->dp ? group : c->dp;
	sec /= (double)c->pp;
	return group == 1 ? sec : s->r->in_proportion ? sec / (double)group : 0;
}

/* By the family of one device. */
static double
bound_by_batch(const struct search *s, const struct auto_config *c,
               const struct auto_plan *one)
{
	if (!s->r->in_proportion && c->tp * c->ep > 1)
		return 0;
	return (auto_turns(s->r, c) * one->micro_sec / (double)c->ep
	        + update_bound(s, c, one->update_sec)) / (double)c->tp;
}

static void
raise_bound(struct auto_candidate *c, double bound)
{
	c->bound = bound > c->bound ? bound : c->bound;
}

/* No search is needed where the budget lacks bytes that every plan has. */
static void
refuse_if_small(const struct search *s, struct auto_candidate *c, int64_t needs,
                int64_t states)
{
	if (s->r->budget <= 0 || needs <= s->r->budget)
		return;
	c->state = AUTO_REFUSED;
	c->plan = (struct auto_plan){ .least = needs, .at_least = true,
	                              .states = states };
	snprintf(c->plan.why, AUTO_WHY, "a step needs %lld B at least",
	         (long long)needs);
}

/* What the family needs on one device is shared out at best. */
static void
refuse_by_family(const struct search *s, struct auto_candidate *c,
                 const struct auto_plan *p)
{
	int64_t parts = auto_shards(&c->config) * c->config.pp;
	int64_t states = p->states / parts;

	refuse_if_small(s, c, p->needs / parts
	                - (c->config.offload ? states : 0), states);
}

/* What n times as many ranks do, those of the family do in n times the seconds
 * at most: one of them has the parts of n. */
static void
bound_multiples(struct search *s, int64_t family)
{
	const struct auto_config *own = &s->family[family].config;
	const struct auto_plan *p = &s->family[family].plan;

	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		struct auto_config like = c->config;

		if (c->config.tp <= own->tp || c->config.tp % own->tp)
			continue;
		like.tp = own->tp;
		if (is_of_family(own, &like))
			raise_bound(c, (auto_turns(s->r, &like)
			                * p->micro_shown
			                + update_bound(s, &like, p->update_sec))
			            * (double)own->tp / (double)c->config.tp);
	}
}

/* What cannot be planned without replicas cannot be planned with them. */
static void
take_family(struct search *s, int64_t family)
{
	const struct auto_plan *p = &s->family[family].plan;

	if (p->ok && p->predicted && s->r->in_proportion
	    && s->family[family].config.ep == 1)
		bound_multiples(s, family);
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];

		if (s->of_candidate[i] != family || c->state != AUTO_OPEN)
			continue;
		if (p->ok) {
			raise_bound(c, auto_turns(s->r, &c->config)
			            * (c->config.ep > 1 ? p->micro_sec
			               : p->micro_shown)
			            + update_bound(s, &c->config,
			                           p->update_sec));
			refuse_by_family(s, c, p);
			continue;
		}
		c->state = AUTO_REFUSED;
		c->plan = *p;
	}
}

static void
set_bounds(struct search *s)
{
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		const struct auto_config one = { .tp = 1, .pp = 1, .ep = 1,
			.batch = c->config.batch };
		const struct auto_plan *p =
			&s->family[family_of(s, &one)].plan;

		if (p->ok)
			raise_bound(c, bound_by_batch(s, &c->config, p));
	}
	for (int64_t i = 0; i < s->nfamily; i++)
		if (s->family[i].known)
			take_family(s, i);
}

/* ---- the order ---- */

/* Equal seconds may differ by rounding: then fewer devices, fewer bytes. */
static int
by_seconds(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;
	float x = (float)p->plan.sec, y = (float)q->plan.sec;
	int64_t n = auto_ranks(&p->config), m = auto_ranks(&q->config);

	if (x < y || x > y)
		return x < y ? -1 : 1;
	if (n != m)
		return n < m ? -1 : 1;
	if (p->plan.peak != q->plan.peak)
		return p->plan.peak < q->plan.peak ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* Of equals the one that needs least memory: if it does not fit, none does. */
static int
by_bound(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;

	if (p->bound < q->bound || p->bound > q->bound)
		return p->bound < q->bound ? -1 : 1;
	if (p->config.zero != q->config.zero)
		return p->config.zero > q->config.zero ? -1 : 1;
	return p < q ? -1 : p > q;
}

static struct auto_candidate **
pick(const struct auto_found *f, enum auto_state least, enum auto_state most,
     int64_t *n, Arena *a)
{
	struct auto_candidate **v = arena_array(a, (size_t)f->n + 1, sizeof *v);

	*n = 0;
	for (int64_t i = 0; i < f->n; i++)
		if (f->candidate[i].state >= least
		    && f->candidate[i].state <= most)
			v[(*n)++] = &f->candidate[i];
	return v;
}

/* Seconds that a candidate has to be faster than to be the first of `shown`. */
static double
cutoff(const struct search *s, int64_t shown, Arena *a)
{
	int64_t n;
	struct auto_candidate **v = pick(s->found, AUTO_PLANNED, AUTO_PLANNED,
	                                 &n, a);

	qsort(v, (size_t)n, sizeof *v, by_seconds);
	return n < shown ? INFINITY : v[shown - 1]->plan.sec;
}

/* ---- predictions within the budget ---- */

static struct auto_curve *
curve_of(struct search *s, const struct auto_config *c)
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

static double
excess_of(const struct search *s, const struct auto_candidate *c)
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
	double least = excess_of(s, c) - most;

	if (c->open.curve_bytes > 0)
		least /= c->open.curve_bytes;
	c->state = AUTO_REFUSED;
	c->plan = (struct auto_plan){ .predicted = true, .at_least = true,
		.least = s->r->budget + (int64_t)least };
	snprintf(c->plan.why, AUTO_WHY, "a step needs about %lld B",
	         (long long)c->plan.least);
}

/* What shards less of the same micro-batch needs no less memory. */
static void
refuse_larger(struct search *s, const struct auto_candidate *c)
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
static bool
settle_by_curve(struct search *s, struct auto_candidate *c)
{
	const struct auto_curve *v = curve_of(s, &c->config);
	double excess = excess_of(s, c);
	struct auto_point p;

	if (excess > v->most)
		refuse_by_curve(s, c, v->most);
	else if (auto_curve_at(v, excess, &p))
		take_point(s, c, &p);
	refuse_larger(s, c);
	return c->state != AUTO_BOUND;
}

/* Bytes beside those that are resident; 0: it is a pipeline, whose stages have
 * several. */
static double
left_of(const struct auto_candidate *c, double peak)
{
	return c->config.pp > 1 ? 0
		: fmax(peak - (double)c->open.resident, 0);
}

/* Fewer replicas that shard leave less memory for the same micro-batch, which
 * adds as many seconds at least. */
static void
bound_by_curves(struct search *s, struct auto_candidate *c)
{
	double left = left_of(c, (double)s->r->budget), most = 0;

	for (size_t i = 0; left > 0 && i < s->ncurve; i++)
		if (auto_curve_is_near(&s->curve[i], &c->config))
			most = fmax(most, auto_curve_least(&s->curve[i],
			                                   left));
	raise_bound(c, c->open.sec + (double)c->config.accum * most);
}

/* The answer of a job for a point. */
static void
take_curve(struct search *s, struct auto_candidate *c,
           const struct auto_job *job)
{
	struct auto_curve *v = curve_of(s, &c->config);
	struct auto_point p = job->point;

	if (job->plan.least > 0) {
		if (job->point.bytes < v->most)
			v->most = job->point.bytes;
		refuse_by_curve(s, c, job->point.bytes);
		return;
	}
	p.left = left_of(c, (double)c->open.peak - p.bytes);
	auto_curve_add(v, &p, s->arena);
	auto_curve_nearest(v, excess_of(s, c), &p);
	take_point(s, c, &p);
}

/* ---- waves ---- */

/* Whether a candidate is refused that was never planned. */
static bool
is_refused_unseen(const struct auto_candidate *c)
{
	return c->state == AUTO_REFUSED && !c->open.ok && c->plan.least > 0;
}

/* What is known of a candidate with host memory from that without, which
 * decides first. */
static void
follow_without(const struct search *s, struct auto_candidate *c)
{
	const struct auto_candidate *w = &s->found->candidate[c->without];

	c->bound = w->bound;
	c->open = w->open;
	c->over = w->over;
	if (w->state == AUTO_OPEN || w->state == AUTO_BOUND
	    || is_refused_unseen(w))
		return;
	if (w->state == AUTO_PLANNED && w->plan.recompute <= 0) {
		c->state = AUTO_SAME;
		return;
	}
	if (w->state == AUTO_REFUSED && w->plan.least <= 0) {
		c->state = AUTO_REFUSED;
		c->plan = w->plan;
		return;
	}
	c->state = AUTO_BOUND;
	if (w->plan.at_least && !w->plan.predicted)
		refuse_if_small(s, c, w->plan.least - w->plan.states, 0);
}

/* What a wave plans. */
struct item {
	struct auto_candidate *candidate;       /* NULL: */
	int64_t family;
};

static bool
is_in_wave(const struct item *wave, int n, int64_t family)
{
	for (int i = 0; i < n; i++)
		if (!wave[i].candidate && wave[i].family == family)
			return true;
	return false;
}

static bool
is_by_curve(const struct auto_candidate *c)
{
	return c && c->state == AUTO_BOUND && c->open.predicted;
}

/* A curve gets one point in a wave. */
static bool
is_curve_in_wave(struct search *s, const struct item *wave, int n,
                 const struct auto_candidate *c)
{
	for (int i = 0; i < n; i++)
		if (is_by_curve(wave[i].candidate)
		    && curve_of(s, &wave[i].candidate->config)
		    == curve_of(s, &c->config))
			return true;
	return false;
}

/* Whether a candidate may be among those that are shown; if they are predicted,
 * which takes longer for large models, among the best. */
static bool
may_be_shown(const struct auto_candidate *c, bool predicts, double best,
             double last)
{
	if (predicts)
		last = fmin(last, best * (c->config.offload
		                           ? WITH_HOST : PREDICTED));
	return c->bound < last;
}

/* Whether the point of one of v[0..n-1] with more memory, which will bound c,
 * is asked for first. */
static bool
waits_for_point(const struct search *s, const struct auto_candidate *c,
                struct auto_candidate **v, int64_t n, double best, double last)
{
	const struct auto_curve own = { .like = c->config };
	double left = left_of(c, (double)s->r->budget);

	for (int64_t i = 0; i < n && is_by_curve(c) && c->config.pp == 1; i++)
		if (is_by_curve(v[i]) && v[i]->config.pp == 1
		    && auto_curve_is_near(&own, &v[i]->config)
		    && left_of(v[i], (double)s->r->budget) > left
		    && may_be_shown(v[i], s->predicts, best, last))
			return true;
	return false;
}

/* Whether another candidate decides first. */
static bool
waits_for_other(const struct search *s, const struct auto_candidate *c)
{
	return c->without >= 0 && c->state == AUTO_OPEN
		&& !is_refused_unseen(&s->found->candidate[c->without]);
}

/* Without plans; true: others may no longer be wanted. */
static bool
settle_by_curves(struct search *s, struct auto_candidate **v, int64_t n,
                 Arena *a)
{
	double best = cutoff(s, 1, a), last = cutoff(s, SHOWN, a);
	bool any = false;

	for (int64_t i = 0; i < n; i++) {
		if (!is_by_curve(v[i]))
			continue;
		bound_by_curves(s, v[i]);
		any |= may_be_shown(v[i], s->predicts, best, last)
			&& settle_by_curve(s, v[i]);
	}
	return any;
}

/* Candidates that have the plan of another one. */
static void
follow_same(struct auto_found *f)
{
	for (int64_t i = 0; i < f->n; i++) {
		struct auto_candidate *c = &f->candidate[i];
		const struct auto_candidate was = *c;

		if (c->same < 0)
			continue;
		*c = f->candidate[c->same];
		c->config = was.config;
		c->without = was.without;
		c->same = was.same;
	}
}

/* Of v[0..n-1] those that no other one decides; how many. */
static int64_t
drop_same(struct auto_candidate **v, int64_t n)
{
	int64_t k = 0;

	for (int64_t i = 0; i < n; i++)
		if (v[i]->same < 0)
			v[k++] = v[i];
	return k;
}

/* Those that are not decided, the least bound first. */
static struct auto_candidate **
list_open(struct search *s, int64_t *n, Arena *a)
{
	struct auto_candidate **v;

	do {
		follow_same(s->found);
		for (int64_t i = 0; i < s->found->n; i++) {
			struct auto_candidate *c = &s->found->candidate[i];

			if (c->without >= 0 && c->state == AUTO_OPEN)
				follow_without(s, c);
		}
		v = pick(s->found, AUTO_OPEN, AUTO_BOUND, n, a);
		*n = drop_same(v, *n);
		qsort(v, (size_t)*n, sizeof *v, by_bound);
	} while (settle_by_curves(s, v, *n, a));
	return v;
}

/* The family to be planned first: one of fewer ranks that bounds it, if there
 * is one that is not known yet. */
static int64_t
first_family(const struct search *s, int64_t family)
{
	const struct auto_config *c = &s->family[family].config;
	int64_t first = family;

	for (int64_t i = 0; i < s->nfamily && s->predicts; i++) {
		const struct family *f = &s->family[i];
		struct auto_config like = *c;

		like.tp = f->config.tp;
		if (!f->known && f->config.tp < s->family[first].config.tp
		    && c->tp % f->config.tp == 0
		    && is_of_family(&f->config, &like))
			first = i;
	}
	return first;
}

/* Of candidates v[0..n-1], those with host memory or those without. */
static int
fill_wave(struct search *s, struct item wave[WAVE], struct auto_candidate **v,
          int64_t n, bool offload, Arena *a)
{
	double best = cutoff(s, 1, a), last = cutoff(s, SHOWN, a);
	int k = 0;

	for (int64_t i = 0; i < n && k < WAVE; i++) {
		int64_t family = s->of_candidate[v[i] - s->found->candidate];

		if (v[i]->config.offload != offload
		    || !may_be_shown(v[i], s->predicts, best, last)
		    || waits_for_other(s, v[i])
		    || waits_for_point(s, v[i], v, n, best, last)
		    || (is_by_curve(v[i])
		        && is_curve_in_wave(s, wave, k, v[i])))
			continue;
		if (s->family[family].known) {
			wave[k++] = (struct item){ v[i], family };
			continue;
		}
		family = first_family(s, family);
		if (!is_in_wave(wave, k, family))
			wave[k++] = (struct item){ NULL, family };
	}
	return k;
}

/* Before anything is known to fit, which tells what is slower: predictions
 * within the budget alone. */
static int
fill_first(struct search *s, struct item wave[WAVE], struct auto_candidate **v,
           int64_t n, Arena *a)
{
	int k = 0;

	if (!isinf(cutoff(s, 1, a)))
		return 0;
	for (int64_t i = 0; i < n && k < FIRST; i++)
		if (is_by_curve(v[i]) && !v[i]->config.offload
		    && v[i]->bound <= NEAR * v[0]->bound
		    && !is_curve_in_wave(s, wave, k, v[i]))
			wave[k++] = (struct item){ .candidate = v[i] };
	return k;
}

/* A plan without a budget that fits and recomputes nothing is that within
 * it. */
static void
take_answer(struct search *s, struct auto_candidate *c,
            const struct auto_job *job)
{
	const struct auto_plan *p = &job->plan;

	if (job->point.bytes > 0) {
		take_curve(s, c, job);
	} else if (!p->ok) {
		c->state = AUTO_REFUSED;
		c->plan = *p;
	} else if (job->budget || s->r->budget <= 0
	           || p->peak <= s->r->budget) {
		c->state = c->config.offload && p->host == 0 ? AUTO_SAME
			: AUTO_PLANNED;
		c->plan = *p;
	} else {
		double least = s->r->may_reorder && c->config.accum == 1
			? p->busiest : p->sec;

		c->state = AUTO_BOUND;
		c->open = *p;
		c->over = true;
		raise_bound(c, least);
		refuse_if_small(s, c, p->needs, p->states);
	}
}

static bool
is_families_own(const struct auto_config *c)
{
	return auto_ranks(c) == c->tp && c->accum == 1 && !c->zero
		&& !c->offload;
}

/* A family's plan is that of the configuration that it is. */
static void
take_families(struct search *s)
{
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		const struct family *own = &s->family[s->of_candidate[i]];
		const struct auto_job job = { .plan = own->plan };

		if (c->state != AUTO_OPEN || !own->known
		    || !is_families_own(&c->config))
			continue;
		take_answer(s, c, &job);
		refuse_larger(s, c);
	}
}

/* Those with host memory, whose plans take longest, come last. */
static int
next_wave(struct search *s, struct item wave[WAVE], Arena *a)
{
	struct auto_candidate **v;
	int64_t n;
	int k;

	take_families(s);
	v = list_open(s, &n, a);
	k = fill_first(s, wave, v, n, a);
	k = k > 0 ? k : fill_wave(s, wave, v, n, false, a);
	return k > 0 ? k : fill_wave(s, wave, v, n, true, a);
}

static void
report_progress(const struct search *s, bool end)
{
	double sec = now_sec() - s->began;

	if (!s->progress || sec < QUIET)
		return;
	if (end)
		fprintf(s->progress, "\r\033[K");
	else
		fprintf(s->progress, "\r\033[K%lld configurations, %lld plans, "
		        "%.0f s", (long long)s->found->n,
		        (long long)s->found->nplan, sec);
	fflush(s->progress);
}

/* exact: nothing is predicted; proof: of plans that are. */
static bool
run_wave(struct search *s, const struct item *wave, int n, bool exact,
         bool proof)
{
	struct auto_job job[WAVE] = { 0 };

	for (int i = 0; i < n; i++) {
		const struct auto_candidate *c = wave[i].candidate;

		job[i].config = c ? c->config
			: s->family[wave[i].family].config;
		job[i].budget = c && c->state == AUTO_BOUND;
		job[i].exact = exact;
		job[i].proof = proof;
		if (is_by_curve(c) && !exact)
			job[i].excess = (int64_t)excess_of(s, c);
	}
	if (!s->planner(s->of, job, n))
		return false;
	s->found->nplan += n;
	for (int i = 0; i < n; i++) {
		if (job[i].late) {
			*(proof ? &s->found->cut : &s->found->stopped) = true;
			continue;
		}
		s->predicts |= job[i].plan.predicted;
		if (wave[i].candidate) {
			take_answer(s, wave[i].candidate, &job[i]);
			refuse_larger(s, wave[i].candidate);
			continue;
		}
		s->family[wave[i].family].plan = job[i].plan;
		s->family[wave[i].family].known = true;
		take_family(s, wave[i].family);
	}
	report_progress(s, false);
	return true;
}

static int
by_least(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;

	if (!p->plan.least != !q->plan.least)
		return p->plan.least ? -1 : 1;
	if (p->plan.least != q->plan.least)
		return p->plan.least < q->plan.least ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* If nothing fits, the budgets that work for those that may need least. */
static bool
plan_least(struct search *s)
{
	struct item wave[WAVE];
	struct auto_candidate **v;
	int64_t n;
	int k = 0;

	pick(s->found, AUTO_PLANNED, AUTO_PLANNED, &n, s->arena);
	if (n > 0)
		return true;
	v = pick(s->found, AUTO_REFUSED, AUTO_REFUSED, &n, s->arena);
	n = drop_same(v, n);
	qsort(v, (size_t)n, sizeof *v, by_least);
	for (int64_t i = 0; i < n && k < LEAST; i++) {
		/* of stages one is planned: the others may need more */
		if (!v[i]->plan.at_least || v[i]->config.pp > 1)
			continue;
		v[i]->state = AUTO_BOUND;
		wave[k++] = (struct item){ .candidate = v[i] };
	}
	return k == 0 || run_wave(s, wave, k, true, false);
}

static bool
is_late(const struct search *s)
{
	return s->r->seconds > 0 && now_sec() - s->began > s->r->seconds;
}

/* ---- predicted plans are made ---- */

/* Those of the first `most` that are only predicted, as they are then. */
static int
next_exact(struct search *s, struct item wave[WAVE], int64_t most, Arena *a)
{
	int64_t n;
	struct auto_candidate **v = pick(s->found, AUTO_PLANNED, AUTO_PLANNED,
	                                 &n, a);
	int k = 0;

	n = drop_same(v, n);
	qsort(v, (size_t)n, sizeof *v, by_seconds);
	for (int64_t i = 0; i < n && i < most && k < WAVE; i++) {
		struct auto_candidate *c = v[i];

		if (!c->plan.predicted)
			continue;
		if (c->predicted_sec <= 0) {
			c->predicted_sec = c->plan.sec;
			c->predicted_peak = c->plan.peak;
		}
		c->state = c->over ? AUTO_BOUND : AUTO_OPEN;
		wave[k++] = (struct item){ .candidate = c };
	}
	return k;
}

/* A plan that is predicted to fit may not, or was not made in time. */
static void
keep_prediction(struct auto_candidate *c)
{
	if (c->state == AUTO_OPEN || c->state == AUTO_BOUND)
		c->state = AUTO_PLANNED;
}

/* Plan the best ones, until the first is none that is only predicted. */
static bool
plan_exactly(struct search *s)
{
	struct item wave[WAVE];

	for (int64_t most = s->r->exact; ; most = 1) {
		Arena *scratch = arena_new();
		int n = next_exact(s, wave, most, scratch);

		arena_free(scratch);
		if (n == 0)
			return true;
		if (!run_wave(s, wave, n, true, true))
			return false;
		for (int i = 0; i < n; i++)
			keep_prediction(wave[i].candidate);
		if (s->found->cut)
			return true;
	}
}

static void
order_planned(struct search *s)
{
	struct auto_found *f = s->found;
	struct auto_candidate **v;
	int64_t *order;

	follow_same(f);
	v = pick(f, AUTO_PLANNED, AUTO_PLANNED, &f->nplanned, s->arena);
	order = arena_array(s->arena, (size_t)f->nplanned + 1, sizeof *order);
	qsort(v, (size_t)f->nplanned, sizeof *v, by_seconds);
	for (int64_t i = 0; i < f->nplanned; i++)
		order[i] = v[i] - f->candidate;
	f->order = order;
}

bool
auto_search(const struct auto_request *r, AutoPlanner *planner, void *of,
            struct auto_found *found, FILE *progress, Arena *a)
{
	struct search s = { .r = r, .planner = planner, .of = of,
		.found = found, .began = now_sec(), .progress = progress,
		.arena = a };
	struct item wave[WAVE];
	bool ok;
	int n;

	*found = (struct auto_found){ .request = *r };
	found->candidate = auto_candidates(r, &found->n, a);
	list_families(&s);
	ok = plan_batches(&s);
	if (ok)
		set_bounds(&s);
	while (ok) {
		Arena *scratch = arena_new();

		n = next_wave(&s, wave, scratch);
		arena_free(scratch);
		found->stopped |= n > 0 && is_late(&s);
		if (n == 0 || found->stopped)
			break;
		ok = run_wave(&s, wave, n, false, false);
	}
	ok = ok && (found->stopped || plan_exactly(&s));
	ok = ok && (found->stopped || plan_least(&s));
	report_progress(&s, true);
	order_planned(&s);
	return ok;
}
