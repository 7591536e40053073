/* A lower bound on the cost of every plan of a bare graph within a budget.
 *
 * what    holds for any order and any number of evaluations
 * method  A moment is the step in which some node w runs first.  Then every
 *         ancestor of w has run and no descendant has, so a value that some
 *         descendant needs is in memory, or is made again later, from what is
 *         in memory or made again in its turn.  Moments m1 < m2 < ..., each
 *         an ancestor of the next, cut a plan into intervals.  Per value and
 *         moment: is it in memory; per node and interval: does it run.  Each
 *         plan gives a point of the 0-1 program
 *             every node runs in some interval
 *             in memory now <= in memory before, or ran between
 *             ran between   <= each input was in memory, or ran between
 *             bytes in memory at a moment <= budget
 *         whose cost is not above the plan's; so its minimum is a bound.
 *         With one moment it is a knapsack over the values that cross it.
 *         The first moment is the one that asks for most alone.  The best
 *         point tells what to hold at the moments, which makes a plan in the
 *         order of the nodes; where that is fullest, if it does not fit, is
 *         the next moment.  A plan that fits often costs what the program
 *         does, which proves both.
 * cost    0-1 programs in (nodes + links) x moments.  Work is limited; what
 *         is proven when it ends is the bound, at least the graph's own cost.
 * refuses graphs of more than NODES_MAX nodes: the same
 */
#include "passes/bare/dag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/solve/ilp.h"

enum { NODES_MAX = 4096, MOMENTS_MAX = 12 };

/* Nodes times moments; pivots; nodes of the search times those. */
enum { SIZE = 1500, PIVOTS = 20000, NODES = 40000 };

/* Columns that are no variables. */
enum { ZERO = -1, ONE = -2 };

struct bound {
	const struct dag *g;
	int64_t budget;
	struct watch *watch;              /* when to leave off */
	uint64_t *below;                /* by node: its descendants */
	size_t nword;
	int32_t moment[MOMENTS_MAX], nmoment;
	int *x, *y;                     /* moment or interval, then node */
	struct dag_seq plan;            /* of the last point */
	struct dag_seq start;           /* cheapest that fits, or the last */
	Ilp *lp;
	Arena *arena;
};

static bool
is_below(const struct bound *s, int32_t v, int32_t w)
{
	return s->below[(size_t)v * s->nword + (size_t)w / 64] >> w % 64 & 1;
}

static void
find_below(struct bound *s)
{
	const struct dag *g = s->g;

	s->nword = (size_t)g->n / 64 + 1;
	s->below = arena_array(s->arena, (size_t)g->n * s->nword,
	                       sizeof *s->below);
	for (int32_t v = g->n; v-- > 0;) {
		uint64_t *own = s->below + (size_t)v * s->nword;

		for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++) {
			int32_t w = g->succ[k];
			const uint64_t *his = s->below + (size_t)w * s->nword;

			for (size_t i = (size_t)w / 64; i < s->nword; i++)
				own[i] |= his[i];
			own[w / 64] |= UINT64_C(1) << w % 64;
		}
	}
}

/* ---- choosing moments ---- */

struct item {
	int64_t ram;
	double cpu;
};

static int
by_worth(const void *p, const void *q)
{
	const struct item *a = p, *b = q;
	double x = a->cpu * (double)b->ram, y = b->cpu * (double)a->ram;

	return (x < y) - (x > y);
}

static bool
crosses(const struct bound *s, int32_t v, int32_t w)
{
	const struct dag *g = s->g;

	for (int32_t k = g->succ_at[v]; k < g->succ_at[v + 1]; k++)
		if (is_below(s, w, g->succ[k]))
			return true;
	return false;
}

/* What must be paid again at least for the moment of w: values that cross it,
 * the dearest for their bytes kept first. */
