/* Chains of equal layers: memory and time of plans that repeat nodes more than
 * once, as a table.
 *
 *     bench_deep [LAYERS...]
 *
 * A layer is a product and an activation function, both of which leave a
 * value of `unit` bytes; weights are updated in backward.
 */
#include "passes/recursive/recursive.h"
#include "tests/plan/gen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WIDTH = 4096, UNIT = WIDTH * 4 };

static void
show(const struct remat *r, const struct known_plan *f)
{
	if (f)
		printf(" %.1f (+%.0f %%) |", (double)f->placed / UNIT,
		       100 * f->sec / r->base_sec);
	else
		printf(" |");
}

static void
measure(int layers)
{
	Graph *g = gen_chain(layers, WIDTH);
	Arena *a = arena_new();
	struct remat *r = remat_new(g, a);
	uint8_t *constraint = arena_array(a, (size_t)r->nstore + 1, 1);
	uint8_t *drop = arena_array(a, (size_t)r->nstore + 1, 1);
	double start = (double)clock() / CLOCKS_PER_SEC;
	int64_t all, least;
	struct plan_pool *d;

	remat_keep_all(r, constraint, drop);
	all = schedule_set(schedule_new(r, a), drop).live;
	d = recursive_new(r, constraint, all, 0);
	least = pool_least(d);
	printf("| %d | %.0f |", layers, (double)all / UNIT);
	show(r, pool_best(d, least, NULL));
	show(r, pool_best(d, (int64_t)((3 + log2(layers)) * UNIT), NULL));
	show(r, pool_best(d, (int64_t)((3 + 2 * log2(layers)) * UNIT), NULL));
	show(r, pool_best(d, (int64_t)((3 + 2 * sqrt(layers)) * UNIT), NULL));
	printf(" %.2f |\n", (double)clock() / CLOCKS_PER_SEC - start);
	arena_free(a);
	graph_free(g);
}

int
main(int argc, char **argv)
{
	printf("| L | all | least | 3 + log2 L | 3 + 2 log2 L | 3 + 2 sqrt L"
	       " | s |\n|---|---|---|---|---|---|---|\n");
	for (int i = 1; i < argc; i++)
		measure(atoi(argv[i]));
	for (int l = 4; argc == 1 && l <= 1024; l *= 2)
		measure(l);
	return 0;
}
