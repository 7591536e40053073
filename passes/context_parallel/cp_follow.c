/* How positions pass through nodes: by the rules of shardings and one more, of
 * attention, whose queries each need all keys.
 */
#include "passes/context_parallel/cp_partition.h"

#include <string.h>

Placement
cp_positions(const struct cp_partition *c, int axis, int64_t extent)
{
	return c->g->zigzag && extent % (2 * c->parts) == 0
		? placement_segments(axis, 2, extent / 2)
		: placement_dim(axis, extent);
}

/* ---- attention ---- */

/* Queries are partitioned; keys and values stay whole. */
static bool
follow_queries(const struct cp_partition *c, const Node *n, int from,
               Placement *at)
{
	const Shape *q = &c->g->val[n->in[0]].shape;
	const Placement s = cp_positions(c, 2, q->dim[2]);
	const Shape *mask = n->nin > 3 && n->in[3] ? &c->g->val[n->in[3]].shape
			  : NULL;

	if (q->rank != 4 || (from != 0 && from != n->nin)
	    || !placement_eq(&at[from], &s))
		return false;
	at[0] = s;
	for (int k = 0; k < n->nout; k++)
		at[n->nin + k] = s;
	if (mask && mask->rank > 1 && mask->dim[mask->rank - 2] != 1)
		at[3] = cp_positions(c, mask->rank - 2, q->dim[2]);
	return true;
}

/* ---- a node ---- */

/* With two stretches in each sample segments are shared out from either end in
 * turn. */
static bool
is_even(const struct cp_partition *c, const Placement *s)
{
	for (int i = 0; i < placement_listed(s); i++)
		if (s->segment[i] % c->parts)
			return false;
	return !c->g->zigzag || s->nsegment % 2 == 0;
}

/* Shards fit the shapes. */
static bool
check_shards(const struct cp_partition *c, const struct sharding_rule *r,
             bool even)
{
	for (int p = 0; p < r->nvalue; p++) {
		Placement *s = &r->at[p];
		int64_t n = 1, sum = 0;

		if (r->shape[p].rank < 0 || s->kind != PLACEMENT_SHARD)
			continue;
		if (s->axis >= r->shape[p].rank || s->replication != 1)
			return false;
		n = shape_span(&r->shape[p], s->first_axis, s->axis + 1);
		for (int i = 0; i < placement_listed(s); i++)
			sum += s->segment[i];
		if (s->nsegment > MAX_RANK)
			sum *= s->nsegment;
		if (sum != n || (even && !is_even(c, s)))
			return false;
		if (s->first_axis < s->axis)
			*s = placement_normal(s, c->parts, &r->shape[p]);
	}
	return true;
}

bool
cp_follow(const struct cp_partition *c, const Node *n, int from,
          const Placement *s, Placement *at, bool even)
{
	struct sharding_rule r = { .g = c->g, .n = n, .ranks = c->parts,
		.nin = n->nin, .nvalue = n->nin + n->nout, .from = from,
		.at = at };
	Shape *shape = arena_array(c->p->scratch, (size_t)r.nvalue + 1,
	                           sizeof *shape);

	for (int p = 0; p < r.nvalue; p++) {
		ValId v = p < n->nin ? n->in[p] : n->out[p - n->nin];

		shape[p] = c->g->val[v].shape;
		if (!v)
			shape[p].rank = -1;
		at[p] = cp_whole();
	}
	r.shape = shape;
	at[from] = *s;
	if (n->op == OP_ATTENTION && follow_queries(c, n, from, at))
		return check_shards(c, &r, even);
	/* random words go by the index in the whole */
	if (n->nin == 0)
		return op_info[n->op].flags & F_RNG
			&& check_shards(c, &r, even);
	/* a slice of segments may begin with one from the end */
	if (n->op == OP_SLICE && c->g->zigzag && even
	    && shape[0].dim[s->axis] != shape[1].dim[s->axis])
		return false;
	return (n->op != OP_ATTENTION || n->attr.ATTENTION.ratio <= 0)
		&& sharding_rule_of[n->op](&r) && check_shards(c, &r, even);
}

/* ---- values that are computed whole ---- */

/* A shift, a running sum and such keep the dim. */
static bool
keeps_dim(const Graph *g, const Node *n, const Placement *s)
{
	const Shape *x = &g->val[n->in[0]].shape, *y;

	if (n->nin < 1 || n->nout < 1 || s->first_axis != s->axis)
		return false;
	y = &g->val[n->out[0]].shape;
	return (n->op == OP_SLICE || n->op == OP_PAD || n->op == OP_CONCAT
	        || n->op == OP_CUMSUM) && x->rank == y->rank
		&& y->dim[s->axis] > 1;
}

