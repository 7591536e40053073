/* Pass replicate at one node: its operands get placements that the op takes.
 *
 * what    new nodes are visited like those of the graph, so that rules of other
 *         files write formulas and this file sees to their placements
 * method  infer the placements of the results from those of the operands.  If
 *         there are none, a mean over samples is scaled to the replica's share,
 *         or operands are converted, and inference is tried again
 */
#include "passes/data_parallel/dp_partition.h"

#include <string.h>

/* ---- building ---- */

void
dp_order_node(struct dp_partition *d, NodeId id)
{
	d->order = arena_grow(d->p->scratch, d->order, d->norder,
	                      &d->order_cap, d->norder + 1, sizeof *d->order);
	d->order[d->norder++] = id;
}

ValId
dp_emit(struct dp_partition *d, Op op, int nin, const ValId *in,
        const Attr *attr, NodeId like)
{
	ValId y;

	for (int k = 0; k < nin; k++)
		if (!in[k])
			return 0;
	y = emit_op(d->g, d->p->diag, op, nin, in, attr, like);
	return y && dp_visit_node(d, d->g->val[y].def) ? y : 0;
}

void
dp_redefine(struct dp_partition *d, ValId made, ValId old)
{
	Val *v = &d->g->val[made], *o = &d->g->val[old];

	d->g->node[v->def].out[v->result_index] = old;
	o->def = v->def;
	o->result_index = v->result_index;
	o->placement = v->placement;
	v->def = 0;
}

void
dp_replace_output(Graph *g, ValId v, ValId y)
{
	const char *name = g->val[v].name;

	val_rename(g, v, arena_printf(g->arena, "%s.part", name));
	val_rename(g, y, name);
	g->val[y].onnx = g->val[v].onnx;
	g->val[v].onnx = NULL;
	g->val[y].output = true;
	g->val[y].rows = g->val[v].rows;
	g->val[v].output = false;
	if (g->loss == v)
		g->loss = y;
}

ValId
dp_detach_result(struct dp_partition *d, NodeId id, int k)
{
	Graph *g = d->g;
	ValId old = g->node[id].out[k], fresh;

	fresh = val_new(g, V_TEMP, arena_printf(g->arena, "%s.part",
	                                        g->val[old].name),
	                g->val[old].dt, g->val[old].shape);
	g->node[id].out[k] = fresh;
	g->val[fresh].def = id;
	g->val[fresh].result_index = k;
	g->val[fresh].placement = g->val[old].placement;
	g->val[old].def = 0;
	return fresh;
}

ValId
dp_emit_cast(struct dp_partition *d, ValId v, DType to, NodeId like)
{
	Attr a = attr_cast(to);

	return !v || d->g->val[v].dt == to ? v
	       : dp_emit(d, OP_CAST, 1, &v, &a, like);
}

/* ---- conversions ---- */

ValId
dp_emit_all_reduce(struct dp_partition *d, ValId v, int side, PlacementKind to,
                NodeId like)
{
	Attr a = attr_default(OP_ALL_REDUCE);
	ValId y;

	a.ALL_REDUCE.group = 1;
	a.ALL_REDUCE.side = side;
	y = v ? emit_op(d->g, d->p->diag, OP_ALL_REDUCE, 1, &v, &a, like) : 0;
	if (!y)
		return 0;
	dp_order_node(d, d->g->val[y].def);
	d->g->val[y].placement = (Placement){ .kind = to };
	return y;
}

ValId
dp_all_reduce(struct dp_partition *d, ValId v, NodeId like)
{
	size_t had = d->nwhole;

	if (v >= had) {
		d->whole = arena_grow(d->p->scratch, d->whole, had,
		                      &d->whole_cap, (size_t)v + 1,
		                      sizeof *d->whole);
		d->nwhole = (size_t)v + 1;
		for (size_t i = had; i < d->nwhole; i++)
			d->whole[i] = 0;
	}
	if (!d->whole[v])
		d->whole[v] = dp_emit_all_reduce(
			d, v, 1, PLACEMENT_REPLICATE_PARTIAL, like);
	return d->whole[v];
}

