/* Bounds of bare graphs: never above the optimum of a search over states. */
#include "tests/plan/plan_test.h"
#include "passes/dag.h"

enum { GRAPHS = 150, NODES = 11 };

static uint32_t
draw(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void
make(struct dag *g, uint32_t seed, Arena *a)
{
	int32_t link[NODES * NODES], nlink = 0;
	uint32_t rnd = seed;

	*g = (struct dag){ .n = 4 + (int32_t)draw(&rnd, NODES - 3) };
	g->ram = arena_array(a, NODES, sizeof *g->ram);
	g->cpu = arena_array(a, NODES, sizeof *g->cpu);
	g->backward = arena_array(a, NODES, sizeof *g->backward);
	g->name = arena_array(a, NODES, sizeof *g->name);
	for (int32_t i = 0; i < g->n; i++) {
		g->ram[i] = draw(&rnd, 8);
		g->cpu[i] = draw(&rnd, 10);
		g->name[i] = "node";
	}
	/* every second one looks like a step: i is read by its mirror */
	for (int32_t i = 0; i < g->n; i++)
		for (int32_t k = i + 1; k < g->n; k++)
			if (draw(&rnd, 10) < 3
			    || (seed % 2 && i + k == g->n - 1)) {
				link[2 * nlink] = i;
				link[2 * nlink++ + 1] = k;
			}
	dag_finish(g, link, nlink, a);
}

static void
bounds(void **state)
{
	int32_t more = 0, equal = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= GRAPHS; seed++) {
		Arena *a = arena_new();
		struct dag g;

		make(&g, seed, a);
		for (int64_t b = g.working_set; b < g.peak; b++) {
			struct dag_options o = { .budget = b };
			struct dag_answer r = dag_plan(&g, &o, a);
			struct dag_seq start;
			double bound = dag_bound(&g, b, &start, a);

			if (!r.found)
				continue;
			assert_true(bound <= r.seq.cost);
			more += bound > g.cost;
			equal += bound > g.cost && bound == r.seq.cost;
			if (start.len == 0 || start.peak > b)
				continue;
			assert_true(dag_measure(&g, &start, a));
			assert_true(start.cost >= r.seq.cost);
			assert_true(start.peak <= b);
		}
		arena_free(a);
	}
	assert_true(more > 20);
	assert_true(equal > 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
