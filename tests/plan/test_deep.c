/* Plans that repeat nodes more than once. */
#include "passes/planner/remat_cut.h"
#include "passes/planner/set_generators.h"
#include "passes/recursive/recursive.h"
#include "passes/recursive/designs.h"
#include "tests/plan/plan_test.h"
#include "passes/place/place.h"
#include "passes/replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TINY = 90, GRAPHS = 96, BUDGETS = 4, WIDTH = 4096 };

/* Costs at random: all of a real graph's are alike. */
static void
random_costs(struct problem *p, uint64_t seed)
{
	p->r->base_sec = 0;
	for (NodeId i = 1; i < p->g->nnode; i++) {
		p->r->node[i].sec = p->r->node[i].sec > 0
			? (double)(1 + gen_next(&seed) % 20) : 0;
		/* taken in, a loop costs less */
		p->r->node[i].least_sec = p->r->node[i].inlinable
			? p->r->node[i].sec / 2 : p->r->node[i].sec;
		p->r->base_sec += p->r->node[i].sec;
	}
}

/* ---- against all sequences ---- */

struct brute {
	struct problem *p;
	struct plan_pool *d;
	struct cut_bound *bound;
	struct rstep step[64];
	int ncopy, most;
	int64_t count, fault;
};

/* No plan known needs as little memory and is faster, and no bound is above. */
static void
compare(struct brute *b, int n)
{
	struct remat_cost c = schedule_steps(b->p->w, b->step, n);
	double best = INFINITY;

	b->count++;
	for (int32_t i = 0; i < b->d->n; i++)
		if (b->d->plan[i].live >= 0 && b->d->plan[i].live <= c.live)
			best = fmin(best, b->d->plan[i].sec);
	b->fault += c.sec < best - 1e-9;
	b->fault += c.sec < cut_bound_at(b->bound, c.live).sec * (1 - 1e-9);
}

/* All sequences that go on from here. */
static void
extend(struct brute *b, int n, NodeId next)
{
	const struct remat *r = b->p->r;

	if (next == b->p->g->nnode) {
		compare(b, n);
		return;
	}
	b->step[n] = (struct rstep){ .node = next };
	extend(b, n + 1, next + 1);
	for (NodeId i = 1; b->ncopy < b->most && i < next; i++) {
		if (r->node[i].backward || remat_is_view(r, i)
		    || (n > 0 && b->step[n - 1].node == i))
			continue;
		b->ncopy++;
		b->step[n] = (struct rstep){ .node = i, .clone = true,
		                             .makes = 1 };
		extend(b, n + 1, next);
		b->ncopy--;
	}
}

/* For tiny graphs nothing beats what is found, and what is found that no
 * sequence of so few copies reaches has more of them.  Bounds are below, most
 * of them equal. */
static void
tiny_graphs_are_optimal(void **state)
{
	int64_t count = 0;
	int dear = 0, tight = 0;

	(void)state;
	for (uint64_t k = 0; k < TINY; k++) {
		struct problem p;
		struct brute b = { .p = &p, .most = k % 3 == 0 ? 4 : 3 };

		open_problem(&p, gen_random(k * 31 + 7, 3 + (int)(k % 2)));
		random_costs(&p, k);
		b.d = recursive_new(p.r, p.constraint, p.top + 1, -1);
		b.bound = cut_bound_new(cut_net_new(p.r, p.constraint,
		                                    p.arena));
		for (int32_t i = 0; i < b.d->n; i++) {
			const struct known_plan *f = &b.d->plan[i];
			struct remat_cost c;
			double bound;

			if (f->live < 0)
				continue;
			c = known_eval(p.w, f);
			bound = recursive_bound(p.r, c.live);
			assert_true(c.live == f->live);
			assert_true(fabs(c.sec - f->sec) < 1e-9);
			assert_true(bound <= c.sec + 1e-9);
			dear += c.sec > 0;
			tight += c.sec > 0 && bound > c.sec * (1 - 1e-6);
		}
		extend(&b, 0, 1);
		assert_true(b.fault == 0);
		count += b.count;
		close_problem(&p);
	}
	assert_true(count > 100000);
	assert_true(tight > dear * 9 / 10);
}

/* ---- random graphs, random budgets ---- */

/* Through the passes behind plan: the arena promised is the one that comes
 * out, and the replay agrees. */
static void
carry_out(struct problem *p, const struct known_plan *f, int64_t arena)
{
	struct bench b;
	Graph *g = graph_clone(p->g);
	struct remat_cost c = known_eval(p->w, f);

	bench_open(&b);
	schedule_apply(p->w, g);
	g->props |= P_PLANNED;
	assert_true(pass_inplace(&b.pass, g));
	assert_true(pass_place(&b.pass, g));
	g->props |= P_PLACED;
	assert_true(pass_account(&b.pass, g));
	assert_true(pass_replay(&b.pass, g));
	assert_true(b.pass.planned.plan->sum.live_bound == c.live);
	assert_true(b.pass.planned.plan->sum.arena <= arena);
	bench_close(&b);
	graph_free(g);
}

