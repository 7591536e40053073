/* Keep or recompute: search for sets by least cuts at prices of memory.
 *
 * what    sets whose steps all come near a target, dear ones first left out
 * method  1. Every node of the step has a price per byte, at first only the one
 *            that proves the bound.  A cut finds the cheapest set: keeping a
 *            storage costs the prices from its last use in forward to where it
 *            would be made again, making it earlier than backward reads it
 *            those in between, and running a node again its seconds.  Where the
 *            set has more than the target the price rises, elsewhere it falls.
 *         2. Of all sets found, two on either side of the target are mixed: up
 *            to a storage as the smaller one has it, from there on as the
 *            faster one, or the other way round.  That is what equal layers
 *            want, which a price treats alike.
 * source  subgradients for Lagrange multipliers: Held, Wolfe and Crowder (1974)
 * cost    ROUNDS flows and evaluations, MIXES mixtures of some twenty
 *         evaluations each; fewer in large graphs (remat_work)
 */
#include "passes/planner/remat_cut.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 60, MIXES = 6, CLOSE = 8, TRIES = 64 };

/* By how much a price changes for a step that is as far above its target as
 * that, of the first price; less and less.  One pace is not the best for all
 * graphs. */
static const double paces[] = { 0.1, 0.3, 1 };
#define FALL 0.3                        /* below the target, of that */
#define COOL 0.02

/* The first price of as many bytes as the target has, at least: of a step. */
#define LEAST 1e-3

struct prices {
	struct cut_net *net;
	struct plan_pool *pool;
	int64_t low, target, high;      /* targets, the middle one */
	Arena *arena;
	double first;                   /* units per byte */
	double *at, *sum;               /* by node: of it; up to it */
	NodeId *again;                  /* by node: where it would run again */
	uint8_t *drop;                  /* the set found last */
};

/* ---- prices ---- */

/* Before which node each one would run again: the first that reads what it
 * makes, or before which something runs again that does. */
static void
find_again(struct prices *p)
{
	const struct cut_net *c = p->net;
	const struct remat *r = c->r;

	for (NodeId i = 0; i < r->nnode; i++)
		p->again[i] = r->nnode - 1;
	for (NodeId i = r->nnode - 1; i > 0; i--) {
		const struct rnode *n = &r->node[i];
		bool again = false;

		for (int k = 0; k < n->nwrite && !n->backward; k++) {
			int32_t s = n->write[k];

			if (c->first[s] && c->first[s] < p->again[i])
				p->again[i] = c->first[s];
			again |= cut_is_free(c, s) && p->drop[s];
		}
		for (int k = 0; again && k < n->nread; k++) {
			NodeId def = r->store[n->read[k]].def;

			if (p->again[i] < p->again[def])
				p->again[def] = p->again[i];
		}
	}
}

/* Of a byte in memory behind node `from`, until before node `to`. */
static double
price_of_span(const struct prices *p, NodeId from, NodeId to)
{
	return to > from + 1 ? p->sum[to - 1] - p->sum[from] : 0;
}

static void
price_storage(struct prices *p, int32_t s)
{
	struct cut_net *c = p->net;
	NodeId def = c->r->store[s].def, again = p->again[def];
	NodeId end = c->end_forward[s];
	double size = (double)c->r->store[s].size, keep, need;
	/* what is kept lies in other slots at all nodes */
	double others = (double)remat_other_slots(c->r, s)
		* p->sum[c->r->nnode - 1];

	if (c->first[s])
		cut_price(c, c->of[s].read, (double)FLOW_UNBOUNDED);
	/* a copy inside its reader takes no memory */
	if (c->r->node[def].inlinable && c->last[s])
		keep = price_of_span(p, end, c->last[s] + 1);
	else
		keep = price_of_span(p, end, again);
	if (c->r->node[def].inlinable)
		need = 0;
	else if (c->first[s])
		need = price_of_span(p, again - 1, c->first[s]);
	else
		need = p->at[again];
	cut_price(c, c->of[s].keep, c->constraint[s] == 'r'
	          ? (double)FLOW_UNBOUNDED : size * (keep + others));
	cut_price(c, c->of[s].need, size * need);
}

static void
set_prices(struct prices *p)
{
	const struct remat *r = p->net->r;

	for (NodeId i = 1; i < r->nnode; i++)
		p->sum[i] = p->sum[i - 1] + p->at[i];
	find_again(p);
	cut_forget_prices(p->net);
	for (int32_t s = 0; s < r->nstore; s++)
		if (cut_is_free(p->net, s))
			price_storage(p, s);
}

/* The more a node and the clones before it have above the target, the dearer
 * it gets. */
static void
change_prices(struct prices *p, double pace)
{
	const struct schedule *w = p->pool->trial;
	int64_t most = 0;

	for (int32_t k = 0; k < w->nstep; k++) {
		NodeId i = w->step[k].node;
		double over;

		if (w->live[k] > most)
			most = w->live[k];
		if (w->step[k].clone)
			continue;
		over = (double)(most + w->other_slots - p->target)
			/ (double)p->target;
		p->at[i] += p->first * over * pace * (over > 0 ? 1 : FALL);
		p->at[i] = fmax(p->at[i], 0);
		most = 0;
	}
}

/* ---- mixtures ---- */