static double
knapsack(const struct bound *s, int32_t w, struct item *item)
{
	const struct dag *g = s->g;
	int64_t room = s->budget - g->ram[w], bytes = 0;
	double sum = 0;
	int32_t n = 0;

	for (int32_t k = g->pred_at[w]; k < g->pred_at[w + 1]; k++)
		room -= g->ram[g->pred[k]];
	for (int32_t v = 0, k = g->pred_at[w]; v < w; v++) {
		if (k < g->pred_at[w + 1] && g->pred[k] == v) {
			k++;
			continue;
		}
		if (!is_below(s, v, w) || !crosses(s, v, w))
			continue;
		item[n++] = (struct item){ g->ram[v], g->cpu[v] };
		bytes += g->ram[v];
	}
	if (bytes <= room)
		return 0;
	qsort(item, (size_t)n, sizeof *item, by_worth);
	for (int32_t i = 0; i < n; i++) {
		if (item[i].ram <= room) {
			room -= item[i].ram;
			continue;
		}
		sum += item[i].cpu * (1 - (double)(room > 0 ? room : 0)
		                      / (double)item[i].ram);
		room = 0;
	}
	return sum;
}

static bool
fits_in(const struct bound *s, int32_t w)
{
	for (int32_t j = 0; j < s->nmoment; j++) {
		int32_t m = s->moment[j];

		if (m == w || !(m < w ? is_below(s, m, w) : is_below(s, w, m)))
			return false;
	}
	return true;
}

static void
add_moment(struct bound *s, int32_t w)
{
	int32_t j = s->nmoment++;

	for (; j > 0 && s->moment[j - 1] > w; j--)
		s->moment[j] = s->moment[j - 1];
	s->moment[j] = w;
}

/* The one that asks for most alone, if any asks for something. */
static void
first_moment(struct bound *s)
{
	int32_t n = s->g->n, top = 0;
	struct item *item = arena_array(s->arena, (size_t)n + 1,
	                                sizeof *item);
	double most = 0;

	for (int32_t w = 0; w < n; w++) {
		double least = knapsack(s, w, item);

		if (least > most) {
			most = least;
			top = w;
		}
	}
	if (most > 0)
		add_moment(s, top);
}

/* ---- the program ---- */

/* In memory at moment j. */
static int
held(struct bound *s, int32_t j, int32_t v)
{
	const struct dag *g = s->g;
	int32_t w = s->moment[j];

	if (v == w)
		return ONE;
	if (is_below(s, w, v))
		return ZERO;
	for (int32_t k = g->pred_at[w]; k < g->pred_at[w + 1]; k++)
		if (g->pred[k] == v)
			return ONE;
	return ilp_col(s->lp, 0, 1, 0, true);
}

/* Runs after moment j - 1 and not after moment j. */
static int
runs(struct bound *s, int32_t j, int32_t v)
{
	int32_t before = j > 0 ? s->moment[j - 1] : -1;
	int32_t at = j < s->nmoment ? s->moment[j] : -1;

	if (at >= 0 && is_below(s, at, v))
		return ZERO;
	if (v == at || ((before < 0 || is_below(s, before, v))
	                && (at < 0 || is_below(s, v, at))))
		return ONE;
	return ilp_col(s->lp, 0, 1, s->g->cpu[v], true);
}

/* a <= b + c, where they are variables. */
static void
at_most(struct bound *s, int a, int b, int c)
{
	int col[3], n = 0;
	double coef[3], free = 0;

	if (a == ZERO || b == ONE || c == ONE)
		return;
	if (a == ONE) {
		free = 1;
	} else {
		col[n] = a;
		coef[n++] = 1;
	}
	if (b >= 0) {
		col[n] = b;
		coef[n++] = -1;
	}
	if (c >= 0) {
		col[n] = c;
		coef[n++] = -1;
	}
	ilp_row(s->lp, -INFINITY, -free, n, col, coef);
}

