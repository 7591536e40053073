/* Choose sharding strategies by a 0-1 program.
 *
 * A node takes one of its strategies.  A conversion connects the placement
 * that a producer gives with the one that a reader requires; readers that
 * require the same share it.  Producer and reader are joined by a
 * transportation problem per edge (rows: placements of the producer; columns:
 * those of the reader), which keeps the relaxation tight: Alpa's linearised
 * products (Zheng et al. 2022) need several times the rows and branch.
 *
 * Equal layers count once (classes.c).
 */
#include "passes/shard/layout.h"

#include <math.h>
#include <string.h>

struct state_list {
	Split *s;
	int n;
};

/* ---- the program ---- */

static int
giver_port(const struct layout *l, uint32_t class, int slot)
{
	uint32_t e = l->c.first[class];

	return e < l->s->g->nnode ? l->s->g->node[e].nin + slot : 0;
}

static int
state_index(struct layout *l, struct state_list *list, const Split *s)
{
	for (int i = 0; i < list->n; i++)
		if (split_eq(&list->s[i], s))
			return i;
	if (!list->s)
		list->s = arena_array(l->s->tmp, 64, sizeof *list->s);
	if (list->n == 64)
		return 0;
	list->s[list->n] = *s;
	return list->n++;
}

/* The states that a class' ways have at a port. */
static struct state_list
states_at(struct layout *l, uint32_t class, int port)
{
	const struct choice *c = choice_of(l, l->c.first[class]);
	struct state_list list = { NULL, 0 };

	for (int i = 0; i < c->n; i++)
		state_index(l, &list, &c->way[i].at[port]);
	return list;
}

/* A price, or one drawn by chance. */
static double
priced(struct layout *l, double sec)
{
	uint32_t *seed = &l->seed;

	if (!l->s->pass->opt->layout_seed || sec < 0)
		return sec;
	*seed = *seed * 1664525u + 1013904223u;
	return 1e-6 * (double)(*seed >> 16 & 1023);
}

/* It has the state that is not wanted. */
static bool
is_out(const struct layout *l, uint32_t class, const struct way *w)
{
	return l->not && class == l->c.of[l->alone]
		&& split_eq(&w->at[l->port], l->not);
}

static void
add_ways(struct layout *l)
{
	for (uint32_t k = 0; k < l->c.nclass; k++) {
		const struct choice *c = choice_of(l, l->c.first[k]);
		int *col = arena_array(l->s->tmp, (size_t)c->n + 1,
		                       sizeof *col);
		double *one = arena_array(l->s->tmp, (size_t)c->n + 1,
		                          sizeof *one);
		bool cut = layout_demands_cut(l, k);

		for (int i = 0; i < c->n; i++) {
			bool out = layout_forbids(l, k, &c->way[i])
				|| (cut && !has_cut(&c->way[i], 0))
				|| is_out(l, k, &c->way[i]);

			col[i] = ilp_col(l->ilp, 0, out ? 0 : 1,
			                 l->c.count[k] * 1e3
			                 * priced(l, c->way[i].sec),
			                 true);
			one[i] = 1;
		}
		l->c.col[k] = col[0];
		ilp_row(l->ilp, 1, 1, c->n, col, one);
	}
}

/* sum of z = sum of the ways of the class with this state at the port. */
static void
add_side(struct layout *l, uint32_t class, int port, const Split *state,
         const int *z, int nz)
{
	const struct choice *c = choice_of(l, l->c.first[class]);
	size_t most = (size_t)nz + (size_t)c->n + 1;
	int *col = arena_array(l->s->tmp, most, sizeof *col), n = 0;
	double *coef = arena_array(l->s->tmp, most, sizeof *coef);

	for (int i = 0; i < nz; i++) {
		col[n] = z[i];
		coef[n++] = 1;
	}
	for (int i = 0; i < c->n; i++)
		if (split_eq(&c->way[i].at[port], state)) {
			col[n] = l->c.col[class] + i;
			coef[n++] = -1;
		}
	ilp_row(l->ilp, 0, 0, n, col, coef);
}

