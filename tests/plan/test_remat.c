/* Keep or recompute on random graphs against all sets of kept values. */
#include "tests/plan/plan_test.h"
#include "ir/loop.h"
#include "ir/text/text.h"
#include "passes/fuse/fuse.h"
#include "passes/place/place.h"
#include "passes/replay/replay.h"
#include "passes/planner/choose.h"
#include "passes/planner/set_generators.h"
#include "ir/segments.h"
#include "passes/cost/cost.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { GRAPHS = 120 };

struct optimum {
	int64_t live;                   /* or placed */
	double sec;
};

/* Every third node needs scratch, as much as a few of its values. */
static void
add_scratch(Graph *g, uint64_t *seed)
{
	FOR_NODES (n, g)
		if (!(op_info[n->op].flags & F_VIEW)
		    && gen_next(seed) % 3 == 0)
			n->workspace = target_cpu.align
				* (int64_t)(1 + gen_next(seed) % 8);
}

static void
open_random(struct problem *p, uint64_t seed, bool scratch)
{
	uint64_t s = seed * 77 + 5;
	Graph *g = gen_random(seed, 3 + (int)(seed % 8));

	if (scratch)
		add_scratch(g, &s);
	open_problem(p, g);
	p->r->base_sec = 0;
	for (NodeId i = 1; i < p->g->nnode; i++) {
		p->r->node[i].sec = p->r->node[i].sec > 0
			? (double)(1 + gen_next(&s) % 20) : 0;
		p->r->base_sec += p->r->node[i].sec;
	}
}

static void
open_seed(struct problem *p, uint64_t seed)
{
	open_random(p, seed, false);
}

static struct remat_cost
try(struct problem *p, uint32_t set)
{
	memset(p->drop, 0, (size_t)p->r->nstore);
	for (int32_t i = 0; i < p->ncand; i++)
		p->drop[p->cand[i]] = set >> i & 1;
	return schedule_set(p->w, p->drop);
}

static double
optimum(struct problem *p, int64_t live)
{
	double best = INFINITY;

	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c = try(p, set);

		if (c.live <= live && c.sec < best)
			best = c.sec;
	}
	return best;
}

/* Turn the graph into the plan. */
static void
carry_out(struct bench *b, const struct schedule *w, Graph *g)
{
	schedule_apply(w, g);
	g->props |= P_PLANNED;
	assert_true(pass_inplace(&b->pass, g));
	assert_true(pass_place(&b->pass, g));
	g->props |= P_PLACED;
	assert_true(pass_account(&b->pass, g));
	assert_true(pass_replay(&b->pass, g));
	assert_true(b->pass.planned.plan->sum.live_bound == w->cost.live);
}

/* The evaluation of a set is what the graph becomes. */
static void
evaluation_is_exact(void **state)
{
	uint64_t seed = 99;

	(void)state;
	for (int k = 0; k < GRAPHS; k++) {
		struct problem p;
		struct bench b;

		open_random(&p, (uint64_t)k, k & 1);
		try(&p, (uint32_t)gen_next(&seed));
		bench_open(&b);
		carry_out(&b, p.w, p.g);
		bench_close(&b);
		close_problem(&p);
	}
}

/* What random graphs do not have.  The rows that a norm writes in passing are
 * what most is alive with. */
static const char in_passing[] =
	"graph @f {\n"
	"props bound static canon loss bwd upd fused\n"
	"input %x: f32[8,64]\n"
	"param %w: f32[64,64]\n"
	"param %scale: f32[64]\n"
	"%y, %d0, %d1 = layernorm %x, %scale {axis=1}\n"
	"%z = matmul %y, %w\n"
	"%loss output = reduce_sum %z {axes=[0,1], keepdims=0}\n"
	"%dz: f32[8,64] = fill {shape=[8,64], value=1} @backward\n"
	"%dw output param %w = matmul %y, %dz {ta=1} @backward\n"
	"%dy = matmul %dz, %w {tb=1} @backward\n"
	"_, %dscale output, %dbias = layernorm_grad %dy, %x, %scale, %d0, %d1 "
	"{axis=1} @backward\n"
	"loss %loss\n"
	"}\n";

