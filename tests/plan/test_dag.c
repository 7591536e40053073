/* Standalone graphs: bounds are never above the optimum of a search over
 * states; what a walk knows of its sequence is what the sequence says. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "tests/plan/plan_test.h"
#include "passes/standalone/dag_walk.h"

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
			struct dag_best best = { .g = &g, .arena = a,
				.problem = dag_problem(&g, NULL, a) };
			struct dag_seq start;
			double bound = dag_bound(&best, b, &start);

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

/* ---- families of small training graphs, against all states ---- */

enum { CHAIN, SKIP, BRANCH, UNET, FAMILIES };
enum { FORWARD = 7, STEP = 2 * FORWARD, COSTS = 1 << 14, SEEDS = 6 };

/* Forward, and backward in reverse order: the gradient of a node reads those of
 * its readers, what the node reads and, at times, what it made. */
static void
make_step(struct dag *g, int family, uint32_t rnd, Arena *a)
{
	bool reads[FORWARD][FORWARD] = { 0 };   /* by node: what */
	int32_t link[8 * STEP * STEP], n = 0;

	*g = (struct dag){ .n = STEP };
	g->ram = arena_array(a, STEP, sizeof *g->ram);
	g->cpu = arena_array(a, STEP, sizeof *g->cpu);
	g->backward = arena_array(a, STEP, sizeof *g->backward);
	g->name = arena_array(a, STEP, sizeof *g->name);
	for (int32_t i = 0; i < STEP; i++) {
		g->ram[i] = 1 + draw(&rnd, family == BRANCH ? 16 : 4);
		g->cpu[i] = draw(&rnd, 30);
		g->name[i] = "node";
		g->backward[i] = i >= FORWARD;
	}
	for (int32_t i = 1; i < FORWARD; i++) {
		int32_t near = i < 3 ? i : 3;

		reads[i][family == BRANCH ? i - 1 - (int32_t)draw(&rnd,
			(uint32_t)near) : i - 1] = true;
		if (family == SKIP && draw(&rnd, 2))
			reads[i][i - 1 - (int32_t)draw(&rnd, (uint32_t)near)]
				= true;
		if (family == UNET && FORWARD - 1 - i < i)
			reads[i][FORWARD - 1 - i] = true;
	}
	for (int32_t i = 0; i < FORWARD; i++) {
		int32_t grad = STEP - 1 - i;

		for (int32_t k = 0; k < FORWARD; k++) {
			int32_t pair[3][2] = { { k, i }, { k, grad },
				{ grad, STEP - 1 - k } };

			if (reads[i][k])
				memcpy(&link[2 * n], pair, sizeof pair);
			n += reads[i][k] ? 3 : 0;
		}
		if (i > 0) {            /* in this order */
			link[2 * n] = grad;
			link[2 * n++ + 1] = grad + 1;
		}
		if (i == FORWARD - 1 || draw(&rnd, 5) < 2) {
			link[2 * n] = i;
			link[2 * n++ + 1] = grad;
		}
	}
	dag_finish(g, link, n, a);
}

/* States by least cost, in lists by cost. */
struct brute {
	const struct dag *g;
	int32_t *best;                  /* by state: cost + 1; 0: not seen */
	int32_t *head, *state, *next;
	size_t n, cap, next_cap;
	Arena *a;
};

static void
see(struct brute *b, int32_t state, int32_t cost)
{
	if (cost >= COSTS || (b->best[state] && b->best[state] <= cost + 1))
		return;
	b->best[state] = cost + 1;
	b->state = arena_grow(b->a, b->state, b->n, &b->cap, b->n + 1,
	                      sizeof *b->state);
	b->next = arena_grow(b->a, b->next, b->n, &b->next_cap, b->n + 1,
	                     sizeof *b->next);
	b->state[b->n] = state;
	b->next[b->n] = b->head[cost];
	b->head[cost] = (int32_t)b->n++;
}

/* A digit for each node: 0 it has not run, 1 its value is gone, 2 it is in
 * memory.  Dijkstra's algorithm over all 3^n of them; -1: no plan fits. */