/* Conversions of one value, shared by its readers. */
struct shared {
	int *col;                       /* from * wanted; -1: not there yet */
	struct state_list wanted;
};

static int
shared_col(struct layout *l, struct shared *h, int from, const Split *to,
           double cost)
{
	int u = state_index(l, &h->wanted, to), *col = &h->col[from * 64 + u];

	if (*col < 0)
		*col = ilp_col(l->ilp, 0, INFINITY, cost, false);
	return *col;
}

static void
add_edge(struct layout *l, const struct edge *e,
         const struct state_list *given, struct shared *h)
{
	struct state_list want = states_at(l, e->reader, e->port);
	int out = giver_port(l, e->giver, e->slot), nz = given->n * want.n;
	int *z = arena_array(l->s->tmp, (size_t)nz + 1, sizeof *z);
	int *some = arena_array(l->s->tmp, (size_t)nz + 1, sizeof *some);

	for (int i = 0; i < nz; i++) {
		const Split *from = &given->s[i / want.n];
		const Split *to = &want.s[i % want.n];
		double sec = shard_conversion(l->s, e->v, from, to) * 1e3;

		if (sec > 0)
			sec = priced(l, sec);

		z[i] = ilp_col(l->ilp, 0, sec < 0 ? 0 : 1, 0, false);
		if (sec <= 0)
			continue;
		int both[2] = { shared_col(l, h, i / want.n, to, sec
		                           * l->c.count[e->giver]), z[i] };

		ilp_row(l->ilp, 0, INFINITY, 2, both, (double[]){ 1, -1 });
	}
	for (int i = 0; i < given->n; i++)
		add_side(l, e->giver, out, &given->s[i], z + i * want.n,
		         want.n);
	for (int u = 0; u < want.n; u++) {
		for (int i = 0; i < given->n; i++)
			some[i] = z[i * want.n + u];
		add_side(l, e->reader, e->port, &want.s[u], some, given->n);
	}
}

static void
add_edges(struct layout *l)
{
	for (size_t i = 0; i < l->nedge; ) {
		const struct edge *e = &l->edge[i];
		struct state_list given = states_at(l, e->giver,
			giver_port(l, e->giver, e->slot));
		struct shared h = { .wanted = { NULL, 0 } };

		h.col = arena_array(l->s->tmp, (size_t)given.n * 64 + 1,
		                    sizeof *h.col);
		memset(h.col, -1, ((size_t)given.n * 64 + 1) * sizeof *h.col);
		for (; i < l->nedge && l->edge[i].giver == e->giver
		     && l->edge[i].slot == e->slot; i++)
			add_edge(l, &l->edge[i], &given, &h);
	}
}

/* ---- the answer ---- */

struct ilp_answer
layout_solve(struct layout *l)
{
	const struct ilp_limit limit = { .pivots = 2000000, .nodes = 2000,
		.watch = l->s->pass->watch };
	struct ilp_answer a;

	l->seed = l->s->pass->opt->layout_seed;
	layout_find_classes(l);
	layout_find_edges(l);
	l->ilp = ilp_new(l->s->tmp);
	add_ways(l);
	add_edges(l);
	a = ilp_solve(l->ilp, &limit, l->s->tmp);
	ilp_free(l->ilp);
	return a;
}

int
layout_taken(const struct layout *l, const struct ilp_answer *a,
             uint32_t entity)
{
	const double *x = a->x + l->c.col[l->c.of[entity]];
	int n = choice_of(l, entity)->n, best = 0;

	for (int i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	return best;
}

bool
shard_choose(struct shard *s)
{
	struct layout l = { .s = s };
	struct ilp_answer a = layout_solve(&l);

	if (!a.x)
		return layout_refuse(&l);
	for (uint32_t e = 1; e < l.c.n; e++)
		choice_of(&l, e)->chosen = layout_taken(&l, &a, e);
	s->pass->layout_sec = a.objective / 1e3;
	if (s->pass->opt->stats)
		diag_note(s->pass->diag, "layout: %u classes of %u nodes, %zu "
		          "edges, %.3g ms", l.c.nclass, s->g->nnode - 1,
		          l.nedge, a.objective);
	return true;
}