/* One copy, of %d1; %d0 is computed where it is read. */
static const char inlined[] =
	"graph @f {\n"
	"props bound static canon loss bwd upd fused\n"
	"input %x: f32[8,64]\n"
	"param %w: f32[64,64]\n"
	"%p = matmul %x, %w\n"
	"%d0 = loop %p [t0 = sigmoid a0; give t0]\n"
	"%d1 = loop %p [t0 = tanh a0; give t0]\n"
	"%y = matmul %d0, %d1 {tb=1}\n"
	"%loss output = reduce_sum %y {axes=[0,1], keepdims=0}\n"
	"%dy: f32[8,8] = fill {shape=[8,8], value=1} @backward\n"
	"%dt = matmul %dy, %d1 @backward\n"
	"%dq = loop %dt, %d0 [t0 = mul a0, a1; give t0] @backward\n"
	"%dp = loop %dq, %d1 [t0 = mul a0, a1; give t0] @backward\n"
	"%dw output param %w = matmul %x, %dp {ta=1} @backward\n"
	"loss %loss\n"
	"}\n";

/* The reader takes in the loop of %d1 before that of %d0, which makes %a, too:
 * %a, of which there is no copy, stays alive. */
static const char beside[] =
	"graph @f {\n"
	"props bound static canon loss bwd upd fused\n"
	"input %x: f32[8,64]\n"
	"param %w: f32[64,64]\n"
	"%p = matmul %x, %w\n"
	"%a, %d0 = loop %p [t0 = sigmoid a0; t1 = tanh a0; give t0, t1]\n"
	"%d1 = loop %a [t0 = exp a0; give t0]\n"
	"%y = matmul %d0, %d1 {tb=1}\n"
	"%loss output = reduce_sum %y {axes=[0,1], keepdims=0}\n"
	"%large = matmul %x, %x {ta=1} @backward\n"
	"%dt = matmul %x, %large @backward\n"
	"%dp = loop %dt, %d1, %d0 [t0 = mul a0, a1; t1 = mul t0, a2; give t1] "
	"@backward\n"
	"%dw output param %w = matmul %x, %dp {ta=1} @backward\n"
	"loss %loss\n"
	"}\n";

/* Drop %d0 and %d1: bytes and seconds are those of the graph that results. */
static void
drop_exactly(const char *text, size_t n, int ninlined)
{
	struct bench b;
	struct remat_cost c;
	struct remat *r;
	struct schedule *w;
	uint8_t *drop;
	Graph *g;
	int found = 0;
	double sec;

	bench_open(&b);
	g = text_parse("drop.ck", text, n, b.pass.diag);
	assert_non_null(g);
	assert_true(pass_layout(&b.pass, g));
	g->props |= P_LAYOUT;
	r = remat_new(g, b.pass.keep);
	drop = arena_array(b.pass.keep, (size_t)r->nstore + 1, 1);
	FOR_VALS (v, g)
		if (v->name && (!strcmp(v->name, "d0")
		                || !strcmp(v->name, "d1"))) {
			drop[r->of_val[val_id(g, v)]] = 1;
			found++;
		}
	assert_int_equal(found, 2);
	w = schedule_new(r, b.pass.keep);
	c = schedule_set(w, drop);
	assert_true(c.sec > 0);
	carry_out(&b, w, g);
	sec = b.pass.planned.plan->sum.recompute_sec;
	assert_true(fabs(sec - c.sec) <= 1e-9 * sec);
	found = 0;
	FOR_NODES (node, g)
		found += node->ninlined;
	assert_int_equal(found, ninlined);
	bench_close(&b);
	graph_free(g);
}