static void
budgets_hold(void **state)
{
	int repeated = 0;

	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		struct options opt = { .gap_pct = 0.1 };
		struct problem p;
		struct plan_selector *c;
		uint64_t seed = k + 4711;
		int64_t least, arena;
		double sec = INFINITY;

		open_problem(&p, gen_random(k * 17 + 3, 2 + (int)(k % 12)));
		random_costs(&p, k);
		c = selector_new(p.r, p.constraint, &opt);
		arena = least = selector_least(c);
		assert_null(selector_best(c, least - 1));
		for (int i = 0; i < BUDGETS; i++) {
			const struct known_plan *f;

			c = selector_new(p.r, p.constraint, &opt);
			f = selector_best(c, arena);
			assert_non_null(f);
			assert_true(f->sec <= sec);
			assert_true(selector_bound(c, arena, f).sec
			            <= f->sec + 1e-9);
			sec = f->sec;
			repeated += f->step != NULL;
			carry_out(&p, f, arena);
			arena += (int64_t)(gen_next(&seed)
				% (uint64_t)((p.top - least) / 2 + 64));
		}
		close_problem(&p);
	}
	assert_true(repeated > GRAPHS / 2);
}

/* ---- chains ---- */

/* Least arena of a chain of so many equal layers. */
static int64_t
least_of_chain(int layers)
{
	struct problem p;
	struct plan_pool *d;
	int64_t least;

	open_problem(&p, gen_chain(layers, WIDTH));
	d = recursive_new(p.r, p.constraint, p.top, 0);
	least = pool_least(d);
	close_problem(&p);
	return least;
}

/* Memory of L equal layers grows like log L: by no more than one value for
 * each doubling. */
static void
chains_grow_like_log(void **state)
{
	int64_t bytes = WIDTH * 4, four = least_of_chain(4);

	(void)state;
	for (int k = 3; k <= 10; k++)
		assert_true(least_of_chain(1 << k) <= four + (k - 2) * bytes);
}

/* ---- no time for a search ---- */

/* Of 2 L values in L layers, every sqrt(2 L)-th in memory takes twice that
 * many, and forward runs once more; nested states take one for each doubling.
 * Both with some beside: gradients, and values on their way. */
static void
chains_need_no_search(void **state)
{
	const int64_t bytes = WIDTH * 4, beside = 4;

	(void)state;
	for (int k = 4; k <= 11; k++) {
		const struct options opt = { .gap_pct = 0.1 };
		struct watch over = { .late = true };
		int64_t root = (int64_t)ceil(sqrt((double)(2 << k)));
		struct problem p;
		struct plan_selector *c;
		const struct known_plan *f;
		double forward = 0;

		open_problem(&p, gen_chain(1 << k, WIDTH));
		p.r->watch = &over;
		for (NodeId i = 1; i < p.r->nnode; i++)
			forward += p.r->node[i].backward ? 0
				: p.r->node[i].sec;
		c = selector_new(p.r, p.constraint, &opt);
		assert_true(selector_least(c) <= (k + 1 + beside) * bytes);
		f = selector_best(c, (2 * root + beside) * bytes);
		assert_non_null(f);
		assert_true(f->sec <= forward);
		assert_true(known_eval(p.w, f).live
		            <= (2 * root + beside) * bytes);
		close_problem(&p);
	}
}

/* n over k, of Pascal's triangle. */
enum { CHAIN = 40, STATES = 6 };

/* Fewest runs of the part that runs most, by all places of all states, as the
 * definition says; first: what is held in the first run is held for free. */
static int64_t
fewest_runs(int32_t parts, int32_t states, bool first)
{
	static int64_t known[2][STATES + 1][CHAIN + 1];
	int64_t *best = &known[first][states][parts];

	if (*best)
		return *best;
	*best = parts;
	for (int32_t n = 1; n < parts && states > 0; n++) {
		int64_t before = fewest_runs(n, states, false) + !first;
		int64_t behind = fewest_runs(parts - n, states - 1, first);
		int64_t most = before > behind ? before : behind;

		*best = most < *best ? most : *best;
	}
	return *best;
}

/* Each call, which begins with the runs of the one before, keeps to them. */
static void
check_places(int32_t parts, int32_t states, bool first, int64_t runs)
{
	int32_t n;

	assert_true(fewest_runs(parts, states, first) <= runs);
	if (parts < 2 || states == 0)
		return;
	n = design_parts_before(parts, states, first, &runs);
	assert_int_equal(runs, fewest_runs(parts, states, first));
	assert_in_range(n, 1, parts - 1);
	check_places(parts - n, states - 1, first, runs);
	check_places(n, states, false, runs - !first);
}

static void
bounds_of_runs_hold(void **state)
{
	(void)state;
	for (int32_t states = 1; states <= STATES; states++)
		for (int32_t parts = 2; parts <= CHAIN; parts++)
			check_places(parts, states, true, parts);
}

/* A budget that a preset meets is met, and the least that is named is not
 * above it. */
static void
presets_need_no_search(void **state)
{
	const struct gen_gpt shape = { 8, 256, 4, 2, 128, 1000 };

	(void)state;
	for (int64_t every = 1; every <= 4; every++) {
		const struct options opt = { .gap_pct = 0.1 };
		struct watch over = { .late = true };
		Arena *scratch = arena_new();
		struct problem p;
		struct plan_selector *c;
		uint8_t *drop;
		int64_t arena;

		open_problem(&p, gen_gpt(&shape));
		drop = arena_array(scratch, (size_t)p.r->nstore + 1, 1);
		remat_preset(p.r, p.constraint, REMAT_EVERY, every, drop);
		schedule_set(p.w, drop);
		arena = schedule_packed(p.w, scratch);
		p.r->watch = &over;
		c = selector_new(p.r, p.constraint, &opt);
		assert_non_null(selector_best(c, arena));
		assert_true(selector_least(c) <= arena);
		close_problem(&p);
		arena_free(scratch);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_need_no_search),
		cmocka_unit_test(bounds_of_runs_hold),
		cmocka_unit_test(presets_need_no_search),
		cmocka_unit_test(tiny_graphs_are_optimal),
		cmocka_unit_test(budgets_hold),
		cmocka_unit_test(chains_grow_like_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
