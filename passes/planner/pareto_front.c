/* The Pareto front of step time against memory budget.
 *
 * what    for a grid of budgets from keep-everything down to the least, the
 *         plan that would be taken, its peak, time and bound; presets beside
 * method  One choice serves all points of the grid, so the search is done
 *         once.  Points are (budget, time), and those that another one beats
 *         in both are left out, which makes the curve monotone.  Where updates
 *         may run after backward or in it, both variants of the graph add
 *         points at the same budgets, those of all presets among them, and the
 *         later variant wins ties, as for a single budget.  With --offload
 *         auto, plans that offload values are looked for at every
 *         OFFLOAD_EVERY-th budget, and below them down to where there are
 *         none; variants whose optimizer states are in host memory add points
 *         there.  Seconds of curves count transfers between ranks in full, and
 *         those to and from host memory as far as the step is longer by them
 *         than that: a plan takes as long, or less.
 * cost    GRID choices and bounds of each variant
 */
#include "passes/planner/pareto_front.h"
#include "passes/overlap/overlap.h"
#include "passes/planner/exposed.h"
#include "passes/planner/offload_plan.h"
#include "runtime/support/json_write.h"
#include "passes/account/account.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GRID = 40, PRESETS = 8, VARIANTS = 4, OFFLOAD_EVERY = 4,
	BELOW = 16,                     /* budgets below the least */
	GRID_MAX = 2 * (GRID + PRESETS + 1)
};

/* Seconds that differ by this part of a step are sums in another order. */
#define SAME 1e-12

/* ---- points ---- */

/* Whoever may have a, takes it rather than b. */
static bool
dominates_point(const struct pareto_point *a, const struct pareto_point *b)
{
	double more = a->step_sec - b->step_sec;
	double same = SAME * a->step_sec;

	if (a->budget > b->budget || more > same)
		return false;
	return more < -same
		|| !a->updates_in_backward || b->updates_in_backward;
}

static bool
is_dominated_point(const struct pareto_front *f, const struct pareto_point *q)
{
	for (int i = 0; i < f->n; i++)
		if (dominates_point(&f->point[i], q))
			return true;
	return false;
}

static void
insert_point(struct pareto_front *f, struct pareto_point q)
{
	int n = 0, at;

	for (int i = 0; i < f->n; i++)
		if (!dominates_point(&q, &f->point[i]))
			f->point[n++] = f->point[i];
	for (at = n; at > 0 && f->point[at - 1].budget > q.budget; at--)
		f->point[at] = f->point[at - 1];
	f->point[at] = q;
	f->n = n + 1;
}

/* Seconds of a step that keeps everything.  Variants that do the same work have
 * one sum, rounded once. */
static double
base_of(const struct pareto_front *f, const struct remat *r)
{
	return fabs(r->base_sec - f->base_sec) <= SAME * f->base_sec
		? f->base_sec : r->base_sec;
}

/* The point of a plan that offloads no values. */
static struct pareto_point
point_of_plan(const Pass *p, const struct plan_source *s,
              const struct known_plan *f)
{
	struct pareto_point q = { .peak = s->w->r->resident + f->placed,
		.recompute_sec = f->sec, .sent = offload_sent(s->g) };
	bool all;

	q.base_sec = base_of(p->planned.pareto_front, s->w->r);
	q.step_sec = q.base_sec + f->sec;
	if (q.sent > 0)
		q.step_sec = fmax(q.step_sec, exposed_seconds(p, s, f,
			INFINITY, &all, NULL));
	return q;
}

/* The point of a plan that offloads values. */
static struct pareto_point
point_of_offload(const Pass *p, const struct plan_source *s,
                 const struct offload_plan *o)
{
	struct pareto_point q = {
		.base_sec = base_of(p->planned.pareto_front, s->w->r),
		.peak = s->w->r->resident + o->placed,
		.recompute_sec = o->plan.sec, .sent = o->sent };

	q.step_sec = fmax(q.base_sec + o->plan.sec, o->sec);
	return q;
}

/* The point of the plan with the fastest step, with offloaded values or without
 * them; false: none is known. */
static bool
find_point(Pass *p, const struct plan_source *s, bool offload,
           struct known_plan *f, struct pareto_point *q)
{
	const struct known_plan *taken = selector_best(s->c,
		p->planned.budget - s->w->r->resident);
	struct offload_plan o;
	struct pareto_point with;

	if (taken) {
		*f = *taken;
		*q = point_of_plan(p, s, f);
	}
	if (!offload || !offload_best(p, s, taken, &o))
		return taken != NULL;
	with = point_of_offload(p, s, &o);
	if (!taken || with.step_sec < q->step_sec) {
		*f = o.plan;
		*q = with;
	}
	return true;
}

/* The plan for this arena.  The grid is walked upwards: what is no faster than
 * a smaller budget's needs no bound. */
