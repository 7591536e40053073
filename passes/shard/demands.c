/* Constraints on sharding strategies: large matrices and rows are sharded,
 * values have the placements of --shard, the loss is complete.
 */
#include "passes/shard/layout.h"

#include "runtime/support/glob.h"

static bool
is_meant(const struct shard *s, const struct shard_wish *w, ValId v)
{
	const Val *x = &s->g->val[v];

	return glob_match(w->glob, x->name)
		|| (x->onnx && glob_match(w->glob, x->onnx));
}

/* The wish for a value, NULL if there is none; the last one counts. */
static const struct shard_wish *
wish_for(const struct shard *s, ValId v)
{
	const struct options *o = s->pass->opt;

	for (int i = o->nshard; v && i-- > 0; )
		if (is_meant(s, &o->shard[i], v))
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

/* ---- wishes that nothing meets ---- */

bool
shard_check_wishes(struct shard *s)
{
	const struct options *o = s->pass->opt;
	bool ok = true;

	for (int i = 0; i < o->nshard; i++) {
		bool found = false;
		int port;

		FOR_VALS (v, s->g)
			found |= is_meant(s, &o->shard[i], val_id(s->g, v))
				&& shard_giver(s, val_id(s->g, v), &port)->n;
		if (!found)
			ok = diag_error(s->pass->diag, "--shard '%s' matches "
			                "no value with more than one possible "
			                "placement; --dump=shard lists the "
			                "values",
			                o->shard[i].glob);
	}
	return ok;
}

static const char *
state_text(const struct shard *s, SplitKind kind, int axis)
{
	return kind == SPLIT_S ? arena_printf(s->tmp, "S%d", axis)
		: arena_printf(s->tmp, "%c", "IRSP"[kind]);
}

/* The states in which ways that are not ruled out otherwise have a value. */
static const char *
states_text(const struct layout *l, ValId v)
{
	const char *text = "", *sep = "";
	uint64_t seen = 0;
	int port;
	const struct choice *c = shard_giver(l->s, v, &port);

	for (int i = 0; i < c->n; i++) {
		const Split *at = &c->way[i].at[port];
		uint64_t bit = (uint64_t)1 << (at->kind + 4 * at->axis);

		if (seen & bit)
			continue;
		seen |= bit;
		text = arena_printf(l->s->tmp, "%s%s%s", text, sep,
		                    state_text(l->s, at->kind, at->axis));
		sep = " or ";
	}
	return text;
}

/* Nothing that gives the value gives it as asked for. */
static bool
is_impossible(const struct layout *l, ValId v)
{
	uint32_t class = l->c.of[entity_of(l->s, v)];
	const struct choice *c = choice_of(l, l->c.first[class]);

	for (int i = 0; i < c->n; i++)
		if (!layout_forbids(l, class, &c->way[i]))
			return false;
	return c->n > 0;
}

bool
layout_refuse(const struct layout *l)
{
	const struct shard *s = l->s;
	Diag *d = s->pass->diag;

	FOR_VALS (x, s->g) {
		ValId v = val_id(s->g, x);
		const struct shard_wish *w = wish_for(s, v);

		if (w && is_impossible(l, v))
			return diag_error(d, "--shard %s=%s: '%s' cannot have "
			                  "this placement on %lld ranks; "
			                  "expected %s",
			                  w->glob,
			                  state_text(s, w->kind, w->axis),
			                  x->name, (long long)s->ranks,
			                  states_text(l, v));
	}
	return diag_error(d, "--tp: found no sharding strategy for %lld "
	                  "ranks%s",
	                  (long long)s->ranks, s->pass->opt->nshard
	                  ? " that satisfies --shard" : "");
}

/* ---- what rules out a way ---- */

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
