/* Plans that repeat nodes more than once. */
#include "passes/chain.h"
#include "tests/plan/plan_test.h"

#include <math.h>
#include <string.h>
#include <time.h>

static double
cpu(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Least arena of a chain of so many equal layers. */
static int64_t
least_of_chain(int layers, int64_t width)
{
	Graph *g = gen_chain(layers, width);
	Arena *a = arena_new();
	struct remat *r = remat_new(g, a);
	uint8_t *must = arena_array(a, (size_t)r->nstore + 1, 1);
	uint8_t *drop = arena_array(a, (size_t)r->nstore + 1, 1);
	double t = cpu();
	struct deep *d;
	int64_t all, least;

	remat_keep_all(r, must, drop);
	all = remat_eval(r, drop).live;
	d = deep_new(r, must, all, 0);
	least = deep_least(d);
	printf("| %d | %lld | %lld |", layers, (long long)all,
	       (long long)least);
	for (int32_t i = 0; i < d->n; i++)
		if (d->plan[i].placed == least)
			printf(" %.1f |", 100 * d->plan[i].sec / r->base_sec);
	printf(" %.2f s, %d plans\n", cpu() - t, d->n);
	arena_free(a);
	graph_free(g);
	return least;
}

/* Memory of L equal layers grows like log L. */
static void
grows_like_log(void **state)
{
	enum { WIDTH = 4096 };
	int64_t bytes = WIDTH * 4, four = least_of_chain(4, WIDTH);

	(void)state;
	for (int k = 3; k <= 10; k++)
		assert_true(least_of_chain(1 << k, WIDTH)
		            <= four + (k - 2) * bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_like_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
