/* Parts, configurations and the curve, against all sets of kept values. */
#include "tests/plan/plan_test.h"
#include "passes/remat_model/intern.h"
#include "passes/pareto/pareto.h"

#include <math.h>
#include <string.h>

enum { GRAPHS = 200, SETS = 12, NEARBY = 40 };

static struct pareto_curve *
solve(struct problem *p)
{
	struct partition *y = partition_new(p->r, p->constraint);

	return y && partition_solve(y) ? pareto_new(y) : NULL;
}

/* Seconds that are small whole numbers, so that configurations differ. */
static void
draw_seconds(struct problem *p, uint64_t seed)
{
	uint64_t s = seed * 91 + 3;

	p->r->base_sec = 0;
	for (NodeId i = 1; i < p->g->nnode; i++) {
		struct rnode *n = &p->r->node[i];

		if (n->sec > 0)
			n->sec = (double)(1 + gen_next(&s) % 20);
		n->least_sec = n->inlinable ? 0 : n->sec;
		p->r->base_sec += n->sec;
	}
}

/* No set of kept values beats the bounds at any amount of memory, and a plan
 * of the curve needs no less time than it says. */
static void
check_all_sets(struct problem *p, struct pareto_curve *v)
{
	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c;

		memset(p->drop, 0, (size_t)p->r->nstore);
		for (int32_t i = 0; i < p->ncand; i++)
			p->drop[p->cand[i]] = set >> i & 1;
		c = schedule_set(p->w, p->drop);
		assert_true(pareto_bound(v, c.live) <= c.sec + 1e-9);
	}
	for (int32_t i = 0; i < pareto_count(v); i++) {
		struct remat_cost c;

		pareto_plan(v, i, p->drop);
		c = schedule_set(p->w, p->drop);
		assert_true(pareto_least(v, i) <= c.sec + 1e-9);
		assert_true(pareto_bound(v, c.live) <= c.sec + 1e-9);
	}
}

static void
bounds_hold(void **state)
{
	int solved = 0;

	(void)state;
	for (int k = 0; k < GRAPHS; k++) {
		struct problem p;
		struct pareto_curve *v;

		open_problem(&p, gen_random((uint64_t)k, 3 + k % 9));
		draw_seconds(&p, (uint64_t)k);
		v = p.ncand <= SETS ? solve(&p) : NULL;
		if (v)
			check_all_sets(&p, v);
		solved += v != NULL;
		close_problem(&p);
	}
	assert_true(solved > GRAPHS / 2);
}

/* Graphs of too many values for all sets: those near plans of the curve, a few
 * values changed.  Norms and attention have outputs that go along with
 * others. */
static void
bounds_hold_nearby(void **state)
{
	(void)state;
	for (uint64_t k = 0; k < NEARBY; k++) {
		struct gen_gpt o = { 1 + (int)k % 5, 64, 2, 2, 32, 128 };
		struct problem p;
		struct pareto_curve *v;
		uint64_t s = k;

		open_problem(&p, gen_gpt(&o));
		draw_seconds(&p, k);
		v = solve(&p);
		assert_non_null(v);
		for (int i = 0; i < 1500; i++) {
			struct remat_cost c;

			if (i % 20 == 0)
				pareto_plan(v, (int32_t)(gen_next(&s)
				           % (uint64_t)pareto_count(v)), p.drop);
			p.drop[p.cand[gen_next(&s) % (uint64_t)p.ncand]] ^= 1;
			c = schedule_set(p.w, p.drop);
			assert_true(pareto_bound(v, c.live) <= c.sec + 1e-9);
			if (c.sec > pareto_bound(v, c.live)
			    + p.r->base_sec / 100)
				i += 19 - i % 20;       /* too far away */
		}
		close_problem(&p);
	}
}

/* One layer: the curve is what all sets reach, and its bound proves it. */
static void
layer_is_solved(void **state)
{
	struct gen_gpt o = { 1, 64, 2, 2, 64, 256 };
	struct problem p;
	struct pareto_curve *v;
	struct remat_cost *all;
	int64_t low = INT64_MAX, high = 0;
	int best = 0, total = 0;
	uint32_t n;

	(void)state;
	open_problem(&p, gen_gpt(&o));
	assert_true(p.ncand <= 20);
	v = solve(&p);
	assert_non_null(v);
	n = 1u << p.ncand;
	all = arena_array(p.arena, n, sizeof *all);
	for (uint32_t set = 0; set < n; set++) {
		memset(p.drop, 0, (size_t)p.r->nstore);
		for (int32_t i = 0; i < p.ncand; i++)
			p.drop[p.cand[i]] = set >> i & 1;
		all[set] = schedule_set(p.w, p.drop);
		low = all[set].live < low ? all[set].live : low;
		high = all[set].live > high ? all[set].live : high;
	}
	for (int k = 1; k <= 40; k++, total++) {
		int64_t live = low + (high - low) * k / 40;
		double sets = INFINITY, curve = INFINITY;

		for (uint32_t set = 0; set < n; set++)
			if (all[set].live <= live)
				sets = fmin(sets, all[set].sec);
		for (int32_t i = 0; i < pareto_count(v); i++) {
			struct remat_cost c;

			pareto_plan(v, i, p.drop);
			c = schedule_set(p.w, p.drop);
			if (c.live <= live)
				curve = fmin(curve, c.sec);
		}
		assert_true(pareto_bound(v, live) <= sets + 1e-12);
		best += curve <= sets * (1 + 1e-9);
	}
	assert_true(best * 10 >= total * 9);
	close_problem(&p);
}

