/* Which configurations are planned.
 *
 * what    best first, after the lower bounds of seconds: the candidates with
 *         the least bounds are planned until none is left that may be among
 *         the best SHOWN.  A plan without a budget is a bound itself, as a
 *         budget adds recomputation or waits; but where it may also bring
 *         updates into backward, only its busiest lane is
 * bound   of a micro-batch and the update on one device, which nothing is
 *         waited for: ranks share them, replicas the update with ZeRO
 * exact   if the seconds of an op fall at most in proportion to its share
 * repeats candidates are planned in waves of one size, so that the answer does
 *         not depend on how many run at once
 */
#include "passes/auto/auto.h"
#include "runtime/support/now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LEAST: configurations whose smallest budgets a refusal finds. */
enum { WAVE = 8, SHOWN = 11, LEAST = 2 };

/* Seconds before progress is reported. */
static const double QUIET = 2;

/* A batch on one device, without a budget. */
struct base {
	int64_t batch;
	struct auto_plan plan;
};

struct search {
	const struct auto_request *r;
	AutoPlanner *planner;
	void *of;
	struct auto_found *found;
	struct base *base;
	int64_t nbase;
	double began;
	FILE *progress;
	Arena *arena;
};

static const struct base *
find_base(const struct search *s, int64_t batch)
{
	for (int64_t i = 0; i < s->nbase; i++)
		if (s->base[i].batch == batch)
			return &s->base[i];
	return NULL;
}

static void
list_bases(struct search *s)
{
	const struct auto_found *f = s->found;

	s->base = arena_array(s->arena, (size_t)f->n + 1, sizeof *s->base);
	for (int64_t i = 0; i < f->n; i++)
		if (!find_base(s, f->candidate[i].config.batch))
			s->base[s->nbase++].batch =
				f->candidate[i].config.batch;
}

static bool
plan_bases(struct search *s)
{
	struct auto_job *job = arena_array(s->arena, (size_t)s->nbase + 1,
	                                   sizeof *job);
	struct auto_found *f = s->found;

	for (int64_t i = 0; i < s->nbase; i++)
		job[i] = (struct auto_job){ .flops = true, .config = {
			.tp = 1, .dp = 1, .accum = 1,
			.batch = s->base[i].batch } };
	if (!s->planner(s->of, job, (int)s->nbase))
		return false;
	f->nplan += s->nbase;
	for (int64_t i = 0; i < s->nbase; i++) {
		const struct auto_plan *p = &job[i].plan;

		s->base[i].plan = *p;
		if (p->ok && f->flops <= 0) {
			f->flops = p->flops / (double)s->base[i].batch;
			f->peak_flops = p->peak_flops;
			f->tokens = p->tokens;
		}
	}
	return true;
}

static double
bound_of(const struct search *s, const struct auto_config *c,
         const struct auto_plan *base)
{
	int64_t group = !c->zero ? 1 : c->zero_group ? c->zero_group : c->dp;

	if (!s->r->in_proportion && (c->tp > 1 || group > 1))
		return 0;
	return ((double)c->accum * base->micro_sec
	        + base->update_sec / (double)group) / (double)c->tp;
}

/* What cannot be planned on one device cannot be planned on several. */
static void
set_bounds(struct search *s)
{
	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];
		const struct base *b = find_base(s, c->config.batch);

		if (b->plan.ok) {
			c->bound = bound_of(s, &c->config, &b->plan);
			continue;
		}
		c->state = AUTO_REFUSED;
		c->plan = b->plan;
	}
}

/* ---- the order ---- */

/* Equal seconds may differ by rounding: then fewer devices, fewer bytes. */
static int
by_seconds(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;
	float x = (float)p->plan.sec, y = (float)q->plan.sec;
	int64_t n = p->config.tp * p->config.dp;
	int64_t m = q->config.tp * q->config.dp;

	if (x < y || x > y)
		return x < y ? -1 : 1;
	if (n != m)
		return n < m ? -1 : 1;
	if (p->plan.peak != q->plan.peak)
		return p->plan.peak < q->plan.peak ? -1 : 1;
	return p < q ? -1 : p > q;
}

