/* The sharding strategies ("ways") of a graph.
 *
 * Seeds are cuts of products with a parameter (columns, rows of the
 * parameter, and with --sp rows of what comes in), of convolutions' channels
 * or groups, of norms' rows, and of tables' rows and columns.  Each is
 * followed through the graph in both directions by the ops' rules until
 * nothing new is found.  This is what finds heads, packed projections and
 * gated halves: a cut of a product's columns that comes out as whole heads at
 * the attention is one that fits.
 */
#include "passes/shard/shard.h"

#include <string.h>

enum { CUTS_MAX = 12 };                 /* of one value */

struct found {
	ValId v;
	Split cut;
};

struct search {
	struct shard *s;
	struct found *queue;
	size_t n, cap, done;
};

static void
seed(struct search *f, ValId v, const Split *cut)
{
	struct shard *s = f->s;
	struct cuts *c = &s->cut[v];
	Shape local;

	if (!split_local(cut, s->ranks, &s->g->val[v].shape, &local))
		return;
	for (int i = 0; i < c->n; i++)
		if (split_eq(&c->cut[i], cut))
			return;
	if (c->n == CUTS_MAX)
		return;
	c->cut = arena_grow(s->tmp, c->cut, (size_t)c->n, &c->cap,
	                    (size_t)c->n + 1, sizeof *c->cut);
	c->cut[c->n++] = *cut;
	f->queue = arena_grow(s->tmp, f->queue, f->n, &f->cap, f->n + 1,
	                      sizeof *f->queue);
	f->queue[f->n++] = (struct found){ v, *cut };
}

/* Values through which no gradient passes are whole in one way only. */
static void
settle_sides(const struct shard *s, const Node *n, Split *at)
{
	for (int p = 0; p < n->nin + n->nout; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		if (at[p].kind == SPLIT_R && !s->grad[v])
			at[p].kind = SPLIT_I;
	}
}

/* Without what lies behind the parts, so that ways can be ordered as bytes. */
static Split
canonical(const Split *s)
{
	Split to = { .kind = s->kind };

	if (s->kind != SPLIT_S)
		return to;
	to.axis = s->axis;
	to.lead = s->lead;
	to.shared = s->shared;
	to.npart = s->npart;
	memcpy(to.part, s->part, (size_t)s->npart * sizeof *s->part);
	return to;
}

static void
add_way(struct shard *s, struct choice *c, const Split *at, int nport,
        double sec)
{
	Split *copy = arena_array(s->tmp, (size_t)nport + 1, sizeof *copy);

	for (int i = 0; i < c->n; i++) {
		bool same = true;

		for (int p = 0; p < nport && same; p++)
			same = split_eq(&c->way[i].at[p], &at[p]);
		if (same)
			return;
	}
	c->way = arena_grow(s->tmp, c->way, (size_t)c->n, &c->cap,
	                    (size_t)c->n + 1, sizeof *c->way);
	for (int p = 0; p < nport; p++)
		copy[p] = canonical(&at[p]);
	c->way[c->n++] = (struct way){ copy, sec };
}

/* Follow a cut that port `port` of the node has. */
static void
follow(struct search *f, NodeId id, int port, const Split *cut)
{
	struct shard *s = f->s;
	const Node *n = &s->g->node[id];
	int nport = n->nin + n->nout;
	Split at[16];

	if (nport > 16
	    || !shard_follow(s->g, n, s->ranks, port, cut, at))
		return;
	for (int p = 0; p < nport; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		if (v && at[p].kind == SPLIT_S)
			seed(f, v, &at[p]);
	}
	settle_sides(s, n, at);
	add_way(s, &s->node[id], at, nport, shard_node_price(s, n, true));
}

/* ---- seeds ---- */

static bool
has_weight(const Graph *g, const Node *n)
{
	return op_info[n->op].flags & F_BIAS2
		&& (val_param_of(g, n->in[0])
		    || val_param_of(g, n->in[1]));
}

static void
seed_dim(struct search *f, ValId v, int axis)
{
	Split cut = split_cut(axis, f->s->g->val[v].shape.dim[axis]);

	seed(f, v, &cut);
}