static void
add_plan(Pass *p, const struct plan_source *s, bool updates_in_backward,
         int64_t arena, bool offload)
{
	const int64_t asked = p->planned.budget;
	struct recompute_bound bound;
	struct known_plan f;
	struct pareto_point q;

	p->planned.budget = s->w->r->resident + arena;
	if (find_point(p, s, offload && offload_takes_values(p), &f, &q)) {
		q.budget = p->planned.budget;
		q.updates_in_backward = updates_in_backward;
		if (!is_dominated_point(p->planned.pareto_front, &q)) {
			bound = offload_bound(p, s, &f, q.step_sec);
			q.bound_sec = reported_bound(q.base_sec + bound.sec,
			                             q.base_sec, q.step_sec);
			q.bound_class = bound.class;
			insert_point(p->planned.pareto_front, q);
		}
	}
	p->planned.budget = asked;
}

/* A preset, if this form needs less for it than the other. */
static void
add_preset(Pass *p, int i)
{
	struct pareto_front *f = p->planned.pareto_front;
	const struct alternative *a = &p->planned.alternative[i];

	if (i < f->npreset && a->peak >= f->preset[i].peak)
		return;
	f->preset[i] = (struct pareto_point){
		.name = a->name, .budget = a->peak, .peak = a->peak,
		.step_sec = a->step_sec, .recompute_sec = a->recompute_sec,
		.base_sec = a->step_sec - a->recompute_sec,
		.updates_in_backward = p->planned.updates_in_backward };
}

static struct pareto_front *
pareto_front_new(const Pass *p, const struct remat *r)
{
	struct pareto_front *f = arena_alloc(p->keep, sizeof *f);

	/* and the second variant's presets */
	f->point = arena_array(p->keep, VARIANTS * (GRID_MAX + BELOW) + PRESETS,
	                       sizeof *f->point);
	f->grid = arena_array(p->keep, GRID_MAX, sizeof *f->grid);
	f->preset = arena_array(p->keep, PRESETS, sizeof *f->preset);
	f->whole = p->planned.baseline_peak;
	f->base_sec = r->base_sec;
	return f;
}

static int
by_amount(const void *p, const void *q)
{
	const int64_t *a = p, *b = q;

	return (*a > *b) - (*a < *b);
}

/* The arenas to plan for: evenly from the least to keep-everything; for later
 * variants those of the first one's budgets, and evenly what lies below. */
static size_t
list_budgets(const struct pareto_front *f, const struct remat *r, int64_t least,
             int64_t top, int64_t *arena)
{
	int64_t low = f->ngrid ? f->grid[0] - r->resident : top;
	int64_t step = (low - least) / GRID;
	size_t n = 0;

	for (int i = 0; i < f->ngrid; i++)
		if (f->grid[i] - r->resident >= least)
			arena[n++] = f->grid[i] - r->resident;
	for (int i = 0; i < (step > 0 ? GRID : least < low); i++)
		arena[n++] = least + step * i;
	arena[n++] = top;
	return n;
}

/* Plans for less memory than any without offload. */
static void
add_plans_below(Pass *p, const struct plan_source *s, int64_t least)
{
	const struct pareto_front *f = p->planned.pareto_front;
	int64_t before = INT64_MAX;

	for (int i = BELOW - 1;
	     i > 0 && f->n > 0 && f->point[0].budget < before; i--) {
		before = f->point[0].budget;
		add_plan(p, s, p->planned.updates_in_backward,
		         least / BELOW * i, true);
	}
}

/* Ask the first variant for the budgets of this variant's n presets. */
static void
query_first_variant(Pass *p, int n)
{
	struct plan_source *first = &p->planned.pareto_front->first;
	int64_t budget[PRESETS];

	if (!first->own)
		return;
	for (int i = 0; i < n; i++)
		budget[i] = p->planned.alternative[i].peak;
	qsort(budget, (size_t)n, sizeof *budget, by_amount);
	for (int i = 0; i < n; i++)
		add_plan(p, first, false, budget[i] - first->w->r->resident,
		         false);
	graph_free(first->own);
	first->own = NULL;
}

static void
keep_budgets(struct pareto_front *f, const struct remat *r,
             const int64_t *arena, size_t n)
{
	while (f->ngrid < (int)n) {
		f->grid[f->ngrid] = r->resident + arena[f->ngrid];
		f->ngrid++;
	}
}

/* Presets whose peaks are budgets of the curve: not with states in host memory,
 * which no preset stands for. */
static int
count_presets(const Pass *p)
{
	/* the last alternative is the choice itself; refused: none */
	int n = p->planned.nalternative - 1;

	if (p->variant.offload_states || n < 0)
		return 0;
	return n < PRESETS ? n : PRESETS;
}

