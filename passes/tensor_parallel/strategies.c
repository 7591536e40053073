/* The sharding strategies of a graph.
 *
 * Seeds are shardings of products with a parameter (columns, rows of the
 * parameter, and with --sp rows of the input), of convolutions' channels or
 * groups, of norms' rows, and of tables' rows and columns.  The ops' rules
 * propagate each through the graph in both directions to a fixpoint.  This
 * finds heads, packed projections and gated halves: a sharding of a product's
 * columns fits if it reaches the attention as whole heads.
 */
#include "passes/tensor_parallel/strategies.h"

#include <string.h>

enum { SHARDINGS_MAX = 12 };            /* shardings of one value */

struct found_sharding {
	ValId v;
	Placement sharding;
};

struct strategy_search {
	struct shard *s;
	struct found_sharding *queue;
	size_t n, cap, done;
};

static void
add_seed(struct strategy_search *f, ValId v, const Placement *sharding)
{
	struct shard *s = f->s;
	struct sharding_list *c = &s->sharding[v];
	Shape local;

	if (!placement_local(sharding, s->ranks, &s->g->val[v].shape, &local))
		return;
	for (int i = 0; i < c->n; i++)
		if (placement_eq(&c->sharding[i], sharding))
			return;
	if (c->n == SHARDINGS_MAX)
		return;
	c->sharding = arena_grow(s->tmp, c->sharding, (size_t)c->n, &c->cap,
	                         (size_t)c->n + 1, sizeof *c->sharding);
	c->sharding[c->n++] = *sharding;
	f->queue = arena_grow(s->tmp, f->queue, f->n, &f->cap, f->n + 1,
	                      sizeof *f->queue);
	f->queue[f->n++] = (struct found_sharding){ v, *sharding };
}

/* Values through which no gradient passes have one replicated placement. */
static void
normalise_replicated(const struct shard *s, const Node *n, Placement *at)
{
	for (int p = 0; p < n->nin + n->nout; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		if (at[p].kind == PLACEMENT_REPLICATE_PARTIAL && !s->grad[v])
			at[p].kind = PLACEMENT_REPLICATE;
	}
}

/* Clear the bytes after the parts, so that strategies compare as bytes. */
static Placement
canonical_placement(const Placement *s)
{
	Placement to = { .kind = s->kind };

	if (s->kind != PLACEMENT_SHARD)
		return to;
	to.axis = s->axis;
	to.first_axis = s->first_axis;
	to.replication = s->replication;
	to.nsegment = s->nsegment;
	memcpy(to.segment, s->segment,
	       (size_t)s->nsegment * sizeof *s->segment);
	return to;
}

static void
add_strategy(struct shard *s, struct strategy_set *c, const Placement *at,
             int nvalue, double sec)
{
	Placement *copy = arena_array(s->tmp, (size_t)nvalue + 1, sizeof *copy);

	for (int i = 0; i < c->n; i++) {
		bool same = true;

		for (int p = 0; p < nvalue && same; p++)
			same = placement_eq(&c->strategy[i].at[p], &at[p]);
		if (same)
			return;
	}
	c->strategy = arena_grow(s->tmp, c->strategy, (size_t)c->n, &c->cap,
	                         (size_t)c->n + 1, sizeof *c->strategy);
	for (int p = 0; p < nvalue; p++)
		copy[p] = canonical_placement(&at[p]);
	c->strategy[c->n++] = (struct strategy){ copy, sec };
}

/* Follow a sharding of one operand or result of the node. */
static void
follow_sharding(struct strategy_search *f, NodeId id, int value_index,
                const Placement *sharding)
{
	struct shard *s = f->s;
	const Node *n = &s->g->node[id];
	int nvalue = n->nin + n->nout;
	Placement at[16];

	if (nvalue > 16
	    || !sharding_follow(s->g, n, s->ranks, value_index, sharding, at))
		return;
	for (int p = 0; p < nvalue; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		if (v && at[p].kind == PLACEMENT_SHARD)
			add_seed(f, v, &at[p]);
	}
	normalise_replicated(s, n, at);
	add_strategy(s, &s->node[id], at, nvalue,
	             shard_node_cost(s, n, at + n->nin, true));
}

/* ---- seeds ---- */