/* The same with `micros` ops in the loop that makes %d0; written to text. */
static size_t
with_micros(int micros, char *text, size_t size)
{
	static const char body[] = "t0 = sigmoid a0; give t0";
	const char *at = strstr(inlined, body);
	int n = snprintf(text, size, "%.*st0 = sigmoid a0", (int)(at - inlined),
	                 inlined);

	for (int i = 1; i < micros; i++)
		n += snprintf(text + n, size - (size_t)n, "; t%d = tanh t%d",
		              i, i - 1);
	n += snprintf(text + n, size - (size_t)n, "; give t%d%s", micros - 1,
	              at + strlen(body));
	return (size_t)n;
}

/* A loop takes in another one as long as both have no more ops than a loop
 * may. */
static void
loops_stay_small(void **state)
{
	char text[4096];

	(void)state;
	drop_exactly(text, with_micros(LOOP_OPS_MAX - 1, text,
	                               sizeof text), 1);
	drop_exactly(text, with_micros(LOOP_OPS_MAX, text, sizeof text), 0);
}

static void
special_copies_are_exact(void **state)
{
	(void)state;
	drop_exactly(in_passing, sizeof in_passing - 1, 0);
	drop_exactly(inlined, sizeof inlined - 1, 1);
	drop_exactly(beside, sizeof beside - 1, 2);
}

/* Every bound holds; search and 0-1 program find the optimum nearly always. */
static void
bound_and_search(void **state)
{
	int hits = 0, total = 0;

	(void)state;
	for (int k = 0; k < GRAPHS; k++) {
		struct problem p;
		struct plan_pool *a;
		int64_t top, least;

		open_seed(&p, (uint64_t)k);
		top = try(&p, 0).live;
		a = pool_new(p.r, p.constraint, top, p.r->arena);
		remat_search(a);
		least = pool_smallest(a)->live;
		for (int i = 0; i < 4; i++) {
			int64_t live = least + (top - least) * i / 4;
			double best = optimum(&p, live);
			double bound = remat_bound(p.r, p.constraint, live,
			                           best, 0, k % 2 * 50);
			struct known_plan *f;

			assert_true(bound <= best + 1e-6);
			bound = remat_ilp(a, live, 0, 100, 300);
			assert_true(bound <= best + 1e-6);
			f = pool_best_live(a, live);
			assert_non_null(f);
			assert_true(f->sec >= best - 1e-9);
			hits += f->sec <= best + 1e-9;
			total++;
		}
		close_problem(&p);
	}
	assert_true(hits * 100 >= total * 98);
}

/* The choice is as good as the best of all sets, packed, at any budget. */
static void
choice_is_optimal(void **state)
{
	(void)state;
	for (int k = 0; k < GRAPHS; k++) {
		struct problem p;
		struct options opt = { .gap_pct = 0.1 };
		struct plan_selector *c;
		struct optimum *all;
		uint32_t n;
		int64_t top, least = INT64_MAX;

		open_seed(&p, (uint64_t)k);
		n = 1u << p.ncand;
		all = arena_array(p.arena, n, sizeof *all);
		for (uint32_t set = 0; set < n; set++) {
			Arena *scratch = arena_new();

			all[set].sec = try(&p, set).sec;
			all[set].live = schedule_packed(p.w, scratch);
			if (all[set].live < least)
				least = all[set].live;
			arena_free(scratch);
		}
		top = all[0].live;
		c = selector_new(p.r, p.constraint, &opt);
		assert_true(selector_least(c) <= least);
		assert_null(selector_best(c, selector_least(c) - 1));
		for (int i = 0; i <= 4; i++) {
			int64_t arena = least + (top - least) * i / 4;
			const struct known_plan *f = selector_best(c, arena);
			double best = INFINITY;

			for (uint32_t set = 0; set < n; set++)
				if (all[set].live <= arena)
					best = fmin(best, all[set].sec);
			assert_non_null(f);
			assert_true(known_eval(p.w, f).sec <= best + 1e-9);
			assert_true(selector_bound(c, arena, f).sec
			            <= (f->step ? known_eval(p.w, f).sec
			                : best) + 1e-6);
		}
		close_problem(&p);
	}
}

