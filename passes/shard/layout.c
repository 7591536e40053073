/* The choice among ways: a 0-1 program.
 *
 * A node takes one of its ways.  Between the state in which a value is given
 * and the one in which a reader wants it lies a conversion; readers that want
 * the same share it.  Giver and reader are joined by a transportation problem
 * per edge (rows: the giver's states; columns: the reader's), which keeps the
 * relaxation tight: Alpa's linearised products (Zheng et al. 2022) need
 * several times the rows and branch.
 *
 * Equal nodes in equal surroundings (colour refinement over a few hops, after
 * Weisfeiler and Leman) take the same way, so that the layers of a model
 * count once.
 */
#include "passes/shard/shard.h"

#include <math.h>
#include <string.h>

#include "ir/base/glob.h"
#include "passes/solve/ilp.h"

enum { HOPS = 4 };

/* Nodes by id, then values that no node writes by nnode + id. */
struct classes {
	uint32_t n;                     /* entities */
	uint32_t *of;                   /* class, by entity */
	uint32_t nclass;
	uint32_t *first;                /* an entity of each */
	double *count;
	int *col;                       /* column of its first way */
};

struct edge {
	uint32_t giver, reader;         /* classes */
	int slot, port;
	ValId v;                        /* of the representative */
	double count;
};

struct state_list {
	Split *s;
	int n;
};

struct layout {
	struct shard *s;
	struct classes c;
	struct edge *edge;
	size_t nedge, edge_cap;
	Ilp *ilp;
	uint32_t seed;
};

static uint32_t
entity_of(const struct shard *s, ValId v)
{
	NodeId def = s->g->val[v].def;

	return def ? def : s->g->nnode + v;
}

static struct choice *
choice_of(const struct layout *l, uint32_t entity)
{
	const struct shard *s = l->s;

	return entity < s->g->nnode ? &s->node[entity]
		: &s->source[entity - s->g->nnode];
}

/* ---- classes ---- */

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h ^= x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h *= 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static uint64_t
hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

static uint64_t
hash_shape(uint64_t h, const Shape *s)
{
	h = mix(h, (uint64_t)s->rank);
	for (int i = 0; i < s->rank; i++)
		h = mix(h, (uint64_t)s->dim[i]);
	return h;
}

static uint64_t
hash_choice(const struct choice *c, int nport)
{
	uint64_t h = (uint64_t)c->n;

	for (int i = 0; i < c->n; i++)
		h = hash_bytes(h, c->way[i].at,
		               (size_t)nport * sizeof *c->way[i].at);
	return h;
}

/* The wish for a value, NULL if there is none; the last one counts. */
static const struct shard_wish *
wish_for(const struct shard *s, ValId v)
{
	const struct options *o = s->pass->opt;

	for (int i = o->nshard; v && i-- > 0; )
		if (glob_match(o->shard[i].glob, s->g->val[v].name)
		    || (s->g->val[v].onnx
		        && glob_match(o->shard[i].glob, s->g->val[v].onnx)))
			return &o->shard[i];
	return NULL;
}

static bool
breaks_wish(const struct shard *s, ValId v, const Split *at)
{
	const struct shard_wish *w = wish_for(s, v);

	return w && (at->kind != w->kind
	             || (w->kind == SPLIT_S && at->axis != w->axis));
}

static uint64_t
hash_wish(const struct shard *s, ValId v)
{
	const struct shard_wish *w = wish_for(s, v);

	return w ? 1 + (uint64_t)w->kind + 4 * (uint64_t)w->axis : 0;
}

/* What an entity is by itself. */
static uint64_t
own_colour(const struct layout *l, uint32_t e)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint64_t h;

	if (e >= g->nnode) {
		const Val *v = &g->val[e - g->nnode];

		h = mix(hash_shape(v->kind, &v->shape), v->dt);
		h = mix(h, hash_wish(s, e - g->nnode));
		return mix(h, hash_choice(&s->source[e - g->nnode], 1));
	}
	const Node *n = &g->node[e];

	h = mix(n->op, hash_choice(&s->node[e], n->nin + n->nout));
	for (int k = 0; k < n->nin; k++)
		h = hash_shape(h, &g->val[n->in[k]].shape);
	for (int k = 0; k < n->nout; k++)
		h = mix(hash_shape(h + hash_wish(s, n->out[k]),
		                   &g->val[n->out[k]].shape),
		        g->val[n->out[k]].output | 2 * (n->out[k] == g->loss));
	return h;
}