static bool
has_param_operand(const Graph *g, const Node *n)
{
	return op_info[n->op].flags & F_BIAS2
		&& (val_param_of(g, n->in[0])
		    || val_param_of(g, n->in[1]));
}

static void
seed_dim(struct strategy_search *f, ValId v, int axis)
{
	Placement sharding = placement_dim(axis,
	                                   f->s->g->val[v].shape.dim[axis]);

	add_seed(f, v, &sharding);
}

/* A value's leading dims, all but the last ones, merged into one. */
static void
seed_rows(struct strategy_search *f, ValId v, int end)
{
	const Shape *x = &f->s->g->val[v].shape;
	Placement sharding = { .kind = PLACEMENT_SHARD,
		               .axis = end - 1,
		               .nsegment = 1,
		               .replication = 1,
		               .segment = { 1 } };

	if (end < 1)
		return;
	for (int i = 0; i < end; i++)
		sharding.segment[0] *= x->dim[i];
	sharding = placement_normal(&sharding, f->s->ranks, x);
	add_seed(f, v, &sharding);
}

static void
seed_product(struct strategy_search *f, const Node *n)
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

/* Output and input channels; with groups, which divide the output channels,
 * only those that can be sharded. */
static void
seed_conv(struct strategy_search *f, const Node *n)
{
	const struct shard *s = f->s;
	ValId w = n->in[1];

	for (int axis = 0; axis < 2 && val_param_of(s->g, w); axis++) {
		Placement sharding = placement_dim(
			axis, s->g->val[w].shape.dim[axis]);
		Placement at[4];

		if (sharding_follow(s->g, n, s->ranks, 1, &sharding, at))
			add_seed(f, w, &sharding);
	}
}

/* Slices that split a dim give the ends of its segments. */
static void
seed_segments(struct strategy_search *f, ValId v)
{
	struct shard *s = f->s;
	const Graph *g = s->g;
	const Shape *x = &g->val[v].shape;

	for (int axis = 0; axis < x->rank; axis++) {
		Placement sharding = { .kind = PLACEMENT_SHARD,
			           .axis = axis,
			           .first_axis = axis,
			           .replication = 1 };
		int64_t at = 0, before = -1;

		while (at < x->dim[axis] && at != before
		       && sharding.nsegment < MAX_RANK) {
			before = at;
			FOR_USES (i, &s->uses, v) {
				const Node *n = &g->node[s->uses.node[i]];
				const Shape *y = &g->val[n->out[0]].shape;

				if (n->op != OP_SLICE || at != before
				    || n->attr.SLICE.start.v[axis] != at
				    || n->attr.SLICE.step.v[axis] != 1
				    || y->dim[axis] == x->dim[axis])
					continue;
				sharding.segment[sharding.nsegment++] =
					y->dim[axis];
				at += y->dim[axis];
			}
		}
		if (at == x->dim[axis] && sharding.nsegment > 1)
			add_seed(f, v, &sharding);
	}
}

static int64_t
norm_axis(const Graph *g, const Node *n)
{
	int64_t axis = n->attr.LAYERNORM.axis;

	return axis < 0 ? axis + g->val[n->in[0]].shape.rank : axis;
}