/* Plans through all passes for falling budgets. */
static void
walk(Graph *(*make)(int), int k, int steps)
{
	struct bench b;
	Graph *g = make(k);
	int64_t base, least, peak = INT64_MAX;
	double sec = -1;

	bench_open(&b);
	assert_true(bench_run(&b, g));
	base = b.pass.planned.baseline_peak;
	assert_true(b.pass.planned.plan->sum.peak == base);
	bench_close(&b);
	graph_free(g);

	bench_open(&b);
	g = make(k);
	b.opt.budget_bytes = 1;
	assert_false(bench_run(&b, g));
	least = b.pass.planned.minimum_peak;
	assert_true(diag_errors(b.pass.diag) == 1);
	bench_close(&b);
	graph_free(g);

	for (int i = steps; i >= 0; i--) {
		int64_t budget = least + (base - least) * i / steps;

		bench_open(&b);
		g = make(k);
		b.opt.budget_bytes = budget;
		assert_true(bench_run(&b, g));
		if (b.pass.planned.minimum_peak > 0)    /* it was needed */
			assert_true(b.pass.planned.minimum_peak == least);
		assert_true(b.pass.planned.plan->sum.peak <= budget);
		assert_true(b.pass.planned.plan->sum.peak <= peak);
		assert_true(b.pass.planned.plan->sum.step_sec
		            >= sec * (1 - 1e-12));
		assert_true(b.pass.planned.plan->sum.bound_sec
		            <= b.pass.planned.plan->sum.step_sec);
		sec = b.pass.planned.plan->sum.step_sec;
		peak = b.pass.planned.plan->sum.peak;
		bench_close(&b);
		graph_free(g);
	}
	bench_open(&b);
	g = make(k);
	b.opt.budget_bytes = least - 1;
	assert_false(bench_run(&b, g));
	bench_close(&b);
	graph_free(g);
}

static Graph *
small(int k)
{
	return gen_random((uint64_t)k, 2 + k % 9);
}

static Graph *
medium(int k)
{
	return gen_random((uint64_t)k + 1000, 20 + k % 20);
}

static Graph *
gpt(int k)
{
	struct gen_gpt o = { 1 + k, 128, 4, 8, 128, 512 };

	return gen_gpt(&o);
}

static void
monotone(void **state)
{
	(void)state;
	for (int k = 0; k < 30; k++)
		walk(small, k, 8);
	for (int k = 0; k < 2; k++)
		walk(medium, k, 5);
	for (int k = 0; k < 2; k++)
		walk(gpt, k, 4);
}

/* Presets drop what they say. */
static void
presets(void **state)
{
	struct gen_gpt o = { 4, 64, 2, 2, 32, 128 };
	Graph *g = gen_gpt(&o);
	Arena *a = arena_new();
	struct remat *r = remat_new(g, a);
	struct schedule *w = schedule_new(r, a);
	uint8_t *constraint = arena_array(a, (size_t)r->nstore + 1, 1);
	uint8_t *drop = arena_array(a, (size_t)r->nstore + 1, 1);
	int kept = 0, cores = 0;

	(void)state;
	remat_preset(r, constraint, REMAT_FULL, 1, drop);
	for (int32_t s = 0; s < r->nstore; s++)
		kept += r->store[s].candidate && !drop[s];
	assert_int_equal(kept, 5);      /* inputs of 4 layers, and the last */
	remat_preset(r, constraint, REMAT_EVERY, 2, drop);
	kept = 0;
	for (int32_t s = 0; s < r->nstore; s++)
		kept += r->store[s].candidate && !drop[s];
	assert_int_equal(kept, 3);
	remat_preset(r, constraint, REMAT_SELECTIVE, 1, drop);
	schedule_set(w, drop);
	for (int32_t k = 0; k < w->nstep; k++)
		if (w->step[k].clone && r->node[w->step[k].node].sec > 0) {
			assert_int_equal(g->node[w->step[k].node].op,
			                 OP_ATTENTION);
			cores++;
		}
	assert_int_equal(cores, 4);
	remat_preset(r, constraint, REMAT_NONE, 1, drop);
	assert_true(schedule_set(w, drop).sec <= 0);
	arena_free(a);
	graph_free(g);
}