/* All of a value's leading dims but the last ones, as one. */
static void
seed_rows(struct search *f, ValId v, int end)
{
	const Shape *x = &f->s->g->val[v].shape;
	Split cut = { .kind = SPLIT_S, .axis = end - 1, .npart = 1,
		.shared = 1, .part = { 1 } };

	if (end < 1)
		return;
	for (int i = 0; i < end; i++)
		cut.part[0] *= x->dim[i];
	cut = split_normal(&cut, f->s->ranks, x);
	seed(f, v, &cut);
}

static void
seed_product(struct search *f, const Node *n)
{
	const Graph *g = f->s->g;

	for (int k = 0; k < 2; k++) {
		int rank = g->val[n->in[k]].shape.rank;

		if (!val_param_of(g, n->in[k]))
			continue;
		seed_dim(f, n->in[k], rank - 1);
		seed_dim(f, n->in[k], rank - 2);
	}
	if (f->s->pass->opt->sp && g->val[n->out[0]].shape.rank == 2)
		seed_rows(f, n->out[0], 1);
}

/* Channels out and in; of groups, which lie along the former, those alone
 * that can be cut. */
static void
seed_conv(struct search *f, const Node *n)
{
	const struct shard *s = f->s;
	ValId w = n->in[1];

	for (int axis = 0; axis < 2 && val_param_of(s->g, w); axis++) {
		Split cut = split_cut(axis, s->g->val[w].shape.dim[axis]);
		Split at[4];

		if (shard_follow(s->g, n, s->ranks, 1, &cut, at))
			seed(f, w, &cut);
	}
}

/* Slices that take a dim apart say where its stretches end. */
static void
seed_stretches(struct search *f, ValId v)
{
	struct shard *s = f->s;
	const Graph *g = s->g;
	const Shape *x = &g->val[v].shape;

	for (int axis = 0; axis < x->rank; axis++) {
		Split cut = { .kind = SPLIT_S, .axis = axis, .lead = axis,
			.shared = 1 };
		int64_t at = 0, before = -1;

		while (at < x->dim[axis] && at != before
		       && cut.npart < MAX_RANK) {
			before = at;
			FOR_USES (i, &s->uses, v) {
				const Node *n = &g->node[s->uses.node[i]];
				const Shape *y = &g->val[n->out[0]].shape;

				if (n->op != OP_SLICE || at != before
				    || n->attr.SLICE.start.v[axis] != at
				    || n->attr.SLICE.step.v[axis] != 1
				    || y->dim[axis] == x->dim[axis])
					continue;
				cut.part[cut.npart++] = y->dim[axis];
				at += y->dim[axis];
			}
		}
		if (at == x->dim[axis] && cut.npart > 1)
			seed(f, v, &cut);
	}
}

static int64_t
norm_axis(const Graph *g, const Node *n)
{
	int64_t axis = n->attr.LAYERNORM.axis;

	return axis < 0 ? axis + g->val[n->in[0]].shape.rank : axis;
}

static void
find_seeds(struct search *f)
{
	const Graph *g = f->s->g;

	FOR_NODES (n, g) {
		if (has_weight(g, n) && n->op == OP_MATMUL)
			seed_product(f, n);
		else if (has_weight(g, n))
			seed_conv(f, n);
		if (n->op == OP_GATHER && val_param_of(g, n->in[0])
		    && g->val[n->in[0]].shape.rank == 2) {
			seed_dim(f, n->in[0], (int)n->attr.GATHER.axis);
			seed_dim(f, n->in[0], 1 - (int)n->attr.GATHER.axis);
		}
		if (f->s->pass->opt->sp && (n->op == OP_LAYERNORM
		                            || n->op == OP_RMSNORM))
			seed_rows(f, n->in[0], (int)norm_axis(g, n));
	}
	for (ValId v = 1; v < g->nval; v++)
		if (f->s->uses.first[v + 1] - f->s->uses.first[v] > 1)
			seed_stretches(f, v);
}

/* ---- all ways ---- */