static void
find_seeds(struct strategy_search *f)
{
	const Graph *g = f->s->g;

	FOR_NODES (n, g) {
		if (has_param_operand(g, n) && n->op == OP_MATMUL)
			seed_product(f, n);
		else if (has_param_operand(g, n))
			seed_conv(f, n);
		if (n->op == OP_EXPERT_MATMUL)
			seed_product(f, n);
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
			seed_segments(f, v);
}

/* ---- all strategies ---- */

/* The fully replicated strategy, which each op has. */
static void
add_replicated(struct shard *s, NodeId id, PlacementKind kind)
{
	const Node *n = &s->g->node[id];
	int nvalue = n->nin + n->nout;
	Placement *at = arena_array(s->tmp, (size_t)nvalue + 1, sizeof *at);

	for (int p = 0; p < nvalue; p++)
		at[p].kind = kind;
	normalise_replicated(s, n, at);
	add_strategy(s, &s->node[id], at, nvalue,
	             shard_node_cost(s, n, at + n->nin, false));
}

/* Whether a reader of v accepts this sharding. */
static bool
is_accepted_by_reader(const struct shard *s, ValId v, const Placement *sharding)
{
	FOR_USES (i, &s->uses, v) {
		const Node *n = &s->g->node[s->uses.node[i]];
		const struct strategy_set *c = &s->node[s->uses.node[i]];

		for (int k = 0; k < n->nin; k++)
			for (int w = 0; n->in[k] == v && w < c->n; w++)
				if (placement_eq(&c->strategy[w].at[k],
				                 sharding))
					return true;
	}
	return false;
}

/* Parameters and running statistics take shardings that a reader accepts; no
 * other source is sharded. */
static void
find_source_strategies(struct shard *s)
{
	const Graph *g = s->g;

	for (ValId v = 1; v < g->nval; v++) {
		const Val *x = &g->val[v];
		struct strategy_set *c = &s->source[v];
		Placement at = { .kind = PLACEMENT_REPLICATE };

		if (x->kind == V_TEMP)
			continue;
		add_strategy(s, c, &at, 1, 0);
		if (x->kind != V_PARAM && x->kind != V_BUFFER)
			continue;
		if (s->grad[v]) {
			at.kind = PLACEMENT_REPLICATE_PARTIAL;
			add_strategy(s, c, &at, 1, shard_param_cost(s, v, &at));
		}
		for (int i = 0; i < s->sharding[v].n; i++)
			if (s->sharding[v].sharding[i].replication == 1
			    && s->sharding[v].sharding[i].first_axis
			            == s->sharding[v].sharding[i].axis
			    && is_accepted_by_reader(s, v, &s->sharding[v]
			                             .sharding[i]))
				add_strategy(s, c, &s->sharding[v].sharding[i],
				             1, 0);
	}
}

static int
compare_strategies(const void *a, const void *b, int nvalue)
{
	const struct strategy *x = a, *y = b;

	return memcmp(x->at, y->at, (size_t)nvalue * sizeof *x->at);
}

/* Sort strategies, so that equal nodes list them in the same order. */
static void
sort_strategies(struct strategy_set *c, int nvalue)
{
	for (int i = 1; i < c->n; i++)
		for (int k = i; k > 0
		     && compare_strategies(&c->strategy[k - 1], &c->strategy[k],
		                           nvalue) > 0; k--) {
			struct strategy w = c->strategy[k];

			c->strategy[k] = c->strategy[k - 1];
			c->strategy[k - 1] = w;
		}
}

void
shard_find_strategies(struct shard *s)
{
	Graph *g = s->g;
	struct strategy_search f = { .s = s };

	s->uses = graph_uses(g, s->tmp);
	s->node = arena_array(s->tmp, g->nnode, sizeof *s->node);
	s->source = arena_array(s->tmp, g->nval, sizeof *s->source);
	s->sharding = arena_array(s->tmp, g->nval, sizeof *s->sharding);
	find_seeds(&f);
	for (; f.done < f.n; f.done++) {
		const struct found_sharding x = f.queue[f.done];
		const Val *v = &g->val[x.v];

		if (v->def)
			follow_sharding(&f, v->def,
			                g->node[v->def].nin + v->result_index,
			                &x.sharding);
		FOR_USES (i, &s->uses, x.v) {
			const Node *n = &g->node[s->uses.node[i]];

			for (int k = 0; k < n->nin; k++)
				if (n->in[k] == x.v)
					follow_sharding(&f, s->uses.node[i], k,
					                &x.sharding);
		}
	}
	for (NodeId id = 1; id < g->nnode; id++) {
		add_replicated(s, id, PLACEMENT_REPLICATE);
		add_replicated(s, id, PLACEMENT_REPLICATE_PARTIAL);
		sort_strategies(&s->node[id],
		                g->node[id].nin + g->node[id].nout);
	}
	find_source_strategies(s);
	for (ValId v = 1; v < g->nval; v++)
		sort_strategies(&s->source[v], 1);
}

struct strategy_set *
shard_producer(struct shard *s, ValId v, int *value_index)
{
	NodeId def = s->g->val[v].def;

	*value_index = !def ? 0
		: s->g->node[def].nin + s->g->val[v].result_index;
	return def ? &s->node[def] : &s->source[v];
}