/* One round: an entity's colour, its givers' by port and its readers'. */
static void
refine(const struct layout *l, const uint64_t *old, uint64_t *fresh)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint64_t *readers = arena_array(s->tmp, l->c.n, sizeof *readers);

	for (NodeId i = 1; i < g->nnode; i++) {
		const Node *n = &g->node[i];

		fresh[i] = old[i];
		for (int k = 0; k < n->nin; k++) {
			uint32_t e = entity_of(s, n->in[k]);

			if (!n->in[k])
				continue;
			fresh[i] = mix(fresh[i], mix(old[e], (uint64_t)
			               g->val[n->in[k]].slot));
			readers[e] += mix(mix(old[i], (uint64_t)k),
			                  (uint64_t)g->val[n->in[k]].slot);
		}
	}
	for (uint32_t e = g->nnode; e < l->c.n; e++)
		fresh[e] = old[e];
	for (uint32_t e = 1; e < l->c.n; e++)
		fresh[e] = mix(fresh[e], readers[e]);
}

/* Classes in the order of their first entity. */
static void
number(struct layout *l, const uint64_t *colour)
{
	struct classes *c = &l->c;
	Arena *tmp = l->s->tmp;
	size_t size = 64;
	uint32_t *slot;

	while (size < 2 * (size_t)c->n)
		size *= 2;
	slot = arena_array(tmp, size, sizeof *slot);    /* class + 1 */
	c->of = arena_array(tmp, c->n, sizeof *c->of);
	c->first = arena_array(tmp, c->n, sizeof *c->first);
	c->count = arena_array(tmp, c->n, sizeof *c->count);
	c->col = arena_array(tmp, c->n, sizeof *c->col);
	for (uint32_t e = 1; e < c->n; e++) {
		size_t at = (size_t)colour[e] & (size - 1);

		if (choice_of(l, e)->n == 0)
			continue;
		while (slot[at] && colour[c->first[slot[at] - 1]] != colour[e])
			at = (at + 1) & (size - 1);
		if (!slot[at]) {
			slot[at] = c->nclass + 1;
			c->first[c->nclass++] = e;
		}
		c->of[e] = slot[at] - 1;
		c->count[c->of[e]]++;
	}
}

static void
find_classes(struct layout *l)
{
	struct shard *s = l->s;
	uint64_t *old, *fresh;

	l->c.n = s->g->nnode + s->g->nval;
	old = arena_array(s->tmp, l->c.n, sizeof *old);
	fresh = arena_array(s->tmp, l->c.n, sizeof *fresh);
	for (uint32_t e = 1; e < l->c.n; e++)
		if (e != s->g->nnode)
			old[e] = own_colour(l, e);
	for (int hop = 0; hop < HOPS; hop++) {
		uint64_t *t = old;

		refine(l, old, fresh);
		old = fresh;
		fresh = t;
	}
	number(l, old);
}

static int
edge_order(const struct edge *a, const struct edge *b)
{
	if (a->giver != b->giver)
		return a->giver < b->giver ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->reader != b->reader)
		return a->reader < b->reader ? -1 : 1;
	return a->port < b->port ? -1 : a->port > b->port;
}

/* Pairs of classes that some value joins. */
static void
find_edges(struct layout *l)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;

	for (NodeId i = 1; i < g->nnode; i++)
		for (int k = 0; k < g->node[i].nin; k++) {
			ValId v = g->node[i].in[k];
			struct edge e = { .reader = l->c.of[i], .port = k,
				.v = v, .count = 1 };
			size_t low = 0, high = l->nedge;

			if (!v)
				continue;
			e.giver = l->c.of[entity_of(s, v)];
			e.slot = g->val[v].slot;
			while (low < high) {
				size_t mid = (low + high) / 2;

				if (edge_order(&l->edge[mid], &e) < 0)
					low = mid + 1;
				else
					high = mid;
			}
			if (low < l->nedge
			    && edge_order(&l->edge[low], &e) == 0) {
				l->edge[low].count++;
				continue;
			}
			l->edge = arena_grow(s->tmp, l->edge, l->nedge,
			                     &l->edge_cap, l->nedge + 1,
			                     sizeof *l->edge);
			memmove(l->edge + low + 1, l->edge + low,
			        (l->nedge - low) * sizeof *l->edge);
			l->edge[low] = e;
			l->nedge++;
		}
}

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

static bool
has_cut(const struct way *w, int port)
{
	return w->at[port].kind == SPLIT_S;
}

static bool
is_norm(const Node *n)
{
	return n->op == OP_LAYERNORM || n->op == OP_RMSNORM;
}