/* Constraints are obeyed at any budget, and refused when they mean nothing. */
static void
constraints(void **state)
{
	const char *keep[] = { "t12" }, *again[] = { "t10" };
	const char *nothing[] = { "no-such-*" };
	struct bench b;
	Graph *g;
	int copies = 0;

	(void)state;
	bench_open(&b);
	g = small(8);
	b.opt.keep = (struct name_list){ 1, nothing };
	assert_false(bench_run(&b, g));
	bench_close(&b);
	graph_free(g);

	bench_open(&b);
	g = gpt(0);
	again[0] = g->val[g->node[2].out[0]].name;      /* the first norm */
	b.opt.recompute = (struct name_list){ 1, again };
	assert_true(bench_run(&b, g));
	FOR_NODES (n, g)
		copies += n->of != 0;
	assert_int_equal(copies, 1);
	bench_close(&b);
	graph_free(g);

	bench_open(&b);
	g = gpt(0);
	keep[0] = again[0] = g->val[g->node[2].out[0]].name;
	b.opt.keep = (struct name_list){ 1, keep };
	b.opt.recompute = (struct name_list){ 1, again };
	assert_false(bench_run(&b, g));
	bench_close(&b);
	graph_free(g);
}

/* ---- what is printed ---- */

/* Least seconds of all sets within so many bytes, placed or only alive. */
static double
best_within(struct problem *p, int64_t arena, bool placed)
{
	double best = INFINITY;

	for (uint32_t set = 0; set < 1u << p->ncand; set++) {
		struct remat_cost c = try(p, set);
		Arena *a = arena_new();

		if (c.live <= arena && c.sec < best
		    && (!placed || schedule_packed(p->w, a) <= arena))
			best = c.sec;
		arena_free(a);
	}
	return best;
}

/* The plan for a budget (of all bytes) says a bound that is no more than what
 * the best of all sets takes, and no less than what the best does that only
 * has to be alive within it. */
static void
check_printed(struct problem *p, uint64_t seed, int64_t budget, int *once)
{
	double base = p->r->base_sec;
	double most = base + best_within(p, budget - p->r->resident, true);
	double least = base + best_within(p, budget - p->r->resident, false);
	Graph *g = gen_random(seed, 3 + (int)(seed % 8));
	const struct plan_summary *s;
	struct bench b;

	bench_open(&b);
	b.opt.budget_bytes = budget;
	assert_true(bench_run(&b, g));
	s = &b.pass.planned.plan->sum;
	assert_true(s->bound_sec <= most * (1 + 1e-9));
	assert_true(b.pass.planned.bound_sec <= most * (1 + 1e-9));
	if (!strcmp(s->bound_class, "once")) {
		assert_true(s->bound_sec >= least * (1 - 1e-9));
		++*once;
	}
	bench_close(&b);
	graph_free(g);
}

static void
printed_bounds_hold(void **state)
{
	int once = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 24; seed++) {
		struct problem p;
		struct bench b;
		int64_t least, top;

		open_seed(&p, seed);
		p.r->base_sec = 0;
		for (NodeId i = 1; i < p.g->nnode; i++) {
			p.r->node[i].sec = node_cost(p.g, &p.g->node[i]).sec;
			p.r->base_sec += p.r->node[i].sec;
		}
		top = p.r->resident + try(&p, 0).live;
		bench_open(&b);
		b.opt.budget_bytes = 1;
		assert_false(bench_run(&b, p.g));
		least = b.pass.planned.minimum_peak;
		bench_close(&b);
		for (int i = 0; i < 3; i++)
			check_printed(&p, seed, least + (top - least) * i / 3,
			              &once);
		close_problem(&p);
	}
	assert_true(once >= 20);
}