void
cp_follow_positions(struct cp_partition *c, const Node *n)
{
	Placement *at = arena_array(c->p->scratch,
	                            (size_t)(n->nin + n->nout) + 1, sizeof *at);

	for (int k = 0; k < n->nin; k++) {
		const Placement *s = &c->positions[n->in[k]];
		bool follows, keeps;

		if (!n->in[k] || s->kind != PLACEMENT_SHARD)
			continue;
		follows = cp_follow(c, n, k, s, at, false);
		keeps = !follows && keeps_dim(c->g, n, s);
		for (int i = 0; i < n->nout; i++) {
			Placement *y = &c->positions[n->out[i]];
			const Shape *to = &c->g->val[n->out[i]].shape;

			if (!n->out[i] || y->kind == PLACEMENT_SHARD)
				continue;
			if (follows)
				*y = at[n->nin + i];
			else if (keeps && i == 0)
				*y = cp_positions(c, s->axis,
				                  to->dim[s->axis]);
		}
	}
}

/* ---- inputs ---- */

/* Says how to name the dim. */
static bool
refuse_inputs(const struct cp_partition *c, const char *why)
{
	const Graph *g = c->g;

	FOR_VALS (v, g)
		if (v->kind == V_INPUT && v->shape.rank > 1)
			return diag_error(c->p->diag, "--cp %lld: %s; try: "
			                  "--cp-dim %s=1", (long long)c->parts,
			                  why, v->name);
	return diag_error(c->p->diag, "--cp %lld: no input has a dim of "
	                  "positions beside that of samples; leave out --cp",
	                  (long long)c->parts);
}

/* Of the dims behind the first that have a name the only one; NULL: refused. */
static const char *
name_of_positions(const struct cp_partition *c)
{
	const Val *first = graph_batch_input(c->g);
	const char *samples = first ? first->dim_name[0] : NULL, *found = NULL;

	FOR_VALS (v, c->g)
		for (int i = 1; v->kind == V_INPUT && i < v->shape.rank; i++) {
			const char *name = v->dim_name[i];

			if (!name || (samples && !strcmp(name, samples))
			    || (found && !strcmp(name, found)))
				continue;
			if (found) {
				refuse_inputs(c, arena_printf(
					c->p->scratch, "dims '%s' and '%s' of "
					"inputs may be that of positions",
					found, name));
				return NULL;
			}
			found = name;
		}
	if (!found)
		refuse_inputs(c, "no dim of an input behind the first has a "
		              "name, as that of positions would");
	return found;
}

/* --cp-dim INPUT=AXIS, and dims of the same name, or if that has none of the
 * same extent in other inputs of the same rank. */
static bool
positions_by_option(struct cp_partition *c)
{
	const struct options *o = c->p->opt;
	ValId id = val_find(c->g, o->cp_input);
	const Val *x = &c->g->val[id];
	const char *name;

	if (!id || x->kind != V_INPUT)
		return refuse_inputs(c, arena_printf(
			c->p->scratch, "--cp-dim %s=%lld: the model has no "
			"input of that name", o->cp_input,
			(long long)o->cp_axis));
	if (o->cp_axis >= x->shape.rank || o->cp_axis < 0)
		return diag_error(c->p->diag, "--cp-dim %s=%lld: expected a "
		                  "dim of %d, counted from 0", o->cp_input,
		                  (long long)o->cp_axis, x->shape.rank);
	name = x->dim_name[o->cp_axis];
	FOR_VALS (v, c->g) {
		int i = (int)o->cp_axis;

		if (v->kind != V_INPUT || v->shape.rank <= i)
			continue;
		if (v == x || (name ? v->dim_name[i]
		                      && !strcmp(name, v->dim_name[i])
		               : v->shape.rank == x->shape.rank
		                 && v->shape.dim[i] == x->shape.dim[i]))
			c->positions[val_id(c->g, v)] =
				cp_positions(c, i, v->shape.dim[i]);
	}
	return true;
}

bool
cp_find_positions(struct cp_partition *c)
{
	const char *name;

	if (c->p->opt->cp_input)
		return positions_by_option(c);
	name = name_of_positions(c);
	if (!name)
		return false;
	FOR_VALS (v, c->g)
		for (int i = 0; v->kind == V_INPUT && i < v->shape.rank; i++) {
			Placement *s = &c->positions[val_id(c->g, v)];

			if (v->dim_name[i] && !strcmp(name, v->dim_name[i])
			    && s->kind != PLACEMENT_SHARD)
				*s = cp_positions(c, i, v->shape.dim[i]);
		}
	return true;
}
