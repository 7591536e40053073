/* The Pareto front of step time against memory budget.
 *
 * what    for a grid of budgets from keep-everything down to the least, the
 *         plan that would be taken, its peak, time and bound; presets beside
 * method  One choice serves all points of the grid, so the search is done
 *         once.  Points are (budget, time), and those that another one beats
 *         in both are left out, which makes the curve monotone.  Where updates
 *         may run after backward or in it, both variants of the graph add
 *         points at the same budgets, those of all presets among them, and the
 *         later variant wins ties, as for a single budget.
 * cost    GRID choices and bounds
 */
#include "passes/planner/pareto_front.h"
#include "runtime/support/json_write.h"
#include "passes/account/account.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 40, PRESETS = 8, GRID_MAX = 2 * (GRID + PRESETS + 1) };

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

/* The plan for this arena.  The grid is walked upwards: what is no faster than
 * a smaller budget's needs no bound. */
static void
add_plan(const Pass *p, const struct remat *r, struct plan_selector *c,
         bool updates_in_backward, int64_t arena)
{
	const struct known_plan *f = selector_best(c, arena);
	double base = base_of(p->planned.pareto_front, r);
	struct recompute_bound bound;
	struct pareto_point q = { .updates_in_backward =
	                           updates_in_backward };

	if (!f)
		return;
	q.budget = r->resident + arena;
	q.peak = r->resident + f->placed;
	q.recompute_sec = f->sec;
	q.step_sec = base + f->sec;
	if (is_dominated_point(p->planned.pareto_front, &q))
		return;
	bound = selector_bound(c, arena, f);
	q.bound_sec = reported_bound(base + bound.sec, base, q.step_sec);
	q.bound_class = bound.class;
	insert_point(p->planned.pareto_front, q);
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
		.updates_in_backward = p->planned.updates_in_backward };
}

static struct pareto_front *
pareto_front_new(const Pass *p, const struct remat *r)
{
	struct pareto_front *f = arena_alloc(p->keep, sizeof *f);

	/* two forms of the graph, and the second one's presets */
	f->point = arena_array(p->keep, 2 * GRID_MAX + PRESETS,
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

/* The arenas to plan for: evenly from the least to keep-everything; for the
 * variant with updates in backward those of the other variant's budgets, and
 * evenly what lies below. */
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

/* Ask the variant with updates after backward for the budgets of this variant's
 * n presets. */
static void
query_after_backward(Pass *p, int n)
{
	struct pareto_front *f = p->planned.pareto_front;
	int64_t budget[PRESETS];

	if (!f->after_backward)
		return;
	if (n < 0)                      /* refused: no presets */
		n = 0;
	for (int i = 0; i < n; i++)
		budget[i] = p->planned.alternative[i].peak;
	qsort(budget, (size_t)n, sizeof *budget, by_amount);
	for (int i = 0; i < n; i++)
		add_plan(p, f->remat, f->choice, false,
		         budget[i] - f->remat->resident);
	graph_free(f->after_backward);
	f->after_backward = NULL;
}

void
pareto_front_add(Pass *p, const struct remat *r, struct plan_selector *c,
                 Graph *after_backward)
{
	int64_t least = selector_least(c), arena[GRID_MAX];
	int64_t top = p->planned.baseline_peak - r->resident;
	/* the last alternative is the choice itself */
	int n = p->planned.nalternative - 1 < PRESETS
		? p->planned.nalternative - 1
		: PRESETS;
	size_t narena;

	if (!p->planned.pareto_front)
		p->planned.pareto_front = pareto_front_new(p, r);
	narena = list_budgets(p->planned.pareto_front, r, least, top, arena);
	for (int i = 0; i < n; i++) {
		arena[narena++] = p->planned.alternative[i].peak - r->resident;
		add_preset(p, i);
	}
	if (n > p->planned.pareto_front->npreset)
		p->planned.pareto_front->npreset = n;
	qsort(arena, narena, sizeof *arena, by_amount);
	if (p->planned.pareto_front->ngrid == 0)
		while (p->planned.pareto_front->ngrid < (int)narena) {
			int at = p->planned.pareto_front->ngrid++;

			p->planned.pareto_front->grid[at] = r->resident
				+ arena[at];
		}
	for (size_t i = 0; i < narena && !watch_off(p->watch); i++)
		add_plan(p, r, c, p->planned.updates_in_backward, arena[i]);
	if (!after_backward) {
		query_after_backward(p, n);
		return;
	}
	p->planned.pareto_front->after_backward = after_backward;
	p->planned.pareto_front->remat = r;
	p->planned.pareto_front->choice = c;
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
	double base = q->step_sec - q->recompute_sec;

	fprintf(out, "%16" PRId64 "  %5.1f  %10.3f  %9.2f", q->budget,
	        percent((double)q->budget, (double)whole), 1e3 * q->step_sec,
	        percent(q->recompute_sec, base));
	if (q->name)
		fprintf(out, "  %7s  --recompute %s\n", "", q->name);
	else
		fprintf(out, "  %7.2f  %s%s\n",
		        percent(q->bound_sec - base, base), q->bound_class,
		        q->updates_in_backward ? ", updates in backward" : "");
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
	fputs("          budget  share        step  recompute    bound\n"
	      "               B      %          ms        + %      + %\n",
	      out);
	for (size_t i = 0; i < n; i++)
		print_point(row[i], f->whole, out);
	arena_free(arena);
}

/* ---- as JSON ---- */

static void
write_point(struct json_out *j, const struct pareto_point *q)
{
	double base = q->step_sec - q->recompute_sec;

	json_open(j, NULL, '{', JSON_SPACED);
	if (q->name)
		json_text(j, "name", q->name);
	json_int(j, "budget_bytes", q->budget);
	json_int(j, "peak_bytes", q->peak);
	json_real(j, "step_seconds", 17, q->step_sec);
	json_real(j, "recompute_seconds", 17, q->recompute_sec);
	json_real(j, "overhead", 17, base > 0 ? q->recompute_sec / base : 0);
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
