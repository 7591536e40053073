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
 * cost    a 0-1 program in (nodes + links) x moments.  Work is limited; what
 *         is proven when it ends is the bound, at least the graph's own cost.
 *         A single moment gives nearly all that there is to gain.
 * refuses graphs of more than NODES_MAX nodes: the same
 */
#include "passes/dag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/ilp.h"

enum { NODES_MAX = 4096, MOMENTS_MAX = 12 };

/* Nodes times moments; pivots; nodes of the search times nodes. */
enum { SIZE = 1500, PIVOTS = 20000, NODES = 20000 };

/* Columns that are no variables. */
enum { ZERO = -1, ONE = -2 };

struct bound {
	const struct dag *g;
	int64_t budget;
	uint64_t *below;                /* by node: its descendants */
	size_t nword;
	double *least;                  /* by node: bound of its moment alone */
	int32_t *moment, nmoment;
	int *x, *y;                     /* moment or interval, then node */
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
	return s->least[w] > 0;
}

static void
add_moment(struct bound *s, int32_t w)
{
	int32_t j = s->nmoment++;

	for (; j > 0 && s->moment[j - 1] > w; j--)
		s->moment[j] = s->moment[j - 1];
	s->moment[j] = w;
}

/* The one that asks for most, and others evenly among those that ask for
 * anything. */
static void
choose_moments(struct bound *s, int32_t most)
{
	int32_t n = s->g->n, top = 0, lo = n, hi = -1;
	struct item *item = arena_array(s->arena, (size_t)n + 1,
	                                sizeof *item);

	s->least = arena_array(s->arena, (size_t)n + 1, sizeof *s->least);
	for (int32_t w = 0; w < n; w++) {
		s->least[w] = knapsack(s, w, item);
		top = s->least[w] > s->least[top] ? w : top;
		if (s->least[w] > 0) {
			lo = w < lo ? w : lo;
			hi = w;
		}
	}
	s->moment = arena_array(s->arena, MOMENTS_MAX, sizeof *s->moment);
	if (hi < 0)
		return;
	add_moment(s, top);
	for (int32_t i = 0; i < most - 1 && s->nmoment < MOMENTS_MAX; i++) {
		int32_t want = lo + (int32_t)((int64_t)(hi - lo) * (2 * i + 1)
		                              / (2 * most - 2)), best = -1;

		for (int32_t w = lo; w <= hi; w++)
			if (fits_in(s, w) && (best < 0 || abs(w - want)
			    < abs(best - want)))
				best = w;
		if (best >= 0)
			add_moment(s, best);
	}
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

static double
solve(struct bound *s)
{
	struct ilp_limit limit = { .pivots = PIVOTS,
	                           .nodes = NODES / s->g->n + 1 };
	size_t n = (size_t)s->g->n + 1, m = (size_t)s->nmoment;
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
	if (a.status == ILP_FAILED || a.status == ILP_INFEASIBLE)
		return 0;
	return sure + a.bound;
}

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

double
dag_bound(const struct dag *g, int64_t budget)
{
	struct bound s = { .g = g, .budget = budget, .arena = arena_new() };
	int32_t most = SIZE / g->n;
	double x = 0;

	if (g->n <= NODES_MAX && budget < g->peak) {
		find_below(&s);
		most = most < MOMENTS_MAX ? most : MOMENTS_MAX;
		choose_moments(&s, most > 1 ? most : 1);
		if (s.nmoment)
			x = round_up(g, solve(&s));
	}
	arena_free(s.arena);
	return x > g->cost ? x : g->cost;
}