void
pareto_front_add(Pass *p, struct plan_source *s)
{
	const struct remat *r = s->w->r;
	int64_t least = selector_least(s->c), arena[GRID_MAX];
	int64_t top = p->planned.baseline_peak - r->resident;
	int n = count_presets(p);
	struct pareto_front *f;
	size_t narena;

	if (!p->planned.pareto_front)
		p->planned.pareto_front = pareto_front_new(p, r);
	f = p->planned.pareto_front;
	narena = list_budgets(f, r, least, top, arena);
	for (int i = 0; i < n; i++) {
		arena[narena++] = p->planned.alternative[i].peak - r->resident;
		add_preset(p, i);
	}
	if (n > f->npreset)
		f->npreset = n;
	qsort(arena, narena, sizeof *arena, by_amount);
	if (f->ngrid == 0)
		keep_budgets(f, r, arena, narena);
	for (size_t i = 0; i < narena && !watch_off(p->watch); i++) {
		bool offload = i % OFFLOAD_EVERY == 0;

		if (offload || !p->variant.offload_states)
			add_plan(p, s, p->planned.updates_in_backward, arena[i],
			         offload);
	}
	if (offload_takes_values(p))
		add_plans_below(p, s, least);
	query_first_variant(p, n);
	if (s->own) {
		f->first = *s;
		s->own = NULL;
	}
}

double
pareto_overhead(const struct pareto_point *q, double sec)
{
	return q->base_sec > 0 ? (sec - q->base_sec) / q->base_sec : 0;
}

/* ---- as text ---- */

static int
by_budget(const void *x, const void *y)
{
	const struct pareto_point *const *a = x, *const *b = y;

	if ((*a)->budget != (*b)->budget)
		return (*a)->budget > (*b)->budget ? -1 : 1;
	if (!(*a)->name != !(*b)->name)
		return (*a)->name ? 1 : -1;
	return ((*a)->step_sec > (*b)->step_sec)
		- ((*a)->step_sec < (*b)->step_sec);
}

static double
percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void
print_point(const struct pareto_point *q, int64_t whole, FILE *out)
{
	char sent[24];

	fprintf(out, "%16" PRId64 "  %5.1f  %10.3f  %8.2f", q->budget,
	        percent((double)q->budget, (double)whole), 1e3 * q->step_sec,
	        100 * pareto_overhead(q, q->step_sec));
	if (q->name) {
		fprintf(out, "  %7s  --recompute %s\n", "", q->name);
		return;
	}
	fprintf(out, "  %7.2f  %s%s",
	        100 * pareto_overhead(q, q->bound_sec),
	        q->bound_class,
	        q->updates_in_backward ? ", updates in backward" : "");
	if (q->sent > 0)
		fprintf(out, ", offloads %s",
		        number_bytes(sent, (double)q->sent));
	fputc('\n', out);
}

void
pareto_front_print(const Pass *p, FILE *out)
{
	const struct pareto_front *f = p->planned.pareto_front;
	size_t n = 0, total = (size_t)(f->n + f->npreset);
	Arena *arena = arena_new();
	const struct pareto_point **row = arena_array(arena, total + 1,
	                                              sizeof *row);

	for (int i = 0; i < f->n; i++)
		row[n++] = &f->point[i];
	for (int i = 0; i < f->npreset; i++)
		row[n++] = &f->preset[i];
	qsort(row, n, sizeof *row, by_budget);
	fputs("          budget  share        step  overhead    bound\n"
	      "               B      %          ms         %        %\n",
	      out);
	for (size_t i = 0; i < n; i++)
		print_point(row[i], f->whole, out);
	arena_free(arena);
}

/* ---- as JSON ---- */

static void
write_point(struct json_out *j, const struct pareto_point *q)
{
	json_open(j, NULL, '{', JSON_SPACED);
	if (q->name)
		json_text(j, "name", q->name);
	json_int(j, "budget_bytes", q->budget);
	json_int(j, "peak_bytes", q->peak);
	json_real(j, "step_seconds", 17, q->step_sec);
	json_real(j, "recompute_seconds", 17, q->recompute_sec);
	json_real(j, "overhead", 17, pareto_overhead(q, q->step_sec));
	if (q->sent > 0)
		json_int(j, "offloaded_bytes", q->sent);
	if (!q->name) {
		json_real(j, "bound_seconds", 17, q->bound_sec);
		json_text(j, "bound_class", q->bound_class);
	}
	json_bool(j, "update_in_backward", q->updates_in_backward);
	json_close(j);
}

static void
write_points(struct json_out *j, const char *key, const struct pareto_point *q,
             int n)
{
	json_open(j, key, '[', JSON_LINES);
	for (int i = 0; i < n; i++)
		write_point(j, &q[i]);
	json_close(j);
}

void
pareto_front_write_json(struct json_out *j, const struct pareto_front *f)
{
	write_points(j, "curve", f->point, f->n);
	write_points(j, "presets", f->preset, f->npreset);
}
