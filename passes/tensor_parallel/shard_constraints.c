/* Constraints on sharding strategies: large matrices and rows are sharded,
 * values have the placements of --shard, the loss is complete.
 */
#include "passes/tensor_parallel/strategy_ilp.h"

/* The user constraint on a value; NULL: none.  The last one counts. */
static const struct shard_constraint *
constraint_of(const struct shard *s, ValId v)
{
	const struct options *o = s->pass->opt;

	for (int i = o->nshard; v && i-- > 0; )
		if (val_matches(&s->g->val[v], o->shard[i].glob))
			return &o->shard[i];
	return NULL;
}

/* How training has a parameter or buffer that this graph shares with it; NULL:
 * the graph or the value is none of those. */
static const Placement *
training_placement(const struct shard *s, ValId v)
{
	const Val *x = &s->g->val[v], *same;

	if (!s->pass->training || (x->kind != V_PARAM && x->kind != V_BUFFER))
		return NULL;
	same = &s->pass->training->val[val_find(s->pass->training, x->name)];
	return same->kind != x->kind ? NULL
		: same->shard ? &same->shard->placement : &same->placement;
}

static bool
breaks_constraint(const struct shard *s, ValId v, const Placement *at)
{
	const struct shard_constraint *w = constraint_of(s, v);
	const Placement *training = training_placement(s, v);

	if (training && at->kind != PLACEMENT_SHARD)
		return training->kind == PLACEMENT_SHARD;
	if (training)
		return !placement_eq(at, training);
	return w && (at->kind != w->kind
	             || (w->kind == PLACEMENT_SHARD && at->axis != w->axis));
}

uint64_t
strategy_constraint_key(const struct shard *s, ValId v)
{
	const struct shard_constraint *w = constraint_of(s, v);
	const Placement *t = training_placement(s, v);
	uint64_t key = w ? 1 + (uint64_t)w->kind + 4 * (uint64_t)w->axis : 0;

	if (!t || t->kind != PLACEMENT_SHARD)
		return key;
	key = 31 * (key + 1) + (uint64_t)t->axis;
	key = 31 * key + (uint64_t)t->first_axis;
	for (int i = 0; i < placement_listed(t); i++)
		key = 31 * key + (uint64_t)t->segment[i];
	return 31 * key + (uint64_t)t->nsegment;
}

/* ---- unsatisfiable user constraints ---- */

