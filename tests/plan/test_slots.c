/* Plans for K micro-batches in flight: bytes, bounds and choice against all
 * sets of kept values; packing of slots.
 *
 * A plan takes (K - 1) S + A bytes: A is what one micro-batch alone has in
 * memory at most, S what it keeps between forward and backward.
 */
#include "passes/cost/cost.h"
#include "passes/pareto/pareto.h"
#include "passes/planner/remat_cut.h"
#include "passes/planner/set_generators.h"
#include "tests/plan/plan_test.h"

#include <math.h>
#include <stdlib.h>

enum { GRAPHS = 100, SLOTS = 4, BUFFERS = 24 };

static Graph *
make(uint64_t seed, int64_t slots)
{
	Graph *g = gen_random(seed, 3 + (int)(seed % 8));

	g->slots = slots;
	return g;
}

/* Seconds are those that plans have. */
static void
open_slots(struct problem *p, uint64_t seed, int64_t slots)
{
	open_problem(p, make(seed, slots));
}

static struct remat_cost
try_set(struct problem *p, uint32_t set)
{
	memset(p->drop, 0, (size_t)p->r->nstore + 1);
	for (int32_t i = 0; i < p->ncand; i++)
		p->drop[p->cand[i]] = (set >> i & 1)
			&& p->constraint[p->cand[i]] != 'k';
	return schedule_set(p->w, p->drop);
}

/* ---- bytes ---- */

/* Of the plan tried last: bytes of instances made up to the last first run of
 * forward and read behind it. */
static int64_t
bytes_across(const struct problem *p)
{
	const struct schedule *w = p->w;
	int32_t boundary = -1;
	int64_t sum = 0;

	for (int32_t k = 0; k < w->nstep; k++)
		if (!w->step[k].clone && !p->r->node[w->step[k].node].backward)
			boundary = k;
	for (int32_t y = 0; y < w->ninst; y++)
		if (w->block[y] == y && w->first[y] >= 0
		    && w->first[y] <= boundary && w->last[y] > boundary)
			sum += p->r->store[w->of_inst[y]].size;
	return sum;
}

/* Turn the graph into the plan tried last. */
static void
carry_out(struct problem *p)
{
	const struct plan_summary *s;
	struct bench b;

	bench_open(&b);
	schedule_apply(p->w, p->g);
	p->g->props |= P_PLANNED;
	assert_true(pass_inplace(&b.pass, p->g));
	assert_true(pass_place(&b.pass, p->g));
	p->g->props |= P_PLACED;
	assert_true(pass_account(&b.pass, p->g));
	assert_true(pass_replay(&b.pass, p->g));
	s = &b.pass.planned.plan->sum;
	assert_true(s->live_bound == p->w->cost.live);
	assert_true(s->arena >= s->live_bound);
	bench_close(&b);
}

static void
bytes_are_exact(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		uint32_t set = (uint32_t)gen_next(&seed);
		int64_t slots = 2 + (int64_t)(k % 3), alone, across;
		struct problem p;

		open_slots(&p, k, 1);
		alone = try_set(&p, set).live;
		across = bytes_across(&p);
		close_problem(&p);
		open_slots(&p, k, slots);
		assert_true(try_set(&p, set).live
		            == (slots - 1) * across + alone);
		carry_out(&p);
		close_problem(&p);
	}
}

/* ---- bounds ---- */

static double
optimum(struct problem *p, int64_t live)
{
	double best = INFINITY;

	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c = try_set(p, set);

		if (c.live <= live && c.sec < best)
			best = c.sec;
	}
	return best;
}

static void
check_cuts_and_curve(struct problem *p)
{
	struct cut_bound *cuts = cut_bound_new(cut_net_new(p->r, p->constraint,
	                                                   p->arena));
	struct partition *y = partition_new(p->r, p->constraint);
	struct pareto_curve *v = y && partition_solve(y) ? pareto_new(y) : NULL;

	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c = try_set(p, set);

		assert_true(cut_bound_at(cuts, c.live).sec
		            <= c.sec * (1 + 1e-9));
		assert_true(cut_bound_least(cuts) <= c.live);
		if (v)
			assert_true(pareto_bound(v, c.live)
			            <= c.sec * (1 + 1e-9));
	}
}

