/* The door to GLPK: optima, bounds, infeasibility, limits. */
#include "tests/plan/plan_test.h"
#include "passes/ilp/ilp.h"

#include <math.h>

static void
relaxation(void **state)
{
	Arena *a = arena_new();
	Ilp *p = ilp_new(a);
	int x = ilp_col(p, 0, 4, -3, false), y = ilp_col(p, 0, 4, -2, false);
	struct ilp_limit limit = { 0 };
	struct ilp_answer r;

	(void)state;
	ilp_row(p, -INFINITY, 5, 2, (int[]){ x, y }, (double[]){ 1, 1 });
	r = ilp_relax(p, &limit, a);
	assert_int_equal(r.status, ILP_OPTIMAL);
	assert_true(fabs(r.objective + 14) < 1e-6);
	assert_true(fabs(r.x[x] - 4) < 1e-6 && fabs(r.x[y] - 1) < 1e-6);
	/* one more row, from the same basis */
	ilp_row(p, -INFINITY, 2, 1, (int[]){ x }, (double[]){ 1 });
	r = ilp_relax(p, &limit, a);
	assert_true(fabs(r.objective + 12) < 1e-6);
	ilp_row(p, 9, INFINITY, 2, (int[]){ x, y }, (double[]){ 1, 1 });
	assert_int_equal(ilp_relax(p, &limit, a).status, ILP_INFEASIBLE);
	ilp_free(p);
	arena_free(a);
}

/* Random knapsacks against all subsets. */
static void
knapsack(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int k = 0; k < 100; k++) {
		enum { N = 10 };
		Arena *a = arena_new();
		Ilp *p = ilp_new(a);
		double value[N], weight[N], start[N] = { 0 }, best = 0;
		int col[N];
		struct ilp_limit limit = { .start = k % 2 ? start : NULL };
		struct ilp_answer r;

		for (int i = 0; i < N; i++) {
			value[i] = (double)(1 + gen_next(&seed) % 50);
			weight[i] = (double)(1 + gen_next(&seed) % 50);
			col[i] = ilp_col(p, 0, 1, -value[i], true);
		}
		ilp_row(p, -INFINITY, 100, N, col, weight);
		for (uint32_t set = 0; set < 1u << N; set++) {
			double v = 0, w = 0;

			for (int i = 0; i < N; i++)
				if (set >> i & 1) {
					v += value[i];
					w += weight[i];
				}
			if (w <= 100 && v > best)
				best = v;
		}
		r = ilp_solve(p, &limit, a);
		assert_int_equal(r.status, ILP_OPTIMAL);
		assert_true(fabs(r.objective + best) < 1e-6);
		assert_true(r.bound <= r.objective + 1e-6);
		ilp_free(p);
		arena_free(a);
	}
}

/* A node limit gives a bound below every answer. */
static void
limited(void **state)
{
	enum { N = 30 };
	uint64_t seed = 11;
	Arena *a = arena_new();
	Ilp *p = ilp_new(a);
	double weight[N], start[N] = { 0 };
	int col[N];
	struct ilp_limit limit = { .nodes = 3, .start = start };
	struct ilp_answer r;

	(void)state;
	for (int i = 0; i < N; i++) {
		weight[i] = (double)(1000 + gen_next(&seed) % 1000);
		col[i] = ilp_col(p, 0, 1, -weight[i] - 0.5, true);
	}
	ilp_row(p, -INFINITY, 20001.5, N, col, weight);
	r = ilp_solve(p, &limit, a);
	assert_true(r.status == ILP_FEASIBLE || r.status == ILP_OPTIMAL);
	assert_non_null(r.x);
	assert_true(r.bound <= r.objective + 1e-6);
	ilp_free(p);
	arena_free(a);
}

static void
no_integer_point(void **state)
{
	Arena *a = arena_new();
	Ilp *p = ilp_new(a);
	int x = ilp_col(p, 0, 1, 1, true);
	struct ilp_limit limit = { 0 };

	(void)state;
	ilp_row(p, 0.4, 0.6, 1, &x, (double[]){ 1 });
	assert_int_equal(ilp_relax(p, &limit, a).status, ILP_OPTIMAL);
	assert_int_equal(ilp_solve(p, &limit, a).status, ILP_INFEASIBLE);
	ilp_free(p);
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relaxation),
		cmocka_unit_test(knapsack),
		cmocka_unit_test(limited),
		cmocka_unit_test(no_integer_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
