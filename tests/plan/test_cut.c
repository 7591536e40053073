/* Plans and bounds by least cuts. */
#include "passes/planner/remat_cut.h"
#include "tests/plan/plan_test.h"

#include <math.h>
#include <string.h>

enum { GRAPHS = 200, NODES = 9, EDGES = 30, SETS = 14 };

/* ---- flows ---- */

struct arc {
	int32_t from, to;
	int64_t room;
};

/* Capacity from the nodes of a set to all others. */
static int64_t
across(const struct arc *arc, int n, uint32_t set)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++)
		if (set >> arc[i].from & 1 && !(set >> arc[i].to & 1))
			sum += arc[i].room;
	return sum;
}

/* The cut that the flow leaves is as small as the least of all. */
static void
cuts_are_least(void **state)
{
	uint64_t seed = 5;
	int cut = 0;

	(void)state;
	for (int k = 0; k < 5 * GRAPHS; k++) {
		Arena *arena = arena_new();
		struct flow *f = flow_new(NODES, EDGES, arena);
		struct arc arc[EDGES];
		int64_t least = INT64_MAX;
		uint32_t found = 0;

		for (int i = 0; i < EDGES; i++) {
			arc[i].from = (int32_t)(gen_next(&seed) % NODES);
			arc[i].to = (int32_t)(gen_next(&seed) % NODES);
			arc[i].room = (int64_t)(gen_next(&seed) % 50);
			flow_capacity(f, flow_edge(f, arc[i].from, arc[i].to),
			              arc[i].room);
		}
		for (uint32_t set = 1; set < 1u << NODES; set++) {
			bool parts = set >> FLOW_SOURCE & 1
				&& !(set >> FLOW_SINK & 1);

			if (parts && across(arc, EDGES, set) < least)
				least = across(arc, EDGES, set);
		}
		assert_true(flow_run(f, NULL));
		for (int32_t v = 0; v < NODES; v++)
			found |= (uint32_t)(f->level[v] >= 0) << v;
		assert_true(found >> FLOW_SOURCE & 1);
		assert_false(found >> FLOW_SINK & 1);
		assert_int_equal(across(arc, EDGES, found), least);
		cut += least > 0;
		arena_free(arena);
	}
	assert_true(cut > GRAPHS / 2);
}

/* ---- bounds ---- */

/* Seconds that are small whole numbers, or scratch, so that moments differ. */
static void
draw_costs(struct problem *p, uint64_t seed)
{
	p->r->base_sec = 0;
	for (NodeId i = 1; i < p->g->nnode; i++) {
		struct rnode *n = &p->r->node[i];

		if (n->sec > 0)
			n->sec = (double)(1 + gen_next(&seed) % 20);
		n->least_sec = n->inlinable ? n->sec / 2 : n->sec;
		if (seed % 3 == 0)
			n->workspace = (int64_t)(gen_next(&seed) % 8) * 256;
		p->r->base_sec += n->sec;
	}
}

static struct cut_bound *
bound_new(struct problem *p)
{
	return cut_bound_new(cut_net_new(p->r, p->constraint, p->arena));
}

/* No set is faster than the bound at its memory, and the fastest are not much
 * slower. */
static void
bounds_hold(void **state)
{
	double seconds = 0, proven = 0;

	(void)state;
	for (uint64_t k = 0; k < GRAPHS; k++) {
		struct problem p;
		struct cut_bound *bound;
		int32_t cand[SETS], n = 0;
		double best = INFINITY;
		int64_t half;

		open_problem(&p, gen_random(k, 3 + (int)(k % 8)));
		draw_costs(&p, k * 91 + 3);
		for (int32_t s = 0; s < p.r->nstore; s++)
			if (p.r->store[s].candidate && k % 2 && s % 5 == 0)
				p.constraint[s] = 'k';
		bound = bound_new(&p);
		half = p.top * 3 / 4;
		for (int32_t s = 0; s < p.r->nstore && n < SETS; s++)
			if (p.r->store[s].candidate && !p.constraint[s])
				cand[n++] = s;
		remat_keep_all(p.r, p.constraint, p.drop);
		for (uint32_t set = 0; set < 1u << n; set++) {
			struct remat_cost c;

			for (int32_t i = 0; i < n; i++)
				p.drop[cand[i]] = set >> i & 1;
			c = schedule_set(p.w, p.drop);
			assert_true(cut_bound_at(bound, c.live).sec
			            <= c.sec * (1 + 1e-9));
			if (c.live <= half)
				best = fmin(best, c.sec);
		}
		if (isfinite(best) && k % 2 == 0) {
			seconds += best;
			proven += cut_bound_at(bound, half).sec;
		}
		close_problem(&p);
	}
	assert_true(seconds > 0);
	assert_true(proven > seconds * 0.4);
}

/* ---- plans ---- */

/* Sets for a quarter of what can be saved, against the bound. */
static double
gap_of(struct problem *p, double part)
{
	struct plan_pool *pool = pool_new(p->r, p->constraint, p->top,
	                                  p->arena);
	int64_t low = p->top - (int64_t)((double)p->top * part);
	struct cut_net *net;
	struct cut_proof proof;
	const struct known_plan *f;

	net = cut_net_new(p->r, p->constraint, p->arena);
	proof = cut_bound_at(cut_bound_new(net), low);
	assert_true(proof.sec > 0);
	cut_search(net, pool, low, low + p->top / 96, &proof, 0);
	f = pool_best_live(pool, low);
	assert_non_null(f);
	assert_true(schedule_set(p->w, f->drop).live == f->live);
	return (f->sec - proof.sec) / p->r->base_sec;
}

/* Equal layers, which one price treats alike, are told apart. */
static void
layers_are_mixed(void **state)
{
	static const struct gen_gpt gpt = { 24, 256, 4, 4, 256, 512 };
	struct problem p;

	(void)state;
	open_problem(&p, gen_gpt(&gpt));
	assert_true(gap_of(&p, 0.3) < 0.002);
	assert_true(gap_of(&p, 0.5) < 0.01);
	close_problem(&p);
}

/* A graph of more than a thousand storages, without layers. */
static void
large_graphs(void **state)
{
	struct problem p;

	(void)state;
	open_problem(&p, gen_random(1, 1400));
	assert_true(p.r->ncand > 1000);
	assert_true(gap_of(&p, 0.2) < 0.02);
	close_problem(&p);
}

/* What the user wants recomputed is dropped in every set. */
static void
constraints_hold(void **state)
{
	struct problem p;
	struct plan_pool *pool;
	struct cut_net *net;
	struct cut_proof proof;
	int64_t low;
	int sets = 0;

	(void)state;
	open_problem(&p, gen_random(1, 200));
	for (int32_t s = 0; s < p.r->nstore; s += 5)
		if (p.r->store[s].candidate)
			p.constraint[s] = 'r';
	net = cut_net_new(p.r, p.constraint, p.arena);
	low = p.top - p.top / 5;
	proof = cut_bound_at(cut_bound_new(net), low);
	pool = pool_new(p.r, p.constraint, p.top, p.arena);
	cut_search(net, pool, low, low, &proof, 0);
	for (int32_t i = 0; i < pool->n; i++) {
		if (pool->plan[i].live < 0)
			continue;
		sets++;
		for (int32_t s = 0; s < p.r->nstore; s++)
			assert_true(p.constraint[s] != 'r'
			            || pool->plan[i].drop[s]);
	}
	assert_true(sets > 0);
	close_problem(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_are_least),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(layers_are_mixed),
		cmocka_unit_test(large_graphs),
		cmocka_unit_test(constraints_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
