/* What a wave plans: the candidates with the least bounds, until none is left
 * that may be among the best SHOWN.
 *
 * bound   a plan without a budget is one itself, as a budget adds recomputation
 *         or waits; but where it may also bring updates into backward, only its
 *         busiest lane is
 * predict a family bounds those of n times as many ranks, a point those with
 *         less memory: both come before what they bound, and as long as nothing
 *         is known to fit, points come first.  What shards less than a
 *         candidate that does not fit does not fit either
 */
#include "passes/auto/inside.h"
#include "passes/auto/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* FIRST: predictions within the budget at a time until one is known. */
enum { SHOWN = 11, FIRST = 2 };

/* Of the best predicted seconds, which are not exact: bounds that are looked
 * at, and those with host memory, whose plans take longest. */
static const double PREDICTED = 1.03, WITH_HOST = 0.95;

/* Of the least bound: those that may be the first prediction. */
static const double NEAR = 1.25;

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
		refuse_if_small(s->r, c, w->plan.least - w->plan.states, 0);
}

static bool
is_in_wave(const struct item *wave, int n, int64_t family)
{
	for (int i = 0; i < n; i++)
		if (!wave[i].candidate && wave[i].family == family)
			return true;
	return false;
}

/* A curve gets one point in a wave. */
static bool
is_curve_in_wave(struct search *s, const struct item *wave, int n,
                 const struct auto_candidate *c)
{
	for (int i = 0; i < n; i++)
		if (points_serve(wave[i].candidate)
		    && points_curve(s, &wave[i].candidate->config)
		    == points_curve(s, &c->config))
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
	double left = points_left(c, (double)s->r->budget);

	for (int64_t i = 0; i < n && points_serve(c) && c->config.pp == 1; i++)
		if (points_serve(v[i]) && v[i]->config.pp == 1
		    && auto_curve_is_near(&own, &v[i]->config)
		    && points_left(v[i], (double)s->r->budget) > left
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
	double best = list_cutoff(s, 1, a), last = list_cutoff(s, SHOWN, a);
	bool any = false;

	for (int64_t i = 0; i < n; i++) {
		if (!points_serve(v[i]))
			continue;
		points_bound(s, v[i]);
		any |= may_be_shown(v[i], s->predicts, best, last)
			&& points_settle(s, v[i]);
	}
	return any;
}

/* Those that are not decided, the least bound first. */
static struct auto_candidate **
list_open(struct search *s, int64_t *n, Arena *a)
{
	struct auto_candidate **v;

	do {
		list_follow_same(s->found);
		for (int64_t i = 0; i < s->found->n; i++) {
			struct auto_candidate *c = &s->found->candidate[i];

			if (c->without >= 0 && c->state == AUTO_OPEN)
				follow_without(s, c);
		}
		v = list_states(s->found, AUTO_OPEN, AUTO_BOUND, n, a);
		*n = list_drop_same(v, *n);
		qsort(v, (size_t)*n, sizeof *v, list_by_bound);
	} while (settle_by_curves(s, v, *n, a));
	return v;
}

/* The candidate, or the family that has to be known before; how many there are
 * then. */
static int
add_item(const struct search *s, struct item wave[WAVE], int k,
         struct auto_candidate *c)
{
	int64_t family = s->of_candidate[c - s->found->candidate];

	if (s->family[family].known) {
		wave[k++] = (struct item){ c, family };
		return k;
	}
	family = families_first(s, family);
	if (!is_in_wave(wave, k, family))
		wave[k++] = (struct item){ NULL, family };
	return k;
}

/* Of candidates v[0..n-1], those with host memory or those without. */
static int
fill_wave(struct search *s, struct item wave[WAVE], struct auto_candidate **v,
          int64_t n, bool offload, Arena *a)
{
	double best = list_cutoff(s, 1, a), last = list_cutoff(s, SHOWN, a);
	int k = 0;

	for (int64_t i = 0; i < n && k < WAVE; i++)
		if (v[i]->config.offload == offload
		    && may_be_shown(v[i], s->predicts, best, last)
		    && !waits_for_other(s, v[i])
		    && !waits_for_point(s, v[i], v, n, best, last)
		    && !(points_serve(v[i])
		         && is_curve_in_wave(s, wave, k, v[i])))
			k = add_item(s, wave, k, v[i]);
	return k;
}

/* Before anything is known to fit, which tells what is slower: predictions
 * within the budget, and beside them others that may be as fast. */
static int
fill_first(struct search *s, struct item wave[WAVE], struct auto_candidate **v,
           int64_t n, Arena *a)
{
	int k = 0;

	if (!isinf(list_cutoff(s, 1, a)))
		return 0;
	for (int64_t i = 0; i < n && k < FIRST; i++)
		if (points_serve(v[i]) && !v[i]->config.offload
		    && v[i]->bound <= NEAR * v[0]->bound
		    && !is_curve_in_wave(s, wave, k, v[i]))
			wave[k++] = (struct item){ .candidate = v[i] };
	for (int64_t i = 0; i < n && k > 0 && k < WAVE; i++)
		if (!points_serve(v[i]) && !v[i]->config.offload
		    && v[i]->bound <= NEAR * v[0]->bound
		    && !waits_for_other(s, v[i]))
			k = add_item(s, wave, k, v[i]);
	return k;
}

/* Points, which take longest, first. */
static void
order_wave(struct item wave[WAVE], int n)
{
	struct item own[WAVE];
	int k = 0;

	memcpy(own, wave, (size_t)n * sizeof *own);
	for (int point = 1; point >= 0; point--)
		for (int i = 0; i < n; i++)
			if (points_serve(own[i].candidate) == point)
				wave[k++] = own[i];
}

/* A plan without a budget that fits and recomputes nothing is that within
 * it. */
void
waves_take(struct search *s, struct auto_candidate *c,
           const struct auto_job *job)
{
	const struct auto_plan *p = &job->plan;

	if (job->point.bytes > 0) {
		points_take(s, c, job);
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
		bound_raise(c, least);
		refuse_if_small(s->r, c, p->needs, p->states);
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
		waves_take(s, c, &job);
		points_refuse_larger(s, c);
	}
}

/* Those with host memory, whose plans take longest, come last. */
int
waves_next(struct search *s, struct item wave[WAVE], Arena *a)
{
	struct auto_candidate **v;
	int64_t n;
	int k;

	take_families(s);
	v = list_open(s, &n, a);
	k = fill_first(s, wave, v, n, a);
	k = k > 0 ? k : fill_wave(s, wave, v, n, false, a);
	k = k > 0 ? k : fill_wave(s, wave, v, n, true, a);
	order_wave(wave, k);
	return k;
}
