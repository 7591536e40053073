/* What is asked of a layout: large matrices and rows are cut, values lie as
 * --shard says, the loss is complete.
 */
#include "passes/shard/layout.h"

#include "ir/base/glob.h"

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

uint64_t
layout_wish(const struct shard *s, ValId v)
{
	const struct shard_wish *w = wish_for(s, v);

	return w ? 1 + (uint64_t)w->kind + 4 * (uint64_t)w->axis : 0;
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

bool
layout_forbids(const struct layout *l, uint32_t class, const struct way *w)
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

bool
layout_demands_cut(const struct layout *l, uint32_t class)
{
	const struct shard *s = l->s;
	const Graph *g = s->g;
	uint32_t e = l->c.first[class];
	const struct choice *c = choice_of(l, e);

	if (s->pass->opt->layout_seed)
		return false;
	if (e >= g->nnode) {
		if (!shard_is_large(s, e - g->nnode))
			return false;
	} else if (!s->pass->opt->sp || !is_norm(&g->node[e])) {
		return false;
	}
	for (int i = 0; i < c->n; i++)
		if (has_cut(&c->way[i], 0) && !layout_forbids(l, class,
		                                            &c->way[i]))
			return true;
	return false;
}