static void
add_bytes(struct bound *s, int32_t j)
{
	const struct dag *g = s->g;
	size_t n = (size_t)g->n + 1;
	int *col = arena_array(s->arena, n, sizeof *col), count = 0;
	double *coef = arena_array(s->arena, n, sizeof *coef);
	double unit = (double)g->peak, room = (double)s->budget;

	for (int32_t v = 0; v < g->n; v++) {
		int x = s->x[(size_t)j * n + (size_t)v];

		if (x == ONE) {
			room -= (double)g->ram[v];
		} else if (x >= 0 && g->ram[v] > 0) {
			col[count] = x;
			coef[count++] = (double)g->ram[v] / unit;
		}
	}
	ilp_row(s->lp, -INFINITY, room / unit, count, col, coef);
}

/* Cost of what surely runs, and all the program's rows. */
static double
write_rows(struct bound *s)
{
	const struct dag *g = s->g;
	size_t n = (size_t)g->n + 1;
	double sure = 0;

	for (int32_t v = 0; v < g->n; v++) {
		int col[MOMENTS_MAX + 1], count = 0;
		double coef[MOMENTS_MAX + 1];
		bool ran = false;

		for (int32_t j = 0; j <= s->nmoment; j++) {
			int y = s->y[(size_t)j * n + (size_t)v];

			sure += y == ONE ? g->cpu[v] : 0;
			ran |= y == ONE;
			if (y >= 0) {
				col[count] = y;
				coef[count++] = 1;
			}
		}
		if (!ran)
			ilp_row(s->lp, 1, INFINITY, count, col, coef);
	}
	for (int32_t j = 0; j <= s->nmoment; j++) {
		const int *y = s->y + (size_t)j * n;
		const int *x = j ? s->x + (size_t)(j - 1) * n : NULL;

		for (int32_t v = 0; v < g->n; v++) {
			if (j < s->nmoment)
				at_most(s, s->x[(size_t)j * n + (size_t)v],
				        x ? x[v] : ZERO, y[v]);
			for (int32_t k = g->pred_at[v]; k < g->pred_at[v + 1];
			     k++)
				at_most(s, y[v], x ? x[g->pred[k]] : ZERO,
				        y[g->pred[k]]);
		}
		if (j < s->nmoment)
			add_bytes(s, j);
	}
	return sure;
}

/* ---- a plan from a point ---- */

/* Run v after what it misses. */
static void
run(const struct dag *g, int32_t v, bool *alive, int32_t *stack,
    struct dag_seq *seq)
{
	int32_t top = 0;

	stack[top++] = v;
	while (top > 0) {
		int32_t u = stack[top - 1], before = top;

		for (int32_t k = g->pred_at[u]; !alive[u]
		     && k < g->pred_at[u + 1]; k++)
			if (!alive[g->pred[k]])
				stack[top++] = g->pred[k];
		if (top > before)
			continue;
		top--;
		if (!alive[u])
			seq->node[seq->len++] = u;
		alive[u] = true;
	}
}

/* The order of the nodes; each moment lets go of what the point does not
 * hold. */
static void
follow(struct bound *s, const double *point)
{
	const struct dag *g = s->g;
	size_t n = (size_t)g->n + 1;
	Arena *scratch = arena_new();
	bool *alive = arena_array(scratch, n, sizeof *alive);
	int32_t *stack = arena_array(scratch, n + (size_t)g->pred_at[g->n],
	                             sizeof *stack);

	s->plan.len = 0;
	for (int32_t v = 0, j = 0; v < g->n; v++) {
		run(g, v, alive, stack, &s->plan);
		if (j >= s->nmoment || s->moment[j] != v)
			continue;
		for (int32_t u = 0; u < v; u++) {
			int x = s->x[(size_t)j * n + (size_t)u];

			alive[u] &= x == ONE || (x >= 0 && point[x] > 0.5);
		}
		j++;
	}
	dag_measure(g, &s->plan, scratch);
	if (s->start.len == 0 || (s->start.peak > s->budget)
	    || (s->plan.peak <= s->budget && s->plan.cost < s->start.cost)) {
		int32_t *node = s->start.node;

		memcpy(node, s->plan.node,
		       (size_t)s->plan.len * sizeof *node);
		s->start = s->plan;
		s->start.node = node;
	}
	arena_free(scratch);
}