/* A node of values that are equal on all replicas. */
static ValId
emit_on_all(struct dp_partition *d, Op op, int nin, const ValId *in, int pass)
{
	Graph *g = d->g;
	ValId y = emit_op(g, d->p->diag, op, nin, in, NULL, 0);

	g->node[g->val[y].def].count_pass = pass;
	dp_order_node(d, g->val[y].def);
	g->val[y].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	return y;
}

/* 1 / replicas, or of their halves; of nodes that count over micro-batches each
 * has its own. */
static ValId
emit_share_op(struct dp_partition *d, NodeId like)
{
	Graph *g = d->g;
	int pass = g->node[like].count_pass;
	bool halves = g->halves == HALVES_ONE;
	ValId share = 0, half = 0;

	if (d->share && !pass)
		return d->share;
	if (halves) {
		half = val_scalar(g, DT_F32, 0.5);
		g->val[half].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	}
	if (!halves || d->p->opt->dp)
		share = emit_on_all(d, OP_SHARE, 0, NULL, pass);
	if (half && share)
		share = emit_on_all(d, OP_MUL, 2, (ValId[]){ half, share },
		                   pass);
	else if (half)
		share = half;
	d->share = pass ? d->share : share;
	return share;
}

ValId
dp_scale_by_share(struct dp_partition *d, ValId v, NodeId like)
{
	DType dt = d->g->val[v].dt, wide = dtype_is_half(dt) ? DT_F32 : dt;
	ValId in[2] = { dp_emit_cast(d, v, wide, like), 0 }, y;

	in[1] = dp_emit_cast(d, emit_share_op(d, like), wide, like);
	y = in[0] && in[1] ? emit_op(d->g, d->p->diag, OP_MUL, 2, in, NULL,
	                             like) : 0;
	if (!y)
		return 0;
	dp_order_node(d, d->g->val[y].def);
	d->g->val[y].placement.kind = PLACEMENT_PARTIAL;
	return dp_emit_cast(d, y, dt, like);
}

/* ---- nodes ---- */

static bool
is_mean_of_samples(struct dp_partition *d, NodeId id)
{
	Node *n = &d->g->node[id];
	char why[SHARDING_WHY];
	bool ok;

	if (n->op != OP_REDUCE_MEAN)
		return false;
	n->op = OP_REDUCE_SUM;
	ok = dp_infer(d, id, why);
	n->op = OP_REDUCE_MEAN;
	return ok && dp_has_kind(d, n->out[0], PLACEMENT_PARTIAL);
}

bool
dp_partition_mean(struct dp_partition *d, NodeId id)
{
	ValId y = d->g->node[id].out[0], part = dp_detach_result(d, id, 0);

	dp_order_node(d, id);
	part = dp_scale_by_share(d, part, id);
	if (part)
		dp_redefine(d, part, y);
	return part != 0;
}

static int
count_operands(const struct dp_partition *d, const Node *n, PlacementKind kind)
{
	int m = 0;

	for (int k = 0; k < n->nin; k++)
		m += dp_has_kind(d, n->in[k], kind);
	return m;
}

/* One sample, which does not tell where two would be. */
static bool
is_batch_ambiguous(const struct dp_partition *d)
{
	return d->samples == 1 && !d->p->result.other_batch.agrees;
}

/* With one sample, a sum over samples may be one over its own steps. */
static ValId
refuse_one_sample(struct dp_partition *d, NodeId id)
{
	dp_refuse(d, id, "with one sample per batch, a sum over samples "
	          "cannot be told from a sum within a sample; use batches of "
	          "two or more");
	return 0;
}

/* Give operands another placement: of a sum that has summands beside
 * what is whole the latter, else the summands; an integer has no shares. */
