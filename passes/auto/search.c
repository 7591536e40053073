/* Which configurations are planned.
 *
 * what    in waves (waves.c), best first, after the lower bounds of seconds
 * bound   first of a micro-batch and the update on one device.  Then of a
 *         family, configurations that differ only in replicas, ZeRO, stages
 *         and the number of micro-batches: its micro-batch without replicas,
 *         with the transfers of its ranks; or if replicas share experts, as
 *         many replicas without any transfers (bounds.c).  Some are refused
 *         without a plan, by the bytes of their family
 * repeats waves have one size, so that the answer does not depend on how many
 *         plans are made at once
 * predict a plan may be predicted (predict.c).  What a budget adds to it then
 *         comes from the curve of its micro-batch (points.c, curve.c), which
 *         gets a point where none is near.  The best ones are planned at the
 *         end, for some seconds
 */
#include "passes/auto/inside.h"
#include "runtime/support/now.h"

#include <stdlib.h>

/* Configurations whose smallest budgets a refusal finds. */
enum { LEAST = 2 };

/* Seconds before progress is reported. */
static const double QUIET = 2;

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
		if (points_serve(c) && !exact)
			job[i].excess = (int64_t)points_excess(s, c);
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
			waves_take(s, wave[i].candidate, &job[i]);
			points_refuse_larger(s, wave[i].candidate);
			continue;
		}
		s->family[wave[i].family].plan = job[i].plan;
		s->family[wave[i].family].known = true;
		families_take(s, wave[i].family);
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

	list_states(s->found, AUTO_PLANNED, AUTO_PLANNED, &n, s->arena);
	if (n > 0)
		return true;
	v = list_states(s->found, AUTO_REFUSED, AUTO_REFUSED, &n, s->arena);
	n = list_drop_same(v, n);
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
	struct auto_candidate **v = list_states(s->found, AUTO_PLANNED,
	                                        AUTO_PLANNED, &n, a);
	int k = 0;

	n = list_drop_same(v, n);
	qsort(v, (size_t)n, sizeof *v, list_by_seconds);
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

	list_follow_same(f);
	v = list_states(f, AUTO_PLANNED, AUTO_PLANNED, &f->nplanned, s->arena);
	order = arena_array(s->arena, (size_t)f->nplanned + 1, sizeof *order);
	qsort(v, (size_t)f->nplanned, sizeof *v, list_by_seconds);
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
	families_list(&s);
	ok = families_plan_batches(&s);
	if (ok)
		families_set_bounds(&s);
	while (ok) {
		Arena *scratch = arena_new();

		n = waves_next(&s, wave, scratch);
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