/* Bounds hold for all sets, and the 0-1 program's is near the best of them. */
static void
bounds_hold(void **state)
{
	double all = 0, proven = 0;

	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		struct problem p;
		int64_t top, least;

		open_slots(&p, k, 1 + (int64_t)(k % SLOTS));
		if (p.ncand > 10 || p.r->base_sec <= 0) {
			close_problem(&p);
			continue;
		}
		for (int32_t i = 0; i < p.ncand && k % 2; i += 3)
			p.constraint[p.cand[i]] = 'k';
		check_cuts_and_curve(&p);
		top = try_set(&p, 0).live;
		least = top;
		for (uint32_t set = 0; set < 1u << p.ncand; set++)
			if (try_set(&p, set).live < least)
				least = p.w->cost.live;
		for (int i = 0; i < 4; i++) {
			int64_t live = least + (top - least) * i / 4;
			double best = optimum(&p, live), bound;

			bound = remat_bound(p.r, p.constraint, live, best, 0,
			                    300);
			assert_true(bound <= best * (1 + 1e-6));
			if (p.r->slots > 1) {
				all += best / p.r->base_sec;
				proven += bound / p.r->base_sec;
			}
		}
		close_problem(&p);
	}
	assert_true(all > 0 && proven > 0.9 * all);
}

/* Layers: plans of the curve need no more than they were reckoned to, which is
 * what the bound proves to a hundredth of a step. */
static void
layers_are_proven(void **state)
{
	(void)state;
	for (int64_t slots = 1; slots <= SLOTS; slots++) {
		struct gen_gpt o = { 6, 64, 2, 2, 64, 128 };
		Graph *g = gen_gpt(&o);
		struct problem p;
		struct partition *y;
		struct pareto_curve *v;
		int plans = 0;

		g->slots = slots;
		open_problem(&p, g);
		y = partition_new(p.r, p.constraint);
		assert_true(y && partition_solve(y));
		v = pareto_new(y);
		assert_non_null(v);
		for (int32_t i = 0; i < pareto_count(v); i++) {
			struct remat_cost c;

			pareto_plan(v, i, p.drop);
			c = schedule_set(p.w, p.drop);
			assert_true(c.live <= pareto_bytes(v, i));
			if (c.live < p.top / 2)
				continue;
			assert_true(c.sec - pareto_bound(v, c.live)
			            <= p.r->base_sec * 0.01);
			plans++;
		}
		assert_true(plans > 10);
		close_problem(&p);
	}
}

/* ---- choice ---- */

static double
best_within(struct problem *p, int64_t arena, bool placed)
{
	double best = INFINITY;

	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c = try_set(p, set);
		Arena *a = arena_new();

		if (c.live <= arena && c.sec < best
		    && (!placed || schedule_packed(p->w, a) <= arena))
			best = c.sec;
		arena_free(a);
	}
	return best;
}

/* The plan for a budget is the best that can be placed; where the best of all
 * can be, the gap that is printed is 0. */
static void
check_choice(struct problem *p, uint64_t seed, int64_t budget, int *proved)
{
	int64_t arena = budget - p->r->resident;
	double placed = best_within(p, arena, true);
	double alive = best_within(p, arena, false);
	Graph *g = make(seed, p->r->slots);
	const struct plan_summary *s;
	struct bench b;

	bench_open(&b);
	b.opt.budget_bytes = budget;
	assert_true(bench_run(&b, g));
	s = &b.pass.planned.plan->sum;
	assert_true(s->peak <= budget);
	assert_true(s->recompute_sec <= placed * (1 + 1e-9));
	assert_true(s->bound_sec <= (p->r->base_sec + placed) * (1 + 1e-9));
	if (strcmp(s->bound_class, "once") == 0 && placed <= alive) {
		assert_true(s->gap <= 1e-9);
		++*proved;
	}
	bench_close(&b);
	graph_free(g);
}