static int32_t
least_cost(const struct dag *g, int64_t budget)
{
	struct brute b = { .g = g, .a = arena_new() };
	int32_t power[STEP + 1] = { 1 }, found = -1;

	for (int32_t i = 0; i < g->n; i++)
		power[i + 1] = 3 * power[i];
	b.best = arena_array(b.a, (size_t)power[g->n], sizeof *b.best);
	b.head = arena_array(b.a, COSTS, sizeof *b.head);
	memset(b.head, 0xff, COSTS * sizeof *b.head);
	see(&b, 0, 0);
	for (int32_t c = 0; c < COSTS && found < 0; c++) {
		while (b.head[c] >= 0 && found < 0) {
			int32_t s = b.state[b.head[c]], ran = 0;
			int64_t bytes = 0;

			b.head[c] = b.next[b.head[c]];
			if (b.best[s] != c + 1)
				continue;
			for (int32_t i = 0; i < g->n; i++) {
				int32_t digit = s / power[i] % 3;

				ran += digit > 0;
				bytes += digit == 2 ? g->ram[i] : 0;
			}
			found = ran == g->n ? c : -1;
			for (int32_t i = 0; i < g->n; i++) {
				int32_t digit = s / power[i] % 3;
				bool ready = bytes + g->ram[i] <= budget;

				for (int32_t k = g->pred_at[i];
				     k < g->pred_at[i + 1]; k++)
					ready &= s / power[g->pred[k]] % 3
						== 2;
				if (digit == 2)
					see(&b, s - power[i], c);
				else if (ready)
					see(&b, s + (2 - digit) * power[i],
					    c + (int32_t)g->cpu[i]);
			}
		}
	}
	arena_free(b.a);
	return found;
}

/* Plans cost what the best ones do; where there is none, the least budget that
 * is named is the least; and few states already give a bound that holds. */
static void
families_are_optimal(void **state)
{
	int tight = 0, refused = 0, above = 0;

	(void)state;
	for (uint32_t k = 0; k < SEEDS * FAMILIES; k++) {
		Arena *a = arena_new();
		struct dag g;

		make_step(&g, (int)(k % FAMILIES), 77 * k + 5, a);
		for (int64_t part = 0; part < 3; part++) {
			struct dag_options o = { .budget = g.working_set
				+ (g.peak - g.working_set) * part / 4 };
			struct dag_answer r = dag_plan(&g, &o, a);
			struct dag_small small = dag_whole(&g);
			struct dag_way way;
			int32_t best = least_cost(&g, o.budget);
			double few;

			few = dag_states(&small, o.budget, 1e9, 60, NULL, &way,
			                 a);
			assert_true(r.found == (best >= 0));
			above += few > g.cost && few < r.seq.cost;
			if (best >= 0) {
				assert_true(r.seq.cost == best);
				assert_true(r.seq.peak <= o.budget);
				assert_true(r.bound <= best && few <= best);
				tight += best > g.cost;
				continue;
			}
			refused++;
			assert_true(least_cost(&g, r.seq.peak) >= 0);
			assert_true(least_cost(&g, r.seq.peak - 1) < 0);
		}
		arena_free(a);
	}

	assert_true(tight > SEEDS * FAMILIES && refused > 0 && above > 10);
}

/* Some change, and whether it is kept is up to chance. */
static void
change(struct dag_walk *w, uint32_t *rnd, uint64_t *random)
{
	int32_t e = w->all[draw(rnd, (uint32_t)w->neval)];
	int32_t v = w->node[e], t = w->pos[e];

	walk_begin(w, draw(rnd, 2) ? 1e9 : 0);
	if (draw(rnd, 2)) {
		int32_t f = walk_put(w, v, t + 1, w->nslot, random,
		                     draw(rnd, 2));

		if (f >= 0 && draw(rnd, 3) == 0)
			walk_shift(w, f, t + 1, w->pos[f], random);
	} else if (walk_removable(w, e)) {
		walk_take(w, e);
	}
	walk_end(w);
}