/* Equal layers are of one kind; what is planned grows with them, the kinds do
 * not. */
static void
layers_are_one_kind(void **state)
{
	(void)state;
	for (int layers = 4; layers <= 64; layers *= 4) {
		struct gen_gpt o = { layers, 64, 2, 2, 32, 128 };
		struct problem p;
		struct partition *y;
		int32_t most = 0;

		open_problem(&p, gen_gpt(&o));
		y = partition_new(p.r, p.constraint);
		assert_non_null(y);
		for (int32_t k = 0; k < y->nclass; k++)
			if (y->class[k].count > most)
				most = y->class[k].count;
		assert_true(most >= layers - 2);
		assert_true(y->nclass <= 6);
		close_problem(&p);
	}
}

/* Many layers, any memory: the curve is proven to a thousandth of a step, and
 * a plan with more room is never reckoned slower. */
static void
many_layers(void **state)
{
	struct gen_gpt o = { 12, 64, 2, 2, 128, 256 };
	struct problem p;
	struct pareto_curve *v;
	double before = 0;
	int64_t top;

	(void)state;
	open_problem(&p, gen_gpt(&o));
	v = solve(&p);
	assert_non_null(v);
	remat_keep_all(p.r, p.constraint, p.drop);
	top = schedule_set(p.w, p.drop).live;
	for (int32_t i = 0; i < pareto_count(v); i++) {
		struct remat_cost c;

		pareto_plan(v, i, p.drop);
		c = schedule_set(p.w, p.drop);
		assert_true(c.sec >= before - 1e-12);
		before = c.sec;
		if (c.live > top / 2)
			assert_true(c.sec - pareto_bound(v, c.live)
			            <= p.r->base_sec * 1e-3);
	}
	close_problem(&p);
}

/* Plans of the curve need no more than they were reckoned to. */
static void
plans_need_what_they_say(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		struct gen_gpt o = { 4 + k, 64, 2, 2, 32 << k % 3, 128 };
		struct problem p;
		struct pareto_curve *v;

		open_problem(&p, gen_gpt(&o));
		draw_seconds(&p, (uint64_t)k);
		v = solve(&p);
		assert_non_null(v);
		for (int32_t i = 0; i < pareto_count(v); i++) {
			pareto_plan(v, i, p.drop);
			assert_true(schedule_set(p.w, p.drop).live
			            <= pareto_bytes(v, i));
		}
		close_problem(&p);
	}
}

/* Keys made of a few small numbers, as those of parts and their neighbours,
 * are all different. */
static void
small_keys_differ(void **state)
{
	enum { MOST = 32 };
	Arena *arena = arena_new();
	struct intern_table t = intern_new(MOST * MOST * MOST, arena);

	(void)state;
	for (uint64_t i = 0; i < MOST * MOST * MOST; i++) {
		uint64_t key = mix64(mix64(i % MOST, i / MOST % MOST),
		                     i / MOST / MOST);

		intern_words(&t, &key, 1);
	}
	assert_true(t.n == MOST * MOST * MOST);
	arena_free(arena);
}

static uint64_t
poor_hash(const uint64_t *word, size_t n)
{
	(void)word;
	(void)n;
	return 5;
}

/* Where hashes collide, contents tell. */
static void
collisions_are_told_apart(void **state)
{
	static const uint64_t word[] = { 1, 2, 1, 3, 1, 2, 2 };
	Arena *arena = arena_new();
	struct intern_table t = intern_new(8, arena);

	(void)state;
	t.hash = poor_hash;
	assert_int_equal(intern_words(&t, word, 2), 0);
	assert_int_equal(intern_words(&t, word + 2, 2), 1);
	assert_int_equal(intern_words(&t, word, 3), 2);
	assert_int_equal(intern_words(&t, word, 1), 3);
	assert_int_equal(intern_words(&t, word, 0), 4);
	assert_int_equal(intern_words(&t, word + 4, 2), 0);
	assert_int_equal(intern_words(&t, word + 4, 3), 5);
	assert_int_equal(intern_words(&t, word + 2, 2), 1);
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(bounds_hold_nearby),
		cmocka_unit_test(layer_is_solved),
		cmocka_unit_test(layers_are_one_kind),
		cmocka_unit_test(many_layers),
		cmocka_unit_test(plans_need_what_they_say),
		cmocka_unit_test(small_keys_differ),
		cmocka_unit_test(collisions_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