static bool
convert_operand_placements(struct dp_partition *d, NodeId id)
{
	bool joint = op_info[d->g->node[id].op].flags & F_JOINT;
	bool cut = count_operands(d, &d->g->node[id], PLACEMENT_SHARD) > 0;
	DType dt = d->g->val[d->g->node[id].out[0]].dt;
	bool share = joint && !cut && op_info[d->g->node[id].op].flags & F_EW
		&& d->g->node[id].op != OP_WHERE && dtype_info[dt].cls == 'f';
	int nin = d->g->node[id].nin;
	int kept = share ? -1 : dp_remaining_summand(d, &d->g->node[id]);

	for (int k = 0; k < nin; k++) {
		ValId v = d->g->node[id].in[k], y = v;

		if (k == kept)
			continue;
		if (share && dp_has_kind(d, v, PLACEMENT_REPLICATE_PARTIAL))
			y = dp_scale_by_share(d, v, id);
		else if (!share && dp_has_kind(d, v, PLACEMENT_PARTIAL))
			y = is_batch_ambiguous(d) ? refuse_one_sample(d, id)
			  : dp_all_reduce(d, v, id);
		if (v && !y)
			return false;
		d->g->node[id].in[k] = y;
	}
	return true;
}

/* The words that it draws are those of the whole batch. */
static bool
partition_random_op(struct dp_partition *d, NodeId id)
{
	Node *n = &d->g->node[id];
	int64_t *segments = attr_int_of(n->op, &n->attr, "batch_segments");
	const Placement *y = dp_placement(d, n->out[0]);

	if (!segments || y->kind != PLACEMENT_SHARD || dp_is_micro(d))
		return true;
	*segments = dp_count_segments(&d->g->val[n->out[0]].shape, y);
	return *segments || dp_refuse(d, id, "it draws random numbers by "
	                           "position, but the samples are in "
	                           "segments of different lengths");
}

/* Whether a reduction over a batch of one sample, a reshape by now, is all that
 * is left of the file's sum, or mean: nobody knows which. */
static bool
was_reduction(const struct dp_partition *d, const Node *n)
{
	const Graph *g = d->g;
	const Placement *s = n->nin ? dp_placement(d, n->in[0]) : NULL;

	if (n->op != OP_RESHAPE || !is_batch_ambiguous(d)
	    || s->kind != PLACEMENT_SHARD
	    || (s->axis < g->val[n->out[0]].shape.rank
	        && g->val[n->out[0]].shape.dim[s->axis] == 1))
		return false;
	for (int i = 0; i < n->norigin; i++)
		if (!strncmp(g->origin[n->origin[i]].op, "Reduce", 6))
			return true;
	return false;
}

bool
dp_visit_node(struct dp_partition *d, NodeId id)
{
	char why[SHARDING_WHY] = "";

	if (dp_divides_by_size(d, &d->g->node[id]))
		return dp_refuse(d, id, "it scales a sum over samples by a "
		                 "constant that may be the batch size, or "
		                 "the batch size minus one; use a mean or a "
		                 "sum in the model instead");
	if (was_reduction(d, &d->g->node[id]))
		return dp_refuse(d, id, "with one sample per batch, sum and "
		                 "mean are the same; use batches of two or "
		                 "more");
	while (!dp_infer(d, id, why)) {
		const Node *n = &d->g->node[id];

		if (is_mean_of_samples(d, id))
			return dp_partition_mean(d, id);
		if (!count_operands(d, n, PLACEMENT_PARTIAL)
		    && dp_assume_placement(d, id))
			break;
		if (!count_operands(d, n, PLACEMENT_PARTIAL))
			return dp_refuse_mixing(d, id);
		if (!convert_operand_placements(d, id))
			return false;
	}
	dp_note_divided_samples(d, &d->g->node[id]);
	dp_order_node(d, id);
	return partition_random_op(d, id);
}