bool
shard_check_constraints(struct shard *s)
{
	const struct options *o = s->pass->opt;
	bool ok = true;

	for (int i = 0; i < o->nshard; i++) {
		bool found = false;
		int value_index;

		FOR_VALS (v, s->g)
			found |= val_matches(v, o->shard[i].glob)
				&& shard_producer(s, val_id(s->g, v),
				                  &value_index)->n;
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
placement_name(const struct shard *s, PlacementKind kind, int axis)
{
	return kind == PLACEMENT_SHARD ? arena_printf(s->tmp, "S%d", axis)
		: arena_printf(s->tmp, "%c", "IRSP"[kind]);
}

/* The placements that a value's strategies give it. */
static const char *
list_placements(const struct strategy_ilp *m, ValId v)
{
	const char *text = "", *sep = "";
	uint64_t seen = 0;
	int value_index;
	const struct strategy_set *c = shard_producer(m->s, v, &value_index);

	for (int i = 0; i < c->n; i++) {
		const Placement *at = &c->strategy[i].at[value_index];
		uint64_t bit = (uint64_t)1 << (at->kind + 4 * at->axis);

		if (seen & bit)
			continue;
		seen |= bit;
		text = arena_printf(m->s->tmp, "%s%s%s", text, sep,
		                    placement_name(m->s, at->kind, at->axis));
		sep = " or ";
	}
	return text;
}

/* Report that no strategy satisfies the constraints on the value. */
static bool
is_infeasible_value(const struct strategy_ilp *m, ValId v)
{
	uint32_t class = m->c.of[entity_of(m->s, v)];
	const struct strategy_set *c = strategies_of(m, m->c.first[class]);

	for (int i = 0; i < c->n; i++)
		if (!strategy_is_forbidden(m, class, &c->strategy[i]))
			return false;
	return c->n > 0;
}

bool
strategy_refuse(const struct strategy_ilp *m)
{
	const struct shard *s = m->s;
	Diag *d = s->pass->diag;

	FOR_VALS (x, s->g) {
		ValId v = val_id(s->g, x);
		const struct shard_constraint *w = constraint_of(s, v);

		if (w && is_infeasible_value(m, v))
			return diag_error(d, "--shard %s=%s: '%s' cannot have "
			                  "this placement on %lld ranks; "
			                  "expected %s",
			                  w->glob,
			                  placement_name(s, w->kind, w->axis),
			                  x->name, (long long)s->ranks,
			                  list_placements(m, v));
	}
	return diag_error(d, "--tp: found no sharding strategy for %lld "
	                  "ranks%s",
	                  (long long)s->ranks, s->pass->opt->nshard
	                  ? " that satisfies --shard" : "");
}

/* ---- hard constraints ---- */

static bool
is_norm_op(const Node *n)
{
	return n->op == OP_LAYERNORM || n->op == OP_RMSNORM;
}

/* Without --sp the input of a norm that cannot be sharded, such as those of the
 * residual stream, is complete on every rank. */
static bool
feeds_norm(const struct shard *s, NodeId id)
{
	const Graph *g = s->g;
	ValId v = g->node[id].out[0];

	FOR_USES (i, &s->uses, v) {
		const Node *n = &g->node[s->uses.node[i]];
		const struct strategy_set *c = &s->node[s->uses.node[i]];
		bool sharded = false;

		for (int k = 0; k < c->n; k++)
			sharded |= is_sharded_at(&c->strategy[k], 0);
		if (is_norm_op(n) && n->in[0] == v && !sharded)
			return true;
	}
	return false;
}

bool
strategy_is_forbidden(const struct strategy_ilp *m, uint32_t class,
                      const struct strategy *w)
{
	const struct shard *s = m->s;
	const Graph *g = s->g;
	uint32_t e = m->c.first[class];
	const Node *n;

	if (e >= g->nnode)
		return breaks_constraint(s, e - g->nnode, &w->at[0]);
	n = &g->node[e];
	if (!s->pass->opt->sp && !s->pass->opt->strategy_seed
	    && (is_norm_op(n) ? w->at[0].kind == PLACEMENT_REPLICATE_PARTIAL
	        : feeds_norm(s, e) && is_sharded_at(w, n->nin)))
		return true;
	for (int k = 0; k < n->nout; k++) {
		const Placement *at = &w->at[n->nin + k];

		if (n->out[k] && breaks_constraint(s, n->out[k], at))
			return true;
		if (n->out[k] == g->loss && g->loss
		    && at->kind != PLACEMENT_REPLICATE)
			return true;
		if (n->out[k] && g->val[n->out[k]].output
		    && at->kind == PLACEMENT_PARTIAL)
			return true;
	}
	return false;
}

/* Whether --tp shards the matrix wherever possible. */
static bool
is_large_matrix(const struct shard *s, ValId v)
{
	return shard_is_matrix(&s->g->val[v])
		&& val_nelem(&s->g->val[v]) >= s->large;
}

bool
strategy_must_shard(const struct strategy_ilp *m, uint32_t class)
{
	const struct shard *s = m->s;
	const Graph *g = s->g;
	uint32_t e = m->c.first[class];
	const struct strategy_set *c = strategies_of(m, e);

	if (s->pass->opt->strategy_seed)
		return false;
	if (e >= g->nnode) {
		if (!is_large_matrix(s, e - g->nnode))
			return false;
	} else if (!s->pass->opt->sp || !is_norm_op(&g->node[e])) {
		return false;
	}
	for (int i = 0; i < c->n; i++)
		if (is_sharded_at(&c->strategy[i], 0)
		    && !strategy_is_forbidden(m, class, &c->strategy[i]))
			return true;
	return false;
}