/* Everything whole, the one way that each op has. */
static void
add_whole(struct shard *s, NodeId id, SplitKind kind)
{
	const Node *n = &s->g->node[id];
	int nport = n->nin + n->nout;
	Split *at = arena_array(s->tmp, (size_t)nport + 1, sizeof *at);

	for (int p = 0; p < nport; p++)
		at[p].kind = kind;
	settle_sides(s, n, at);
	add_way(s, &s->node[id], at, nport, shard_node_price(s, n, false));
}

/* Some reader of v can take it cut so. */
static bool
is_read(const struct shard *s, ValId v, const Split *cut)
{
	FOR_USES (i, &s->uses, v) {
		const Node *n = &s->g->node[s->uses.node[i]];
		const struct choice *c = &s->node[s->uses.node[i]];

		for (int k = 0; k < n->nin; k++)
			for (int w = 0; n->in[k] == v && w < c->n; w++)
				if (split_eq(&c->way[w].at[k], cut))
					return true;
	}
	return false;
}

/* A parameter or a running statistic lies as somebody can read it; nothing else
 * is given cut. */
static void
find_sources(struct shard *s)
{
	const Graph *g = s->g;

	for (ValId v = 1; v < g->nval; v++) {
		const Val *x = &g->val[v];
		struct choice *c = &s->source[v];
		Split at = { .kind = SPLIT_I };

		if (x->kind == V_TEMP)
			continue;
		add_way(s, c, &at, 1, 0);
		if (x->kind != V_PARAM && x->kind != V_BUFFER)
			continue;
		if (s->grad[v]) {
			at.kind = SPLIT_R;
			add_way(s, c, &at, 1, shard_param_price(s, v, &at));
		}
		for (int i = 0; i < s->cut[v].n; i++)
			if (s->cut[v].cut[i].shared == 1
			    && s->cut[v].cut[i].lead == s->cut[v].cut[i].axis
			    && is_read(s, v, &s->cut[v].cut[i]))
				add_way(s, c, &s->cut[v].cut[i], 1, 0);
	}
}

static int
way_order(const void *a, const void *b, int nport)
{
	const struct way *x = a, *y = b;

	return memcmp(x->at, y->at, (size_t)nport * sizeof *x->at);
}

/* Equal nodes list equal ways in one order. */
static void
sort_ways(struct choice *c, int nport)
{
	for (int i = 1; i < c->n; i++)
		for (int k = i; k > 0 && way_order(&c->way[k - 1], &c->way[k],
		                                   nport) > 0; k--) {
			struct way w = c->way[k];

			c->way[k] = c->way[k - 1];
			c->way[k - 1] = w;
		}
}

void
shard_find_ways(struct shard *s)
{
	Graph *g = s->g;
	struct search f = { .s = s };

	s->uses = graph_uses(g, s->tmp);
	s->node = arena_array(s->tmp, g->nnode, sizeof *s->node);
	s->source = arena_array(s->tmp, g->nval, sizeof *s->source);
	s->cut = arena_array(s->tmp, g->nval, sizeof *s->cut);
	find_seeds(&f);
	for (; f.done < f.n; f.done++) {
		const struct found x = f.queue[f.done];
		const Val *v = &g->val[x.v];

		if (v->def)
			follow(&f, v->def, g->node[v->def].nin + v->slot,
			       &x.cut);
		FOR_USES (i, &s->uses, x.v) {
			const Node *n = &g->node[s->uses.node[i]];

			for (int k = 0; k < n->nin; k++)
				if (n->in[k] == x.v)
					follow(&f, s->uses.node[i], k, &x.cut);
		}
	}
	for (NodeId id = 1; id < g->nnode; id++) {
		add_whole(s, id, SPLIT_I);
		add_whole(s, id, SPLIT_R);
		sort_ways(&s->node[id], g->node[id].nin + g->node[id].nout);
	}
	find_sources(s);
	for (ValId v = 1; v < g->nval; v++)
		sort_ways(&s->source[v], 1);
}

struct choice *
shard_giver(struct shard *s, ValId v, int *port)
{
	NodeId def = s->g->val[v].def;

	*port = def ? s->g->node[def].nin + s->g->val[v].slot : 0;
	return def ? &s->node[def] : &s->source[v];
}