static int32_t
peak_of(const struct dag_walk *w)
{
	int32_t peak = 0;

	for (int32_t t = 0; t < w->nslot; t++)
		peak = w->mem[t] > peak ? w->mem[t] : peak;
	return peak;
}

/* Bytes over slots are those of the lifetimes, and their sum above the
 * budget is right. */
static void
check_profile(const struct dag_walk *w, Arena *a)
{
	int32_t *mem = arena_array(a, (size_t)w->nslot + 1, sizeof *mem);
	int64_t over = 0;

	for (int32_t k = 0; k < w->neval; k++) {
		int32_t e = w->all[k];

		for (int32_t t = w->pos[e]; t <= w->end[e]; t++)
			mem[t] += w->ram[w->node[e]];
	}
	for (int32_t t = 0; t < w->nslot; t++) {
		assert_int_equal(mem[t], w->mem[t]);
		assert_true(mem[t] <= w->top[t / WALK_BLOCK]);
		over += mem[t] > w->budget ? mem[t] - w->budget : 0;
	}
	assert_int_equal(over, w->over);
}

static void
walks(void **state)
{
	int64_t longer = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= GRAPHS; seed++) {
		Arena *a = arena_new();
		struct dag g;
		struct dag_walk w;
		struct dag_seq q = { .node = arena_array(a, 1000,
		                                         sizeof *q.node) };
		uint32_t rnd = seed;
		uint64_t random = seed;
		int32_t peak;

		make(&g, seed, a);
		for (; q.len < g.n; q.len++)
			q.node[q.len] = q.len;
		walk_open(&w, &g, g.working_set, q.len, a);
		walk_load(&w, &q);
		w.weight = 0.5;
		for (int k = 0; k < 300; k++)
			change(&w, &rnd, &random);
		check_profile(&w, a);
		q.len = walk_unload(&w, q.node);
		longer += q.len > g.n;
		assert_int_equal(q.len, w.neval);
		assert_true(dag_measure(&g, &q, a));
		assert_true(fabs(q.cost - w.cost) < 1e-9);
		/* lifetimes: the same sequence read anew */
		peak = peak_of(&w);
		walk_load(&w, &q);
		assert_int_equal(peak, peak_of(&w));
		arena_free(a);
	}
	assert_true(longer > GRAPHS / 2);
}

