/* Placements of values over replicas, by the rules of shard and by rules for
 * ops that treat samples independently.
 *
 * An operand that is equal on all replicas may serve as the part of each: a
 * constant or an expanded value that is the same for every sample.  The
 * placement of random numbers follows from their readers.
 */
#include "passes/data_parallel/dp_partition.h"

#include <string.h>

enum { REPEAT_DEPTH = 1000 };

static bool repeats_per_sample(struct dp_partition *, ValId, const Placement *,
                               int depth);

/* ---- losses ---- */

/* Losses of rows, or their sum. */
static bool
infer_loss_placement(const struct dp_partition *d, const Node *n,
                     Placement *out)
{
	const Placement *x = dp_placement(d, n->in[0]);
	Attr a = n->attr;
	int64_t reduction = *attr_int_of(n->op, &a, "reduction");
	Placement rows = *x;

	if (x->kind != PLACEMENT_SHARD || x->first_axis != x->axis
	    || x->axis == 1)
		return false;
	rows.axis = rows.first_axis = x->axis - (x->axis > 1);
	if (!placement_eq(&rows, dp_placement(d, n->in[1])) || reduction == 1
	    || (n->nin > 2 && n->in[2]
	        && !dp_has_kind(d, n->in[2], PLACEMENT_REPLICATE_PARTIAL)))
		return false;
	for (int k = 0; k < n->nout; k++)
		out[k] = rows;
	if (reduction)
		out[0] = (Placement){ .kind = PLACEMENT_PARTIAL };
	/* the divisor, 1 */
	out[n->nout - 1] = (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
	return true;
}

/* ---- reshapes ---- */

int64_t
dp_count_segments(const Shape *x, const Placement *s)
{
	for (int i = 1; i < placement_listed(s); i++)
		if (s->segment[i] != s->segment[0])
			return 0;
	return shape_span(x, 0, s->first_axis) * s->nsegment;
}

/* How well dim i of `to` holds segments of samples, of which there are `count`
 * in all; 0: not at all.  Best is one sample an element, in few segments. */
static int
score_dim(const struct dp_partition *d, const Shape *to, int i, int64_t count)
{
	int64_t before = shape_span(to, 0, i), here, each;

	if (before == 0 || d->samples == 0 || count % before)
		return 0;
	here = count / before;
	if (to->dim[i] % here)
		return 0;
	each = to->dim[i] / here;
	return each == d->samples ? here == 1 ? 3 : 2
	     : each % d->samples == 0;
}

/* s: of one replica, or of all, along one dim, in equal segments. */
static bool
reshape_samples(const struct dp_partition *d, const Placement *s,
                const Shape *from, const Shape *to, Placement *y)
{
	int64_t count = dp_count_segments(from, s), here;
	int best = 0, axis = 0;

	for (int i = 0; count && i < to->rank; i++)
		if (score_dim(d, to, i, count) > best) {
			best = score_dim(d, to, i, count);
			axis = i;
		}
	if (!best || s->first_axis != s->axis)
		return false;
	here = count / shape_span(to, 0, axis);
	if (here > SEGMENTS_MAX)
		return false;
	*y = placement_segments(axis, here, to->dim[axis] / here
	                        * (s->nsegment * s->segment[0]
	                           / from->dim[s->axis]));
	return true;
}

/* ---- what is the same for every sample ---- */

/* The rule of n with one value's placement, as of one rank: at[] gets the
 * placements of the other operands and results. */
static bool
follow_value(struct dp_partition *d, const Node *n, int value_index,
             const Placement *s, Placement *at)
{
	const Graph *g = d->g;
	struct sharding_rule c = { .g = g, .n = n, .ranks = 1, .nin = n->nin,
		.nvalue = n->nin + n->nout, .from = value_index, .at = at };
	Shape *shape = arena_array(d->p->scratch, (size_t)c.nvalue + 1,
	                           sizeof *shape);

	for (int k = 0; k < c.nvalue; k++) {
		ValId v = k < n->nin ? n->in[k] : n->out[k - n->nin];

		shape[k] = g->val[v].shape;
		if (!v)
			shape[k].rank = -1;
		at[k] = (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
	}
	c.shape = shape;
	at[value_index] = *s;
	if (n->op == OP_RESHAPE)
		return reshape_samples(d, s, &shape[value_index],
		                       &shape[!value_index], &at[!value_index]);
	return dp_follow_own_rows(d, n, value_index, at)
		|| sharding_rule_of[n->op](&c);
}

/* A sharding of the samples of one replica. */
static Placement
split_of_one(const Placement *s)
{
	Placement one = *s;

	for (int k = 0; k < placement_listed(&one); k++)
		one.segment[k] /= DP_RANKS;
	return one;
}

static Placement
split_of_all(const Placement *one)
{
	Placement s = *one;

	for (int k = 0; k < placement_listed(&s); k++)
		s.segment[k] *= DP_RANKS;
	return s;
}

/* In every segment each sample has what the first one has. */
static bool
repeats_const(const struct dp_partition *d, const Val *v, const Placement *s)
{
	int64_t outer = dp_count_segments(&v->shape, s);
	int64_t n = s->segment[0] % d->samples ? s->segment[0] : d->samples;
	size_t run = (size_t)(s->segment[0] / n
	                      * shape_span(&v->shape, s->axis + 1,
	                                   v->shape.rank)
	                      * dtype_info[v->dt].nbytes);
	const char *x = v->data;

	for (int64_t o = 0; x && o < outer; o++)
		for (int64_t i = 1; i < n; i++)
			if (memcmp(x + (size_t)(o * n) * run,
			           x + (size_t)(o * n + i) * run, run) != 0)
				return false;
	return x && outer;
}

/* Whether n expands along all sharded dims. */
static bool
repeats_expanded(const Graph *g, const Node *n, const Placement *s)
{
	const Shape *x = &g->val[n->in[0]].shape;
	int shift = g->val[n->out[0]].shape.rank - x->rank;

	for (int i = s->first_axis; i <= s->axis; i++)
		if (i >= shift && x->dim[i - shift] != 1)
			return false;
	return true;
}

/* Random numbers become those of the samples: their node draws others on each
 * replica.  Nobody else may read them. */
static bool
repeats_drawn(struct dp_partition *d, const Node *n, const Placement *s)
{
	const struct uses *u = &d->uses;
	ValId y = n->out[0];
	Attr a = n->attr;
	int64_t *segments = attr_int_of(n->op, &a, "batch_segments");
	Node *w = &d->g->node[node_id(d->g, n)];

	if (!segments || u->first[y + 1] - u->first[y] != 1)
		return false;
	*segments = dp_count_segments(&d->g->val[y].shape, s);
	w->attr = a;
	d->g->val[y].placement = split_of_all(s);
	return *segments > 0;
}

static bool
repeats_computed(struct dp_partition *d, const Node *n, int slot,
                 const Placement *s, int depth)
{
	Placement *at = arena_array(d->p->scratch,
	                            (size_t)(n->nin + n->nout) + 1, sizeof *at);

	if (n->op == OP_EXPAND && repeats_expanded(d->g, n, s))
		return true;
	if (n->nin > 0 && !follow_value(d, n, n->nin + slot, s, at))
		return false;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && at[k].kind == PLACEMENT_SHARD
		    && !repeats_per_sample(d, n->in[k], &at[k], depth + 1))
			return false;
	if (op_info[n->op].flags & F_RNG)
		return repeats_drawn(d, n, s);
	return n->nin > 0;
}

/* Whether v, equal on all replicas, may stand for what each has of its own
 * samples; s: of one replica. */
static bool
repeats_per_sample(struct dp_partition *d, ValId v, const Placement *s,
                   int depth)
{
	const Val *x = &d->g->val[v];
	const struct dp_repeated *known;
	struct dp_repeated *new;
	bool old = v < d->nold_val;
	double splat;

	if (x->placement.kind == PLACEMENT_SHARD) {
		Placement all = split_of_all(s);

		return placement_eq(&x->placement, &all);
	}
	if (x->placement.kind == PLACEMENT_PARTIAL || s->kind != PLACEMENT_SHARD
	    || depth > REPEAT_DEPTH)
		return false;
	if (shape_span(&x->shape, s->first_axis, s->axis + 1) == 1
	    || val_splat(d->g, v, &splat))
		return true;
	if (x->kind == V_CONST)
		return repeats_const(d, x, s);
	for (known = old ? d->repeats[v] : NULL; known; known = known->next)
		if (placement_eq(&known->shard, s))
			return true;
	if (!x->def || !repeats_computed(d, &d->g->node[x->def],
	                                 x->result_index, s, depth))
		return false;
	if (old) {
		new = arena_alloc(d->p->scratch, sizeof *new);
		*new = (struct dp_repeated){ *s, d->repeats[v] };
		d->repeats[v] = new;
	}
	return true;
}

/* ---- a node ---- */

/* Of images that are channels of one, each sample in groups of its own, a
 * replica has part of all groups. */
static bool
infer_group_placement(struct dp_partition *d, NodeId id, Placement *out,
                      char why[SHARDING_WHY])
{
	Node *n = &d->g->node[id];
	const Placement *x = dp_placement(d, n->in[0]);
	int64_t *group = attr_int_of(n->op, &n->attr, "group");
	int64_t *part = attr_int_of(n->op, &n->attr, "whole_extent");
	bool ok;

	if (x->kind != PLACEMENT_SHARD || x->axis != 1 || *group < 2)
		return sharding_infer(d->g, n, out, why);
	*part = DP_RANKS * *group;
	ok = sharding_infer(d->g, n, out, why);
	*part = 0;
	return ok;
}

/* Places as many as elements, in their order; a replica has its own count. */
static bool
infer_selected_placement(const struct dp_partition *d, const Node *n,
                         Placement *out)
{
	const Shape *x = &d->g->val[n->in[0]].shape;
	Shape flat = SHAPE(shape_nelem(x));

	out[1] = (Placement){ .kind = PLACEMENT_PARTIAL };
	if (n->attr.SELECTED.compact
	    || !reshape_samples(d, dp_placement(d, n->in[0]), x, &flat,
	                        &out[0]))
		return false;
	out[0].axis++;
	out[0].first_axis++;
	return true;
}

static bool
infer_node_placement(struct dp_partition *d, NodeId id, Placement *out,
                     char why[SHARDING_WHY])
{
	const Graph *g = d->g;
	const Node *n = &g->node[id];
	bool own;

	if (n->op == OP_RESHAPE && dp_has_kind(d, n->in[0], PLACEMENT_SHARD))
		return reshape_samples(d, dp_placement(d, n->in[0]),
		                       &g->val[n->in[0]].shape,
		                       &g->val[n->out[0]].shape, &out[0]);
	if (n->op == OP_SCE || n->op == OP_NLL)
		return infer_loss_placement(d, n, out);
	if (n->op == OP_CONV || n->op == OP_CONV_DX)
		return infer_group_placement(d, id, out, why);
	if (n->op == OP_SELECTED && dp_has_kind(d, n->in[0], PLACEMENT_SHARD))
		return infer_selected_placement(d, n, out);
	if (dp_infer_own_rows(d, n, out, &own)
	    || dp_infer_padded_rows(d, n, out))
		return true;
	if (own || (n->nin > 1 && dp_is_lookup(n->op)
	            && dp_has_sample_index(d, n->in[1])))
		return false;
	return sharding_infer(g, n, out, why);
}

static int
first_sharded_operand(const struct dp_partition *d, const Node *n)
{
	for (int k = 0; k < n->nin; k++)
		if (dp_has_kind(d, n->in[k], PLACEMENT_SHARD))
			return k;
	return -1;
}

/* With operands that are the same for every sample taken as sharded. */
static bool
infer_repeated(struct dp_partition *d, NodeId id, Placement *out,
               char why[SHARDING_WHY])
{
	const Node *n = &d->g->node[id];
	Placement *at = arena_array(d->p->scratch,
	                            (size_t)(n->nin + n->nout) + 1, sizeof *at);
	Placement *was = arena_array(d->p->scratch, (size_t)n->nin + 1,
	                             sizeof *was);
	int from = first_sharded_operand(d, n);
	Placement one = split_of_one(dp_placement(d, n->in[from]));
	bool ok = follow_value(d, n, from, &one, at);

	for (int k = 0; k < n->nin; k++)
		was[k] = *dp_placement(d, n->in[k]);
	for (int k = 0; ok && k < n->nin; k++)
		if (n->in[k] && at[k].kind == PLACEMENT_SHARD
		    && was[k].kind == PLACEMENT_REPLICATE_PARTIAL
		    && (repeats_per_sample(d, n->in[k], &at[k], 0)
		        || dp_indexes_rows(d, n, n->in[k], &at[k])))
			d->g->val[n->in[k]].placement = split_of_all(&at[k]);
	ok = ok && infer_node_placement(d, id, out, why);
	for (int k = 0; k < n->nin; k++) {
		const Node *by = &d->g->node[d->g->val[n->in[k]].def];

		/* random numbers stay sharded */
		if (n->in[k] && !(op_info[by->op].flags & F_RNG))
			d->g->val[n->in[k]].placement = was[k];
	}
	return ok;
}

bool
dp_infer(struct dp_partition *d, NodeId id, char why[SHARDING_WHY])
{
	const Node *n = &d->g->node[id];
	Placement *out = arena_array(d->p->scratch, (size_t)n->nout + 1,
	                             sizeof *out);

	if (!dp_infer_statistics(d, n, out)
	    && !infer_node_placement(d, id, out, why)
	    && (first_sharded_operand(d, n) < 0
	        || !infer_repeated(d, id, out, why)))
		return false;
	if (!dp_follow_sample_index(d, &d->g->node[id], out))
		return false;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			d->g->val[n->out[k]].placement = out[k];
	return true;
}
