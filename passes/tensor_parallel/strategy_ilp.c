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
#include "passes/tensor_parallel/strategy_ilp.h"

#include <math.h>
#include <string.h>

/* ---- the program ---- */

static int
producer_value(const struct strategy_ilp *m, uint32_t class, int result_index)
{
	uint32_t e = m->c.first[class];

	return e < m->s->g->nnode ? m->s->g->node[e].nin + result_index : 0;
}

int
placement_list_index(struct placement_list *list, const Placement *s,
                     Arena *arena)
{
	for (int i = 0; i < list->n; i++)
		if (placement_eq(&list->s[i], s))
			return i;
	list->s = arena_grow(arena, list->s, (size_t)list->n, &list->cap,
	                     (size_t)list->n + 1, sizeof *list->s);
	list->s[list->n] = *s;
	return list->n++;
}

/* The placements that a class' strategies have at an operand or result. */
static struct placement_list
placements_at(struct strategy_ilp *m, uint32_t class, int value_index)
{
	const struct strategy_set *c = strategies_of(m, m->c.first[class]);
	struct placement_list list = { .n = 0 };

	for (int i = 0; i < c->n; i++)
		placement_list_index(&list, &c->strategy[i].at[value_index],
		                     m->s->tmp);
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

/* Whether the strategy has the excluded placement. */
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
	int nproduced;                  /* placements that the producer gives */
	struct placement_list wanted;   /* placements that readers require */
	int *col;                       /* column by wanted * nproduced +
	                                 * produced; -1: not there yet */
	size_t ncol, cap;
};

static int
conversion_col(struct strategy_ilp *m, struct shared_conversions *h, int from,
               const Placement *to, double cost)
{
	int u = placement_list_index(&h->wanted, to, m->s->tmp);
	size_t at = (size_t)u * (size_t)h->nproduced + (size_t)from;

	if (at >= h->ncol) {
		h->col = arena_grow(m->s->tmp, h->col, h->ncol, &h->cap,
		                    at + 1, sizeof *h->col);
		memset(h->col + h->ncol, -1,
		       (at + 1 - h->ncol) * sizeof *h->col);
		h->ncol = at + 1;
	}
	if (h->col[at] < 0)
		h->col[at] = ilp_col(m->ilp, 0, INFINITY, cost, false);
	return h->col[at];
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
		struct shared_conversions h = { .nproduced = produced.n };

		for (; i < m->nedge && m->edge[i].producer == e->producer
		     && m->edge[i].result_index == e->result_index; i++)
			add_conversion_edge(m, &m->edge[i], &produced, &h);
	}
}

/* ---- the answer ---- */

/* A pivot takes the longer, the more classes there are: in a draft all of them
 * take a second or two. */
static struct ilp_limit
work_limit(const struct strategy_ilp *m)
{
	enum { PIVOTS = 5000, CLASSES_TIMES_PIVOTS = 2000000 };
	int64_t pivots = CLASSES_TIMES_PIVOTS / (1 + (int64_t)m->c.nclass);

	if (!m->s->pass->opt->strategy_draft)
		return (struct ilp_limit){ .pivots = 2000000, .nodes = 2000,
			.watch = m->s->pass->watch };
	return (struct ilp_limit){
		.pivots = pivots < PIVOTS ? pivots + 1 : PIVOTS,
		.nodes = 20, .watch = m->s->pass->watch };
}

struct ilp_answer
strategy_ilp_solve(struct strategy_ilp *m)
{
	struct ilp_limit limit;
	struct ilp_answer a;

	m->seed = m->s->pass->opt->strategy_seed;
	strategy_find_classes(m);
	strategy_find_edges(m);
	limit = work_limit(m);
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

	/* with more work the strategies would be others */
	if (s->pass->opt->strategy_draft && a.status != ILP_OPTIMAL)
		return false;
	if (!a.x)
		return strategy_refuse(&m);
	for (uint32_t e = 1; e < m.c.n; e++)
		strategies_of(&m, e)->chosen = strategy_ilp_choice(&m, &a, e);
	s->pass->result.strategy_sec = a.objective / 1e3;
	if (s->pass->opt->stats)
		diag_note(s->pass->diag, "sharding: %u classes of %u nodes, "
		          "%zu edges, %.3g ms", m.c.nclass, s->g->nnode - 1,
		          m.nedge, a.objective);
	return true;
}
