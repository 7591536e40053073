/* Host memory as a fluid: bounds against all sets of kept values and against
 * plans of layers, and what a lane carries.
 */
#include "passes/pareto/pareto.h"
#include "passes/planner/remat_cut.h"
#include "passes/remat_model/remat_host.h"
#include "tests/plan/plan_test.h"

#include <math.h>

enum { GRAPHS = 60, RATES = 5, DECISIONS = 10 };

static const double shares[RATES] = { 0.1, 0.2, 0.4, 1, 4 };

/* A problem with host memory; lanes carry `share` of what a step keeps in half
 * its seconds. */
struct host_problem {
	struct problem p;
	struct remat r;
	struct schedule *w;
};

static void
add_host(struct host_problem *h, double rate)
{
	h->r = *h->p.r;
	h->r.host = remat_host_new(h->p.r, rate, GRAPH_BYTES_MAX);
	h->w = schedule_new(&h->r, h->p.arena);
}

static void
open_host(struct host_problem *h, Graph *g, double share)
{
	open_problem(&h->p, g);
	add_host(h, 2 * share * (double)h->p.top / h->p.r->base_sec);
}

static struct cut_bound *
cuts_of(const struct host_problem *h)
{
	return cut_bound_new(cut_net_new(&h->r, h->p.constraint, h->p.arena));
}

static struct pareto_curve *
curve_of(const struct host_problem *h)
{
	struct partition *y = partition_new(h->p.r, h->p.constraint);
	struct pareto_curve *v = y && partition_solve(y) ? pareto_new(y) : NULL;

	return v ? pareto_with_host(v, h->r.host) : NULL;
}

/* In less memory than a plan has, it waits at most until a lane has carried the
 * rest. */
static void
check_bounds(const struct host_problem *h, struct cut_bound *cuts,
             struct pareto_curve *v, struct remat_cost c)
{
	for (int k = 0; k < 8; k++) {
		int64_t rest = c.live / 8 * k, memory = c.live - rest;
		double most = c.sec + (double)rest / h->r.host->rate;

		most *= 1 + 1e-9;
		/* below that waits do not help */
		if (memory >= cut_bound_least(cuts))
			assert_true(cut_bound_at(cuts, memory).sec <= most);
		assert_true(!v || pareto_bound(v, memory) <= most);
	}
}

/* Of half the graphs the user keeps some values, which cannot but wait for a
 * lane where memory is short of them. */
static void
keep_some(struct host_problem *h, uint64_t seed)
{
	for (int32_t i = 0; seed % 2 && i < h->p.ncand; i++)
		if ((seed / 2 + (uint64_t)i) % 3 == 0)
			h->p.constraint[h->p.cand[i]] = 'k';
}

/* Drop the candidates of a set; false: one of them is kept. */
static bool
drop_set(struct host_problem *h, uint32_t set)
{
	bool may = true;

	for (int32_t i = 0; i < h->p.ncand; i++) {
		h->p.drop[h->p.cand[i]] = set >> i & 1;
		may &= !(set >> i & 1) || !h->p.constraint[h->p.cand[i]];
	}
	return may;
}

static void
bounds_hold_for_all_sets(void **state)
{
	int curves = 0, away = 0;

	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		struct host_problem h;
		struct pareto_curve *v;
		struct cut_bound *cuts;

		open_host(&h, gen_random(k, 3 + (int)(k % 8)),
		          shares[k % RATES]);
		if (h.p.ncand > DECISIONS || h.r.base_sec <= 0) {
			close_problem(&h.p);
			continue;
		}
		keep_some(&h, k);
		cuts = cuts_of(&h);
		v = curve_of(&h);
		curves += v != NULL;
		for (uint32_t set = 0; set < 1u << h.p.ncand; set++) {
			struct remat_cost c, without;

			if (!drop_set(&h, set))
				continue;
			without = schedule_set(h.p.w, h.p.drop);
			c = schedule_set(h.w, h.p.drop);
			assert_true(c.live <= without.live);
			assert_true(c.sec >= without.sec
			            && c.sec <= without.sec);
			away += c.live < without.live;
			check_bounds(&h, cuts, v, c);
		}
		close_problem(&h.p);
	}
	assert_true(curves > 10 && away > 1000);
}

/* Of equal layers both bounds are near the plans of the curve. */
static void
layers_are_bounded(void **state)
{
	double all = 0, cut = 0, proven = 0;

	(void)state;
	for (int k = 0; k < RATES; k++) {
		struct gen_gpt o = { 8, 64, 2, 2, 64, 128 };
		struct host_problem h;
		struct pareto_curve *v;
		struct cut_bound *cuts;

		open_host(&h, gen_gpt(&o), shares[k]);
		cuts = cuts_of(&h);
		v = curve_of(&h);
		assert_non_null(v);
		for (int32_t i = 0; i < pareto_count(v); i++) {
			struct remat_cost c;

			pareto_plan(v, i, h.p.drop);
			c = schedule_set(h.w, h.p.drop);
			check_bounds(&h, cuts, v, c);
			if (c.live < h.p.top / 3 || shares[k] > 0.5)
				continue;
			all += c.sec;
			cut += cut_bound_at(cuts, c.live).sec;
			proven += pareto_bound(v, c.live);
		}
		close_problem(&h.p);
	}
	print_message("cuts %.3f, parts %.3f of the seconds of plans\n",
	              cut / all, proven / all);
	assert_true(all > 0 && cut > 0.8 * all && proven > 0.85 * all);
}