static void
choice_is_optimal(void **state)
{
	int proved = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 32; seed++) {
		int64_t top, least;
		struct problem p;
		struct bench b;

		open_slots(&p, seed, 2 + (int64_t)(seed % 3));
		top = p.r->resident + try_set(&p, 0).live;
		bench_open(&b);
		b.opt.budget_bytes = 1;
		assert_false(bench_run(&b, p.g));
		least = b.pass.planned.minimum_peak;
		bench_close(&b);
		for (int i = 0; i < 3 && p.ncand <= 12; i++)
			check_choice(&p, seed, least + (top - least) * i / 3,
			             &proved);
		close_problem(&p);
	}
	assert_true(proved >= 20);
}

/* ---- packing ---- */

static void
draw_buffers(uint64_t *seed, struct buffer *b, size_t n, int64_t boundary)
{
	for (size_t i = 0; i < n; i++) {
		b[i] = (struct buffer){ .size = 64
			* (1 + (int64_t)(gen_next(seed) % 6)) };
		b[i].lower = (int64_t)(gen_next(seed) % 24);
		b[i].upper = b[i].lower + 1 + (int64_t)(gen_next(seed) % 4);
		if (i % 3 == 0) {
			b[i].lower %= boundary + 1;
			b[i].upper = boundary + 2
				+ (int64_t)(gen_next(seed) % 10);
		}
	}
}

static bool
meet(const struct buffer *a, const struct buffer *b)
{
	return a->lower < b->upper && b->lower < a->upper
		&& a->offset < b->offset + b->size
		&& b->offset < a->offset + a->size;
}

/* If slots hold nothing but what crosses the boundary. */
static int64_t
height_apart(const struct buffer *b, size_t n, struct pack_slots slots,
             Arena *a)
{
	struct buffer c[BUFFERS];
	size_t m = 0;

	for (size_t i = 0; i < n; i++)
		if (b[i].lower > slots.boundary
		    || b[i].upper <= slots.boundary + 1)
			c[m++] = b[i];
	return slots.n * pack_slot_bytes(b, n, slots.boundary) + slots.others
		+ pack_buffers(c, m, 1000000, a).height;
}

/* Nothing overlaps, all lies in the slot or behind all slots, and most often
 * in the least bytes. */
static void
slots_are_packed(void **state)
{
	enum { BOUNDARY = 11 };
	uint64_t seed = 11;
	int64_t above = 0, apart = 0;
	int least = 0;

	(void)state;
	for (int k = 0; k < 10 * GRAPHS; k++) {
		size_t n = 1 + gen_next(&seed) % BUFFERS;
		struct pack_slots slots = k % 4 ? (struct pack_slots){
			BOUNDARY, 2 + k % 3, 0 }
			: (struct pack_slots){ BOUNDARY, 1 + k % 3, 7 * k + 1 };
		struct pack_limit limit = { .work = 1000000 };
		int64_t slot, all, height, bound, end = 0;
		Arena *a = arena_new();
		struct buffer b[BUFFERS];

		draw_buffers(&seed, b, n, BOUNDARY);
		slot = pack_slot_bytes(b, n, BOUNDARY);
		all = slot * slots.n + slots.others;
		height = pack_with_slots(b, n, slots, &limit, a);
		for (size_t i = 0; i < n; i++) {
			bool kept = b[i].lower <= BOUNDARY
				&& b[i].upper > BOUNDARY + 1;

			assert_true(b[i].offset >= 0);
			assert_true(b[i].offset + b[i].size <= slot
			            || (!kept && b[i].offset >= all));
			for (size_t j = 0; j < i; j++)
				assert_false(meet(&b[i], &b[j]));
			if (b[i].offset + b[i].size > end)
				end = b[i].offset + b[i].size;
		}
		assert_true(height == (end > all ? end : all));
		bound = pack_slots_bound(b, n, slots, a);
		assert_true(height >= bound);
		apart += height_apart(b, n, slots, a) - bound;
		above += height - bound;
		least += height == bound;
		arena_free(a);
	}
	assert_true(least > 6 * GRAPHS && 3 * above < apart);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_exact),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(layers_are_proven),
		cmocka_unit_test(choice_is_optimal),
		cmocka_unit_test(slots_are_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