static int
by_bound(const void *a, const void *b)
{
	const struct auto_candidate *p = *(struct auto_candidate *const *)a;
	const struct auto_candidate *q = *(struct auto_candidate *const *)b;

	if (p->bound < q->bound || p->bound > q->bound)
		return p->bound < q->bound ? -1 : 1;
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

/* Seconds that a candidate has to be faster than. */
static double
cutoff(const struct search *s, Arena *a)
{
	int64_t n;
	struct auto_candidate **v = pick(s->found, AUTO_PLANNED, AUTO_PLANNED,
	                                 &n, a);

	qsort(v, (size_t)n, sizeof *v, by_seconds);
	return n < SHOWN ? INFINITY : v[SHOWN - 1]->plan.sec;
}

/* ---- waves ---- */

/* No search is needed where the budget lacks bytes that every plan has. */
static void
refuse_if_small(const struct search *s, struct auto_candidate *c, int64_t needs,
                int64_t states)
{
	if (needs <= s->r->budget)
		return;
	c->state = AUTO_REFUSED;
	c->plan = (struct auto_plan){ .least = needs, .at_least = true,
	                              .states = states };
	snprintf(c->plan.why, AUTO_WHY, "a step needs %lld B at least",
	         (long long)needs);
}

/* What is known of a candidate with host memory from that without, which
 * decides first. */
static void
follow_without(const struct search *s, struct auto_candidate *c)
{
	const struct auto_candidate *w = &s->found->candidate[c->without];

	c->bound = w->bound;
	if (w->state == AUTO_OPEN || w->state == AUTO_BOUND)
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
	if (w->plan.at_least)
		refuse_if_small(s, c, w->plan.least - w->plan.states, 0);
}

static int
next_wave(struct search *s, struct auto_candidate *wave[WAVE], Arena *a)
{
	double below = cutoff(s, a);
	int64_t n;
	struct auto_candidate **v;
	int k = 0;

	for (int64_t i = 0; i < s->found->n; i++) {
		struct auto_candidate *c = &s->found->candidate[i];

		if (c->without >= 0 && c->state == AUTO_OPEN)
			follow_without(s, c);
	}
	v = pick(s->found, AUTO_OPEN, AUTO_BOUND, &n, a);
	qsort(v, (size_t)n, sizeof *v, by_bound);
	for (int64_t i = 0; i < n && k < WAVE && v[i]->bound < below; i++)
		if (v[i]->without < 0 || v[i]->state == AUTO_BOUND)
			wave[k++] = v[i];
	return k;
}

/* A plan without a budget that fits and recomputes nothing is that within
 * it. */
static void
take_answer(const struct search *s, struct auto_candidate *c,
            const struct auto_job *job)
{
	const struct auto_plan *p = &job->plan;

	if (!p->ok) {
		c->state = AUTO_REFUSED;
		c->plan = *p;
	} else if (c->config.offload && p->host == 0) {
		c->state = AUTO_SAME;
	} else if (job->budget || s->r->budget <= 0
	           || p->peak <= s->r->budget) {
		c->state = AUTO_PLANNED;
		c->plan = *p;
	} else {
		double least = s->r->may_reorder && c->config.accum == 1
			? p->busiest : p->sec;

		c->state = AUTO_BOUND;
		c->bound = least > c->bound ? least : c->bound;
		refuse_if_small(s, c, p->needs, p->states);
	}
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

static bool
run_wave(struct search *s, struct auto_candidate **wave, int n)
{
	struct auto_job job[WAVE] = { 0 };

	for (int i = 0; i < n; i++) {
		job[i].config = wave[i]->config;
		job[i].budget = wave[i]->state == AUTO_BOUND;
	}
	if (!s->planner(s->of, job, n))
		return false;
	s->found->nplan += n;
	for (int i = 0; i < n; i++)
		take_answer(s, wave[i], &job[i]);
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
	struct auto_candidate *wave[WAVE], **v;
	int64_t n;
	int k = 0;

	v = pick(s->found, AUTO_PLANNED, AUTO_REFUSED, &n, s->arena);
	qsort(v, (size_t)n, sizeof *v, by_least);
	for (int64_t i = 0; i < n && k < LEAST; i++) {
		if (v[i]->state == AUTO_PLANNED)
			return true;
		if (!v[i]->plan.at_least)
			continue;
		v[i]->state = AUTO_BOUND;
		wave[k++] = v[i];
	}
	return k == 0 || run_wave(s, wave, k);
}

static bool
is_late(const struct search *s)
{
	return s->r->seconds > 0 && now_sec() - s->began > s->r->seconds;
}

static void
order_planned(struct search *s)
{
	struct auto_found *f = s->found;
	struct auto_candidate **v = pick(f, AUTO_PLANNED, AUTO_PLANNED,
	                                 &f->nplanned, s->arena);
	int64_t *order = arena_array(s->arena, (size_t)f->nplanned + 1,
	                             sizeof *order);

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
	struct auto_candidate *wave[WAVE];
	bool ok;
	int n;

	*found = (struct auto_found){ .request = *r };
	found->candidate = auto_candidates(r, &found->n, a);
	list_bases(&s);
	ok = plan_bases(&s);
	if (ok)
		set_bounds(&s);
	while (ok) {
		Arena *scratch = arena_new();

		n = next_wave(&s, wave, scratch);
		arena_free(scratch);
		found->stopped = n > 0 && is_late(&s);
		if (n == 0 || found->stopped)
			break;
		ok = run_wave(&s, wave, n);
	}
	ok = ok && plan_least(&s);
	report_progress(&s, true);
	order_planned(&s);
	return ok;
}
