/* What a budget gets, beside other budgets. */
#include "tests/plan/plan_test.h"

#include <malloc.h>
#include <math.h>

/* A random graph, what of it the user wants recomputed, for how many budgets
 * and with which gap. */
struct asked {
	uint64_t seed;
	int nodes;
	uint64_t again;                 /* one of so many candidates; 0: none */
	int budgets;
	double gap;                     /* in % of a step */
};

static struct plan_selector *
open_selector(struct problem *p, const struct asked *a)
{
	struct options *opt;
	uint64_t seed = a->seed;

	open_problem(p, gen_random(a->seed, a->nodes));
	for (int32_t s = 0; s < p->r->nstore && a->again; s++)
		if (p->r->store[s].candidate
		    && gen_next(&seed) % a->again == 0)
			p->constraint[s] = 'r';
	remat_keep_all(p->r, p->constraint, p->drop);
	p->top = schedule_set(p->w, p->drop).live;
	opt = arena_alloc(p->arena, sizeof *opt);
	opt->gap_pct = a->gap;
	return selector_new(p->r, p->constraint, opt);
}

/* ---- a selector for each budget ---- */

enum { BUDGETS = 12 };

/* Seconds by budget, rising; INFINITY: refused. */
struct answers {
	double sec[BUDGETS];
};

/* Of the upper quarter, which is where all budgets have plans. */
static int64_t
budget_of(int64_t top, int k)
{
	return top - top * (BUDGETS - 1 - k) / (BUDGETS * 4);
}

static double
seconds_of(struct plan_selector *c, int64_t arena)
{
	const struct known_plan *f = selector_best(c, arena);

	return f ? f->sec : INFINITY;
}

static void
ask_alone(const struct asked *a, struct answers *x)
{
	for (int k = 0; k < a->budgets; k++) {
		struct problem p;
		struct plan_selector *c = open_selector(&p, a);

		x->sec[k] = seconds_of(c, budget_of(p.top, k));
		close_problem(&p);
	}
}

static void
ask_together(const struct asked *a, bool upwards, struct answers *x)
{
	struct problem p;
	struct plan_selector *c = open_selector(&p, a);

	for (int i = 0; i < a->budgets; i++) {
		int k = upwards ? i : a->budgets - 1 - i;

		x->sec[k] = seconds_of(c, budget_of(p.top, k));
	}
	close_problem(&p);
}

/* More memory is never slower, and what was asked before changes nothing. */
static void
budgets_stand_alone(void **state)
{
	static const struct asked asked[] = {
		{ 10, 850, 0, 3, 0.1 }, { 7, 200, 0, 3, 0.1 },
		{ 3, 60, 0, 5, 0.1 }, { 5, 60, 5, 5, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		const struct asked *a = &asked[i];
		size_t all = (size_t)a->budgets * sizeof(double);
		struct answers alone, up, down;

		ask_alone(a, &alone);
		ask_together(a, true, &up);
		ask_together(a, false, &down);
		assert_true(isfinite(alone.sec[0]));
		for (int k = 1; k < a->budgets; k++)
			assert_true(alone.sec[k] <= alone.sec[k - 1]);
		assert_memory_equal(alone.sec, up.sec, all);
		assert_memory_equal(alone.sec, down.sec, all);
	}
}

/* ---- budgets beyond what anything needs ---- */

/* times 0: all that a number holds. */
static double
seconds_within(const struct asked *a, int64_t times, int64_t parts)
{
	struct problem p;
	struct plan_selector *c = open_selector(&p, a);
	double sec = seconds_of(c, times ? p.top * times / parts + times
	                                 : INT64_MAX / 2);

	close_problem(&p);
	return sec;
}

/* A budget of many times what all takes is no worse than twice that. */
static void
huge_budgets(void **state)
{
	/* of these ranges know plans that nobody else does */
	static const struct asked asked[] = {
		{ 10, 26, 3, 1, 0 }, { 14, 30, 3, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		double twice = seconds_within(&asked[i], 2, 1);

		assert_true(isfinite(twice));
		assert_true(seconds_within(&asked[i], ((int64_t)1 << 31) + 9,
		                           96) <= twice);
		assert_true(seconds_within(&asked[i], 0, 1) <= twice);
	}
}

/* ---- memory of the planner itself ---- */

static size_t
allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What is worked out on the way to a plan goes when it has been found: a pool
 * of a thousand plans for each range would not fit. */
static void
ranges_leave_little(void **state)
{
	static const struct asked asked = { 7, 31, 0, 1, 0 };
	struct problem p;
	struct plan_selector *c = open_selector(&p, &asked);
	int64_t least = selector_least(c);
	size_t before;

	(void)state;
	selector_best(c, least);
	before = allocated();
	for (int k = 1; k <= 24; k++)
		selector_best(c, least + least * k / 24);
	assert_true(allocated() - before < 24 * 32768);
	close_problem(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets_stand_alone),
		cmocka_unit_test(huge_budgets),
		cmocka_unit_test(ranges_leave_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