/* ---- size ---- */

enum { LONG_CHAIN = 20000 };

static void *
recompute_a_chain(void *of)
{
	struct problem *p = of;
	struct remat *r = p->r;

	/* all of it comes back at the first step of backward */
	for (int32_t s = 0; s < r->nstore; s++)
		p->drop[s] = r->store[s].candidate;
	*(struct remat_cost *)p->constraint = schedule_set(p->w, p->drop);
	return NULL;
}

/* A chain of products of which only the last one is read in backward, at
 * first: nodes are repeated one after the other, in little stack. */
static void
chains_need_no_stack(void **state)
{
	struct remat_cost cost;
	struct problem p;
	pthread_attr_t small;
	pthread_t thread;

	(void)state;
	open_problem(&p, gen_chain(LONG_CHAIN, 16));
	p.constraint = (uint8_t *)&cost;
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 1 << 17), 0);
	assert_int_equal(pthread_create(&thread, &small, recompute_a_chain,
	                                &p), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(p.w->nstep > (int32_t)p.g->nnode);
	close_problem(&p);
}

/* ---- cuts ---- */

/* What crosses alone, against a look at every gap of every life. */
static void
crossings_are_found(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int k = 0; k < 300; k++) {
		NodeId begin[40], end[40];
		uint32_t id[40], nnode = 2 + gen_next(&seed) % 30, *only;
		struct crossing c = { begin, end, id, 0 };
		Arena *a = arena_new();

		c.n = gen_next(&seed) % 40;
		for (uint32_t i = 0; i < c.n; i++) {
			begin[i] = 1 + gen_next(&seed) % (nnode - 1);
			end[i] = begin[i] + gen_next(&seed) % 4;
			end[i] = end[i] > nnode ? nnode : end[i];
			id[i] = i % 3 ? 1 + i : UINT32_MAX - i;
		}
		only = segments_crossing(&c, nnode, a);
		for (NodeId at = 0; at < nnode; at++) {
			uint32_t n = 0, which = 0;

			for (uint32_t i = 0; i < c.n; i++)
				if (begin[i] <= at && at < end[i]) {
					n++;
					which = id[i];
				}
			assert_int_equal(only[at], n == 1 ? which : 0);
		}
		arena_free(a);
	}
}

/* Evaluated alone, a node's results take their bytes: what others made, and
 * is last read here, does not count and so cannot give them any. */
static void
windows_take_bytes(void **state)
{
	int overlaid = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		struct problem p;

		open_seed(&p, seed);
		p.w->nonly = 1;
		for (NodeId id = 1; id < p.g->nnode; id++) {
			const struct rnode *n = &p.r->node[id];
			int64_t bytes = n->workspace;

			for (int i = 0; i < n->nwrite; i++)
				bytes += p.r->store[n->write[i]].size;
			p.w->only = &id;
			assert_int_equal(schedule_set(p.w, p.drop).live, bytes);
			overlaid += n->npair > 0;
		}
		close_problem(&p);
	}
	assert_true(overlaid > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evaluation_is_exact),
		cmocka_unit_test(special_copies_are_exact),
		cmocka_unit_test(loops_stay_small),
		cmocka_unit_test(bound_and_search),
		cmocka_unit_test(choice_is_optimal),
		cmocka_unit_test(monotone),
		cmocka_unit_test(presets),
		cmocka_unit_test(constraints),
		cmocka_unit_test(chains_need_no_stack),
		cmocka_unit_test(printed_bounds_hold),
		cmocka_unit_test(crossings_are_found),
		cmocka_unit_test(windows_take_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
