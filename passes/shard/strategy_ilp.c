/* Choose sharding strategies by a 0-1 program.
 *
 * A node takes one of its strategies.  A conversion connects the placement
 * that a producer gives with the one that a reader requires; readers that
 * require the same share it.  Producer and reader are joined by a
 * transportation problem per edge (rows: placements of the producer; columns:
 * those of the reader), which keeps the relaxation tight: Alpa's linearised
 * products (Zheng et al. 2022) need several times the rows and branch.
 *
 * Equal layers count once (node_classes.c).
 */
#include "passes/shard/strategy_ilp.h"

#include <math.h>
#include <string.h>

struct placement_list {
	Placement *s;
	int n;
};

/* ---- the program ---- */

static int
producer_value(const struct strategy_ilp *m, uint32_t class, int result_index)
{
	uint32_t e = m->c.first[class];

	return e < m->s->g->nnode ? m->s->g->node[e].nin + result_index : 0;
}

static int
placement_index(struct strategy_ilp *m, struct placement_list *list,
                const Placement *s)
{
	for (int i = 0; i < list->n; i++)
		if (placement_eq(&list->s[i], s))
			return i;
	if (!list->s)
		list->s = arena_array(m->s->tmp, 64, sizeof *list->s);
	if (list->n == 64)
		return 0;
	list->s[list->n] = *s;
	return list->n++;
}

/* The placements that a class' strategies have at an operand or result. */
static struct placement_list
placements_at(struct strategy_ilp *m, uint32_t class, int value_index)
{
	const struct strategy_set *c = strategies_of(m, m->c.first[class]);
	struct placement_list list = { NULL, 0 };

	for (int i = 0; i < c->n; i++)
		placement_index(m, &list, &c->strategy[i].at[value_index]);
	return list;
}

/* A cost, or a random one. */
static double
cost_or_random(struct strategy_ilp *m, double sec)
{
	uint32_t *seed = &m->seed;

	if (!m->s->pass->opt->strategy_seed || sec < 0)
		return sec;
	*seed = *seed * 1664525u + 1013904223u;
	return 1e-6 * (double)(*seed >> 16 & 1023);
}

/* It has the excluded placement. */
static bool
is_excluded_strategy(const struct strategy_ilp *m, uint32_t class,
                     const struct strategy *w)
{
	return m->excluded && class == m->c.of[m->isolated]
		&& placement_eq(&w->at[m->value_index], m->excluded);
}

static void
add_strategies(struct strategy_ilp *m)
{
	for (uint32_t k = 0; k < m->c.nclass; k++) {
		const struct strategy_set *c = strategies_of(m, m->c.first[k]);
		int *col = arena_array(m->s->tmp, (size_t)c->n + 1,
		                       sizeof *col);
		double *one = arena_array(m->s->tmp, (size_t)c->n + 1,
		                          sizeof *one);
		bool must_shard = strategy_must_shard(m, k);

		for (int i = 0; i < c->n; i++) {
			bool out = strategy_is_forbidden(m, k, &c->strategy[i])
				|| (must_shard
			            && !is_sharded_at(&c->strategy[i], 0))
				|| is_excluded_strategy(m, k, &c->strategy[i]);

			col[i] = ilp_col(m->ilp, 0, out ? 0 : 1,
			                 m->c.count[k] * 1e3
			                 * cost_or_random(m,
			                                  c->strategy[i].sec),
			                 true);
			one[i] = 1;
		}
		m->c.col[k] = col[0];
		ilp_row(m->ilp, 1, 1, c->n, col, one);
	}
}

/* sum of z = sum of the class' strategies with this placement of the value. */
static void
add_marginal(struct strategy_ilp *m, uint32_t class, int value_index,
             const Placement *placement, const int *z, int nz)
{
	const struct strategy_set *c = strategies_of(m, m->c.first[class]);
	size_t most = (size_t)nz + (size_t)c->n + 1;
	int *col = arena_array(m->s->tmp, most, sizeof *col), n = 0;
	double *coef = arena_array(m->s->tmp, most, sizeof *coef);

	for (int i = 0; i < nz; i++) {
		col[n] = z[i];
		coef[n++] = 1;
	}
	for (int i = 0; i < c->n; i++)
		if (placement_eq(&c->strategy[i].at[value_index], placement)) {
			col[n] = m->c.col[class] + i;
			coef[n++] = -1;
		}
	ilp_row(m->ilp, 0, 0, n, col, coef);
}