/* The user keeps some values: plans free others in ways of which points know
 * nothing, and their lanes run beside those clones. */
static void
clones_bring_bytes(void **state)
{
	(void)state;
	for (int k = 0; k < RATES; k++) {
		struct gen_gpt o = { 2, 64, 2, 2, 64, 128 };
		struct host_problem h;
		uint64_t seed = 2;
		struct pareto_curve *v;
		struct cut_bound *cuts;

		open_host(&h, gen_gpt(&o), shares[k]);
		keep_some(&h, 5);
		cuts = cuts_of(&h);
		v = curve_of(&h);
		assert_non_null(v);
		for (int t = 0; t < 60; t++) {
			uint64_t set = gen_next(&seed);

			set = t % 2 ? set | gen_next(&seed) : set;
			for (int32_t i = 0; i < h.p.ncand; i++)
				h.p.drop[h.p.cand[i]] = set >> i & 1
					&& !h.p.constraint[h.p.cand[i]];
			check_bounds(&h, cuts, v, schedule_set(h.w, h.p.drop));
		}
		close_problem(&h.p);
	}
}

/* A node near the begin of backward needs much memory.  Two values are made
 * again before it, which takes as long as forward, and lanes run meanwhile. */
static void
clones_precede_a_peak(void **state)
{
	enum { FIRST = 7, SECOND = 9, TIGHT = 4, SHORT = 12 };
	struct host_problem h;
	struct pareto_curve *v;
	struct cut_bound *cuts;
	NodeId begin = 1;
	int64_t size;

	(void)state;
	open_problem(&h.p, gen_chain(5, 1024));
	while (!h.p.r->node[begin].backward)
		begin++;
	for (int32_t i = 0; i < h.p.ncand; i++)
		if (i != FIRST && i != SECOND)
			h.p.constraint[h.p.cand[i]] = 'k';
	h.p.r->base_sec = 0;
	for (NodeId i = 1; i < h.p.r->nnode; i++) {
		struct rnode *n = &h.p.r->node[i];
		bool again = i == h.p.r->store[h.p.cand[FIRST]].def
			|| i == h.p.r->store[h.p.cand[SECOND]].def;

		n->sec = again ? 5 : i < begin ? 1
			: i < begin + SHORT ? 1e-3 : 10;
		n->least_sec = n->least_sec > 0 ? n->sec : 0;
		h.p.r->base_sec += n->sec;
	}
	size = h.p.r->store[h.p.cand[FIRST]].size;
	h.p.r->node[begin + TIGHT].workspace = size * 3 / 2;
	add_host(&h, 0.065 * (double)size);
	cuts = cuts_of(&h);
	v = curve_of(&h);
	assert_non_null(v);
	for (uint32_t set = 0; set < 1u << h.p.ncand; set++)
		if (drop_set(&h, set))
			check_bounds(&h, cuts, v, schedule_set(h.w, h.p.drop));
	close_problem(&h.p);
}

/* A limit of host memory, and a rate, are limits at every step. */
static void
lanes_are_limits(void **state)
{
	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		struct host_problem h;
		struct remat_host *small;

		open_host(&h, gen_random(k, 3 + (int)(k % 8)), 0.5);
		if (h.r.base_sec <= 0) {
			close_problem(&h.p);
			continue;
		}
		remat_keep_all(h.p.r, h.p.constraint, h.p.drop);
		schedule_set(h.p.w, h.p.drop);
		schedule_set(h.w, h.p.drop);
		assert_true(h.w->nstep == h.p.w->nstep);
		for (int32_t i = 0; i < h.w->nstep; i++) {
			int64_t away = h.p.w->live[i] - h.w->live[i];
			double before = 0, behind = 0;

			for (int32_t j = 0; j < h.w->nstep; j++) {
				double sec = h.r.node[h.w->step[j].node].sec;

				before += j < i ? sec : 0;
				behind += j > i ? sec : 0;
			}
			assert_true(away >= 0);
			assert_true((double)away <= 1 + h.r.host->rate
				* fmin(before, behind) * (1 + 1e-9));
		}
		small = remat_host_new(h.p.r, h.r.host->rate, 0);
		h.r.host = small;
		assert_true(schedule_set(h.w, h.p.drop).live == h.p.top);
		close_problem(&h.p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold_for_all_sets),
		cmocka_unit_test(layers_are_bounded),
		cmocka_unit_test(clones_bring_bytes),
		cmocka_unit_test(clones_precede_a_peak),
		cmocka_unit_test(lanes_are_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