/* Without --sp the input of a norm that cannot be cut, such as those of the
 * residual stream, is complete on every rank. */
static bool
feeds_norm(const struct shard *s, NodeId id)
{
	const Graph *g = s->g;
	ValId v = g->node[id].out[0];

	FOR_USES (i, &s->uses, v) {
		const Node *n = &g->node[s->uses.node[i]];
		const struct choice *c = &s->node[s->uses.node[i]];
		bool cut = false;

		for (int k = 0; k < c->n; k++)
			cut |= has_cut(&c->way[k], 0);
		if (is_norm(n) && n->in[0] == v && !cut)
			return true;
	}
	return false;
}

/* Whether a way breaks what is asked for. */
static bool
is_forbidden(const struct layout *l, uint32_t class, const struct way *w)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint32_t e = l->c.first[class];
	const Node *n;

	if (e >= g->nnode)
		return breaks_wish(s, e - g->nnode, &w->at[0]);
	n = &g->node[e];
	if (!s->pass->opt->sp && !s->pass->opt->layout_seed
	    && (is_norm(n) ? w->at[0].kind == SPLIT_R
	        : feeds_norm(s, e) && has_cut(w, n->nin)))
		return true;
	for (int k = 0; k < n->nout; k++) {
		const Split *at = &w->at[n->nin + k];

		if (n->out[k] && breaks_wish(s, n->out[k], at))
			return true;
		if (n->out[k] == g->loss && g->loss && at->kind != SPLIT_I)
			return true;
		if (n->out[k] && g->val[n->out[k]].output
		    && at->kind == SPLIT_P)
			return true;
	}
	return false;
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

/* Ways with a cut of this port are the only ones, where there are any. */
static bool
demands_cut(const struct layout *l, uint32_t class, int *port)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint32_t e = l->c.first[class];
	const struct choice *c = choice_of(l, e);

	*port = 0;
	if (s->pass->opt->layout_seed)
		return false;
	if (e >= g->nnode) {
		const Val *v = &g->val[e - g->nnode];

		if (v->kind != V_PARAM || v->shape.rank < 2
		    || !shard_is_large(s, e - g->nnode))
			return false;
	} else if (!s->pass->opt->sp || !is_norm(&g->node[e])) {
		return false;
	}
	for (int i = 0; i < c->n; i++)
		if (has_cut(&c->way[i], 0) && !is_forbidden(l, class,
		                                            &c->way[i]))
			return true;
	return false;
}

static void
add_ways(struct layout *l)
{
	for (uint32_t k = 0; k < l->c.nclass; k++) {
		const struct choice *c = choice_of(l, l->c.first[k]);
		int *col = arena_array(l->s->tmp, (size_t)c->n + 1,
		                       sizeof *col), port;
		double *one = arena_array(l->s->tmp, (size_t)c->n + 1,
		                          sizeof *one);
		bool cut = demands_cut(l, k, &port);

		for (int i = 0; i < c->n; i++) {
			bool out = is_forbidden(l, k, &c->way[i])
				|| (cut && !has_cut(&c->way[i], port));

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

static void
read_answer(struct layout *l, const double *x)
{
	for (uint32_t e = 1; e < l->c.n; e++) {
		struct choice *c = choice_of(l, e);
		double most = -1;

		for (int i = 0; i < c->n; i++)
			if (x[l->c.col[l->c.of[e]] + i] > most) {
				most = x[l->c.col[l->c.of[e]] + i];
				c->chosen = i;
			}
	}
}

bool
shard_choose(struct shard *s)
{
	struct layout l = { .s = s };
	struct ilp_limit limit = { .pivots = 2000000, .nodes = 2000,
		.watch = s->pass->watch };
	struct ilp_answer a;

	l.seed = s->pass->opt->layout_seed;
	find_classes(&l);
	find_edges(&l);
	l.ilp = ilp_new(s->tmp);
	add_ways(&l);
	add_edges(&l);
	a = ilp_solve(l.ilp, &limit, s->tmp);
	ilp_free(l.ilp);
	if (!a.x)
		return diag_error(s->pass->diag, "--tp: no layout over %lld "
		                  "ranks was found", (long long)s->ranks);
	read_answer(&l, a.x);
	if (s->pass->opt->stats)
		diag_note(s->pass->diag, "layout: %u classes of %u nodes, %zu "
		          "edges, %.3g ms", l.c.nclass, s->g->nnode - 1,
		          l.nedge, a.objective);
	return true;
}