/* Conversions of one value, shared by its readers. */
struct shared_conversions {
	int *col;                       /* from * wanted; -1: not there yet */
	struct placement_list wanted;
};

static int
conversion_col(struct strategy_ilp *m, struct shared_conversions *h, int from,
               const Placement *to, double cost)
{
	int u = placement_index(m, &h->wanted, to),
	    *col = &h->col[from * 64 + u];

	if (*col < 0)
		*col = ilp_col(m->ilp, 0, INFINITY, cost, false);
	return *col;
}

static void
add_conversion_edge(struct strategy_ilp *m, const struct strategy_edge *e,
                    const struct placement_list *produced,
                    struct shared_conversions *h)
{
	struct placement_list want = placements_at(m, e->reader,
	                                           e->value_index);
	int out = producer_value(m, e->producer, e->result_index),
	    nz = produced->n * want.n;
	int *z = arena_array(m->s->tmp, (size_t)nz + 1, sizeof *z);
	int *some = arena_array(m->s->tmp, (size_t)nz + 1, sizeof *some);

	for (int i = 0; i < nz; i++) {
		const Placement *from = &produced->s[i / want.n];
		const Placement *to = &want.s[i % want.n];
		double sec = shard_conversion_cost(m->s, e->v, from, to) * 1e3;

		if (sec > 0)
			sec = cost_or_random(m, sec);

		z[i] = ilp_col(m->ilp, 0, sec < 0 ? 0 : 1, 0, false);
		if (sec <= 0)
			continue;
		int both[2] = { conversion_col(m, h, i / want.n, to, sec
		                               * m->c.count[e->producer]),
		                z[i] };

		ilp_row(m->ilp, 0, INFINITY, 2, both, (double[]){ 1, -1 });
	}
	for (int i = 0; i < produced->n; i++)
		add_marginal(m, e->producer, out, &produced->s[i],
		             z + i * want.n, want.n);
	for (int u = 0; u < want.n; u++) {
		for (int i = 0; i < produced->n; i++)
			some[i] = z[i * want.n + u];
		add_marginal(m, e->reader, e->value_index, &want.s[u], some,
		             produced->n);
	}
}

static void
add_conversion_edges(struct strategy_ilp *m)
{
	for (size_t i = 0; i < m->nedge; ) {
		const struct strategy_edge *e = &m->edge[i];
		struct placement_list produced = placements_at(m, e->producer,
			producer_value(m, e->producer, e->result_index));
		struct shared_conversions h = { .wanted = { NULL, 0 } };

		h.col = arena_array(m->s->tmp, (size_t)produced.n * 64 + 1,
		                    sizeof *h.col);
		memset(h.col, -1,
		       ((size_t)produced.n * 64 + 1) * sizeof *h.col);
		for (; i < m->nedge && m->edge[i].producer == e->producer
		     && m->edge[i].result_index == e->result_index; i++)
			add_conversion_edge(m, &m->edge[i], &produced, &h);
	}
}

/* ---- the answer ---- */

struct ilp_answer
strategy_ilp_solve(struct strategy_ilp *m)
{
	const struct ilp_limit limit = { .pivots = 2000000, .nodes = 2000,
		.watch = m->s->pass->watch };
	struct ilp_answer a;

	m->seed = m->s->pass->opt->strategy_seed;
	strategy_find_classes(m);
	strategy_find_edges(m);
	m->ilp = ilp_new(m->s->tmp);
	add_strategies(m);
	add_conversion_edges(m);
	a = ilp_solve(m->ilp, &limit, m->s->tmp);
	ilp_free(m->ilp);
	return a;
}

int
strategy_ilp_choice(const struct strategy_ilp *m, const struct ilp_answer *a,
                    uint32_t entity)
{
	const double *x = a->x + m->c.col[m->c.of[entity]];
	int n = strategies_of(m, entity)->n, best = 0;

	for (int i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	return best;
}

bool
shard_choose_strategies(struct shard *s)
{
	struct strategy_ilp m = { .s = s };
	struct ilp_answer a = strategy_ilp_solve(&m);

	if (!a.x)
		return strategy_refuse(&m);
	for (uint32_t e = 1; e < m.c.n; e++)
		strategies_of(&m, e)->chosen = strategy_ilp_choice(&m, &a, e);
	s->pass->strategy_sec = a.objective / 1e3;
	if (s->pass->opt->stats)
		diag_note(s->pass->diag, "sharding: %u classes of %u nodes, "
		          "%zu edges, %.3g ms", m.c.nclass, s->g->nnode - 1,
		          m.nedge, a.objective);
	return true;
}