static double
worked(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* A step of n nodes, the first half of which is read by its mirror. */
static void
make_long(struct dag *g, int32_t n, Arena *a)
{
	int32_t *link = arena_array(a, (size_t)n * 4, sizeof *link), nlink = 0;

	*g = (struct dag){ .n = n, .training = true };
	g->ram = arena_array(a, (size_t)n, sizeof *g->ram);
	g->cpu = arena_array(a, (size_t)n, sizeof *g->cpu);
	g->backward = arena_array(a, (size_t)n, sizeof *g->backward);
	g->name = arena_array(a, (size_t)n, sizeof *g->name);
	for (int32_t i = 0; i < n; i++) {
		g->ram[i] = 100;
		g->cpu[i] = 1;
		g->backward[i] = i >= n / 2;
		g->name[i] = "node";
		for (int32_t k = i + 1; k < n; k = k < n - 1 - i
		     ? n - 1 - i : n) {
			link[2 * nlink] = i;
			link[2 * nlink++ + 1] = k;
		}
	}
	dag_finish(g, link, nlink, a);
}

/* A long graph: neither an interruption nor spent work waits for a search to
 * be through.  In seconds of the process's own time. */
static void
long_ones(void **state)
{
	enum { LONG = 80000 };
	const sig_atomic_t stop = 1;
	struct watch off = { .stop = &stop };

	(void)state;
	for (int k = 0; k < 2; k++) {
		Arena *a = arena_new();
		struct dag g;
		struct dag_budget rung = { 0 };
		struct dag_options o = { .watch = k ? NULL : &off };
		struct dag_best b = { .g = &g, .o = &o, .arena = a,
			.random = 1, .grid = &rung, .ngrid = 1 };
		struct dag_seq q = { 0 };
		double began;

		make_long(&g, LONG, a);
		b.problem = dag_problem(&g, o.watch, a);
		q.node = arena_array(a, LONG, sizeof *q.node);
		for (q.len = 0; q.len < LONG; q.len++)
			q.node[q.len] = q.len;
		rung.budget = g.peak / 2;
		began = worked();
		dag_anneal(&b, &q, k ? 8 * LONG : (int64_t)1 << 60, 0.1);
		dag_evict(&b, k ? 8 * LONG : (int64_t)1 << 60);
		assert_true(worked() - began < 2);
		arena_free(a);
	}
}

/* Of 60 nodes that read some of the six before them. */
static void
make_random(struct dag *g, uint32_t rnd, Arena *a)
{
	enum { MANY = 60, NEAR = 6 };
	int32_t link[2 * MANY * (NEAR + 1)], n = 0;

	*g = (struct dag){ .n = MANY };
	g->ram = arena_array(a, MANY, sizeof *g->ram);
	g->cpu = arena_array(a, MANY, sizeof *g->cpu);
	g->backward = arena_array(a, MANY, sizeof *g->backward);
	g->name = arena_array(a, MANY, sizeof *g->name);
	for (int32_t i = 0; i < MANY; i++) {
		g->ram[i] = 1 + draw(&rnd, 16);
		g->cpu[i] = 1 + draw(&rnd, 30);
		g->name[i] = "node";
		for (int32_t k = i < NEAR ? 0 : i - NEAR; k < i; k++)
			if (k == i - 1 || draw(&rnd, 4) == 0) {
				link[2 * n] = k;
				link[2 * n++ + 1] = i;
			}
		/* and one far behind */
		if (i > 2 * NEAR) {
			link[2 * n] = (int32_t)draw(&rnd, (uint32_t)i - NEAR);
			link[2 * n++ + 1] = i;
		}
	}
	dag_finish(g, link, n, a);
}

/* A hasty plan for a budget between the least and the peak, and what stretches
 * of it make of that. */
static void
hasty_and_windows(const struct dag *g, Arena *a, struct dag_seq *hasty,
                  struct dag_budget *rung)
{
	struct dag_options o = { 0 };
	struct dag_best b = { .g = g, .o = &o, .arena = a, .random = 1,
		.grid = rung, .ngrid = 1,
		.problem = dag_problem(g, NULL, a) };

	*rung = (struct dag_budget){
		.budget = g->working_set + (g->peak - g->working_set) * 2 / 3 };
	dag_evict(&b, 200000);
	*hasty = rung->best;
	dag_windows(&b, 1000000);
}

/* A plan that is one stretch becomes the best one; longer ones become cheaper
 * and fit. */
static void
windows(void **state)
{
	enum { MANY = 60 };
	int whole = 0, cheaper = 0, plans = 0;

	(void)state;
	for (uint32_t k = 0; k < MANY; k++) {
		Arena *a = arena_new();
		struct dag_budget rung;
		struct dag_seq hasty;
		struct dag g;

		make_step(&g, (int)(k % FAMILIES), 31 * k + 7, a);
		hasty_and_windows(&g, a, &hasty, &rung);
		if (hasty.len > 0 && hasty.len <= 24) {
			assert_true(rung.best.cost
			            == least_cost(&g, rung.budget));
			whole += rung.best.cost < hasty.cost;
		}
		make_random(&g, k, a);
		hasty_and_windows(&g, a, &hasty, &rung);
		assert_true(rung.best.peak <= rung.budget);
		assert_true(rung.best.cost <= hasty.cost);
		plans += hasty.len > 24;
		cheaper += rung.best.cost < hasty.cost;
		arena_free(a);
	}
	assert_true(whole > 5 && plans > 40 && cheaper > plans * 9 / 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),
		cmocka_unit_test(families_are_optimal),
		cmocka_unit_test(walks),
		cmocka_unit_test(long_ones),
		cmocka_unit_test(windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