/* Up to a storage as one set has it, from there on as another one. */
struct mixture {
	const uint8_t *over, *within;
	bool upto;                      /* the first storages are as `within`;
	                                 * false: the last ones are */
	int left;                       /* evaluations */
};

/* How many storages are as `within`, and what that takes. */
struct place {
	int32_t at;
	int64_t live;
};

static int64_t
mix_at(struct prices *p, const struct mixture *m, int32_t n)
{
	size_t all = (size_t)p->net->r->nstore;
	size_t at = m->upto ? (size_t)n : all - (size_t)n;

	memcpy(p->drop, m->upto ? m->within : m->over, at);
	memcpy(p->drop + at, (m->upto ? m->over : m->within) + at, all - at);
	return pool_try_set(p->pool, p->drop).live;
}

/* Two sets on either side of the target, of which a mixture would be fastest
 * if seconds and bytes were in proportion. */
static bool
find_pair(const struct prices *p, uint8_t *over, uint8_t *within)
{
	size_t n = (size_t)p->net->r->nstore;
	const struct plan_pool *pool = p->pool;
	double best = INFINITY;

	for (int32_t i = 0; i < pool->n; i++)
		for (int32_t k = i; k-- > 0;) {
			const struct known_plan *x = &pool->plan[i];
			const struct known_plan *y = &pool->plan[k];
			double part, sec;

			if (x->live < 0 || y->live < 0)
				continue;
			if (x->live < y->live) {
				x = y;
				y = &pool->plan[i];
			}
			if (x->live <= p->target || y->live > p->target)
				continue;
			part = (double)(x->live - p->target)
				/ (double)(x->live - y->live);
			sec = x->sec + part * (y->sec - x->sec);
			if (sec >= best)
				continue;
			best = sec;
			memcpy(over, x->drop, n);
			memcpy(within, y->drop, n);
		}
	return best < INFINITY;
}

/* The sets between those of two places, until a target of the range has one
 * that is close. */
static void
mix_between(struct prices *p, struct mixture *m, struct place a, struct place b)
{
	int64_t close = (p->high - p->low) / CLOSE;
	struct place c = { .at = a.at + (b.at - a.at) / 2 };

	if (c.at == a.at || a.live - b.live <= close || a.live <= p->low
	    || b.live > p->high || m->left-- <= 0
	    || watch_over(p->net->r->watch))
		return;
	c.live = mix_at(p, m, c.at);
	mix_between(p, m, a, c);
	mix_between(p, m, c, b);
}

static void
mix(struct prices *p, const uint8_t *over, const uint8_t *within, bool upto)
{
	int32_t n = p->net->r->nstore;
	struct mixture m = { over, within, upto,
		             (int)remat_work(p->net->r, TRIES) };
	struct place a = { 0, mix_at(p, &m, 0) }, b = { n, mix_at(p, &m, n) };

	mix_between(p, &m, a, b);
}

static double
best_sec(const struct prices *p)
{
	const struct known_plan *f = pool_best_live(p->pool, p->target);

	return f ? f->sec : INFINITY;
}

static void
mix_pairs(struct prices *p)
{
	size_t n = (size_t)p->net->r->nstore;
	uint8_t *over = arena_array(p->arena, n + 1, 1);
	uint8_t *within = arena_array(p->arena, n + 1, 1);
	double before = INFINITY;

	for (int k = 0; k < MIXES && find_pair(p, over, within); k++) {
		mix(p, over, within, true);
		mix(p, over, within, false);
		if (best_sec(p) >= before)
			break;
		before = best_sec(p);
	}
}

/* ---- entry ---- */

static bool
is_near_proof(const struct prices *p, double enough)
{
	return best_sec(p) <= enough || watch_over(p->net->r->watch);
}

static void
search_at_pace(struct prices *p, const struct cut_proof *proof, double pace,
               double enough)
{
	int64_t rounds = remat_work(p->net->r, ROUNDS);

	memset(p->at, 0, p->net->r->nnode * sizeof *p->at);
	p->at[proof->at] = proof->price;
	for (int k = 0; k < rounds && !is_near_proof(p, enough); k++) {
		set_prices(p);
		if (!cut_solve(p->net))
			break;
		cut_set(p->net, p->drop);
		pool_try_set(p->pool, p->drop);
		change_prices(p, pace / (1 + COOL * k));
	}
}

void
cut_search(struct cut_net *net, struct plan_pool *pool, int64_t low,
           int64_t high, const struct cut_proof *proof, double gap)
{
	int64_t target = low + (high - low) / 2;
	Arena *arena = arena_new();
	size_t nodes = net->r->nnode;
	double enough = proof->sec + gap;
	struct prices p = { .net = net, .pool = pool, .arena = arena,
	                    .low = low, .target = target, .high = high };

	p.at = arena_array(arena, nodes, sizeof *p.at);
	p.sum = arena_array(arena, nodes, sizeof *p.sum);
	p.again = arena_array(arena, nodes, sizeof *p.again);
	p.drop = arena_array(arena, (size_t)net->r->nstore + 1, 1);
	p.first = fmax(proof->price, LEAST * CUT_UNITS / (double)target);
	for (size_t k = 0; k < sizeof paces / sizeof *paces; k++)
		search_at_pace(&p, proof, paces[k], enough);
	if (!is_near_proof(&p, enough))
		mix_pairs(&p);
	arena_free(arena);
}