/* Where the plan is fullest: the first node from there on that runs for the
 * first time and goes with the other moments; or -1. */
static int32_t
fullest(const struct bound *s)
{
	Arena *scratch = arena_new();
	bool *met = arena_array(scratch, (size_t)s->g->n + 1, sizeof *met);
	int32_t step, w = -1;

	dag_alive(s->g, &s->plan, 0, NULL, &step, scratch);
	for (int32_t t = 0; t < s->plan.len && w < 0; t++) {
		int32_t v = s->plan.node[t];

		if (t >= step && !met[v] && fits_in(s, v))
			w = v;
		met[v] = true;
	}
	arena_free(scratch);
	return w;
}

/* ---- all of it ---- */

/* Less what the solver's tolerance may have added; whole costs make whole
 * sums. */
static double
round_up(const struct dag *g, double x)
{
	bool whole = true;

	for (int32_t v = 0; v < g->n; v++)
		whole &= g->cpu[v] == floor(g->cpu[v]);
	x *= 1 - 1e-7;
	return whole && x < 0x1p52 ? ceil(x) : x;
}

/* Bound of the present moments, and a plan. */
static enum ilp_status
solve(struct bound *s, double *bound)
{
	size_t n = (size_t)s->g->n + 1, m = (size_t)s->nmoment;
	struct ilp_limit limit = { .pivots = PIVOTS,
	                           .nodes = NODES / (int64_t)(n * m) + 1,
	                           .watch = s->watch };
	struct ilp_answer a;
	double sure;

	s->lp = ilp_new(s->arena);
	s->x = arena_array(s->arena, m * n + 1, sizeof *s->x);
	s->y = arena_array(s->arena, (m + 1) * n, sizeof *s->y);
	for (size_t j = 0; j <= m; j++)
		for (int32_t v = 0; v < s->g->n; v++) {
			if (j < m)
				s->x[j * n + (size_t)v]
					= held(s, (int32_t)j, v);
			s->y[j * n + (size_t)v] = runs(s, (int32_t)j, v);
		}
	sure = write_rows(s);
	a = ilp_solve(s->lp, &limit, s->arena);
	ilp_free(s->lp);
	if (a.x)
		follow(s, a.x);
	if (a.status != ILP_FAILED && a.status != ILP_INFEASIBLE)
		*bound = fmax(*bound, round_up(s->g, sure + a.bound));
	return a.status;
}

double
dag_bound(const struct dag *g, int64_t budget, struct dag_seq *start,
          struct watch *watch, Arena *arena)
{
	struct bound s = { .g = g, .budget = budget, .watch = watch,
	                   .arena = arena_new() };
	int32_t most = SIZE / g->n < MOMENTS_MAX ? SIZE / g->n : MOMENTS_MAX;
	double bound = g->cost;
	size_t room = (size_t)(MOMENTS_MAX + 1) * (size_t)g->n;

	s.plan.node = arena_array(s.arena, room, sizeof *s.plan.node);
	s.start.node = arena_array(arena, room, sizeof *s.start.node);
	if (g->n <= NODES_MAX && budget < g->peak) {
		find_below(&s);
		first_moment(&s);
	}
	while (s.nmoment && !watch_over(watch)
	       && solve(&s, &bound) == ILP_OPTIMAL
	       && s.nmoment < most && s.plan.peak > budget) {
		int32_t w = fullest(&s);

		if (w < 0)
			break;
		add_moment(&s, w);
	}
	ilp_end();
	if (start)
		*start = s.start;
	arena_free(s.arena);
	return bound;
}
