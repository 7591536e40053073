/* Data parallelism: turn the graph into that of one replica, which sees its
 * own samples of a batch.
 *
 * what    the loss and all that depends on more than a sample become those of
 *         the whole batch: sums over the samples are added up over replicas
 *         where something else than a sum is made of them.  What a mean
 *         divides by is known at run time only, as is how many replicas there
 *         are: 1 / replicas is a value (op share)
 * method  one walk over the nodes with the placements of values over replicas.
 *         An operand whose placement the op cannot take is converted: a
 *         summand by an all_reduce, a whole to a summand by the share.
 *         Autodiff then makes the other half; gradients of parameters are
 *         summands, which pass optim adds up
 * needs   P_CANON; before pass shard, which keeps nodes between replicas
 * gives   Graph.replicas, Val.batch of inputs and outputs
 * refuses what mixes samples otherwise than by sums
 */
#include "passes/shard/dp_partition.h"

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
	Attr a = attr_default(OP_CAST);

	a.CAST.to = to;
	return !v || d->g->val[v].dt == to ? v
	       : dp_emit(d, OP_CAST, 1, &v, &a, like);
}

/* ---- conversions ---- */

static ValId
emit_all_reduce(struct dp_partition *d, ValId v, int side, PlacementKind to,
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
		d->whole[v] = emit_all_reduce(
			d, v, 1, PLACEMENT_REPLICATE_PARTIAL, like);
	return d->whole[v];
}

/* 1 / replicas; of nodes that count over micro-batches each has its own. */
static ValId
emit_share_op(struct dp_partition *d, NodeId like)
{
	Graph *g = d->g;
	ValId y = d->share;
	int pass = g->node[like].count_pass;

	if (y && !pass)
		return y;
	y = emit_op(g, d->p->diag, OP_SHARE, 0, NULL, NULL, 0);
	g->node[g->val[y].def].count_pass = pass;
	dp_order_node(d, g->val[y].def);
	g->val[y].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	d->share = pass ? d->share : y;
	return y;
}

/* v times 1 / replicas, in float32 at least. */
static ValId
scale_by_share(struct dp_partition *d, ValId v, NodeId like)
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
	part = scale_by_share(d, part, id);
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
			y = scale_by_share(d, v, id);
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
	dp_order_node(d, id);
	return partition_random_op(d, id);
}

static bool
partition_node(struct dp_partition *d, NodeId id)
{
	switch (d->g->node[id].op) {
	case OP_SCE: case OP_NLL:
		return dp_partition_labels(d, id);
	case OP_BATCHNORM:
		return dp_partition_batchnorm(d, id);
	case OP_ACCUMULATE:
		return dp_partition_total(d, id);
	case OP_EXTENT:
		return dp_partition_extent(d, id);
	default:
		return dp_visit_node(d, id);
	}
}

/* ---- the ends of the graph ---- */

/* Inputs of as many rows as the first one that has several hold samples. */
static bool
partition_input(struct dp_partition *d, Val *v, const Val **first)
{
	int64_t n = v->shape.rank > 0 ? v->shape.dim[0] : 1;

	if (v->shape.rank < 1 || (*first && n == 1 && d->samples != 1))
		return true;
	if (*first && n != d->samples)
		return diag_error(d->p->diag, "cannot split the batch over "
		                  "replicas: input '%s': expected %lld samples "
		                  "along the first dim, as in '%s', found "
		                  "%lld%s", v->name,
		                  (long long)d->samples,
		                  (*first)->name, (long long)n, dp_remedy(d));
	*first = *first ? *first : v;
	d->samples = n;
	v->placement = placement_dim(0, DP_RANKS * n);
	v->batch = 1;
	return true;
}

static bool
partition_inputs(struct dp_partition *d)
{
	const Val *first = NULL;

	FOR_VALS (v, d->g) {
		v->placement =
			(Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
		if (v->kind == V_INPUT && !partition_input(d, v, &first))
			return false;
	}
	return first || diag_error(d->p->diag, "cannot split the batch over "
	                           "replicas: no input has a batch dim%s",
	                           dp_remedy(d));
}

/* Another value in v's place, as seen from outside. */
static void
replace_output(struct dp_partition *d, ValId v, ValId y)
{
	Graph *g = d->g;
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

static bool
reduce_loss(struct dp_partition *d)
{
	ValId v = d->g->loss, y = v;

	if (dp_has_kind(d, v, PLACEMENT_SHARD))
		return diag_error(d->p->diag, "loss '%s' has one value per "
		                  "sample, expected a sum or mean over samples",
		                  d->g->val[v].name);
	if (dp_has_kind(d, v, PLACEMENT_REPLICATE_PARTIAL))
		y = scale_by_share(d, v, d->g->val[v].def);
	y = y ? emit_all_reduce(d, y, 0, PLACEMENT_REPLICATE_PARTIAL,
	                        d->g->val[v].def) : 0;
	if (y)
		replace_output(d, v, y);
	return y != 0;
}

static bool
partition_outputs(struct dp_partition *d)
{
	Graph *g = d->g;

	for (ValId v = 1; v < g->nval; v++) {
		const Placement *s = &g->val[v].placement;
		ValId y;

		if (!g->val[v].output || v == g->loss)
			continue;
		if (dp_has_sample_index(d, v))
			return diag_error(d->p->diag, "output '%s' holds "
			                  "sample indices, which each replica "
			                  "counts from 0; exclude it with "
			                  "--output",
			                  g->val[v].name);
		if (s->kind == PLACEMENT_PARTIAL) {
			y = dp_all_reduce(d, v, g->val[v].def);
			if (!y)
				return false;
			replace_output(d, v, y);
		} else if (s->kind == PLACEMENT_SHARD && s->nsegment > 1) {
			return diag_error(d->p->diag, "output '%s' has the "
			                  "samples of a replica in several "
			                  "segments; exclude it with --output",
			                  g->val[v].name);
		} else if (dp_moves_samples(d, v)) {
			return diag_error(d->p->diag, "output '%s' has its "
			                  "samples in other places at other "
			                  "batch sizes; exclude it with "
			                  "--output",
			                  g->val[v].name);
		} else if (s->kind == PLACEMENT_SHARD) {
			g->val[v].batch = s->first_axis + 1;
		}
	}
	return true;
}

/* Placements of this pass mean nothing to others. */
static void
clear_placements(Graph *g)
{
	FOR_VALS (v, g)
		v->placement = (Placement){ .kind = PLACEMENT_REPLICATE };
	g->ranks = 0;
}

bool
dp_partition_graph(Pass *p, Graph *g, const char **assumed)
{
	struct dp_partition d = { .p = p, .g = g, .nold = g->nnode };
	ValId loss = g->loss;

	d.uses = graph_uses(g, p->scratch);
	d.nold_val = g->nval;
	if (dp_is_micro(&d))
		d.grad = sharding_requires_grad(g, p->scratch);
	g->ranks = DP_RANKS;
	if (!partition_inputs(&d))
		return false;
	if (p->result.other_batch.why)
		return diag_error(p->diag, "%s%s", p->result.other_batch.why,
		                  dp_remedy(&d));
	for (NodeId id = 1; id < d.nold; id++)
		if (!partition_node(&d, id))
			return false;
	if ((loss && !reduce_loss(&d)) || !partition_outputs(&d))
		return false;
	graph_reorder(g, d.order, (uint32_t)d.norder);
	*assumed = d.assumed;
	return true;
}

static bool
partition_batch(Pass *p, Graph *g)
{
	const char *assumed;

	if (!dp_partition_graph(p, g, &assumed))
		return false;
	clear_placements(g);
	return true;
}

/* Whether a copy can be partitioned; says why not. */
static bool
can_partition_batch(Pass *p, const Graph *g)
{
	Graph *trial = graph_clone(g);
	bool ok;

	diag_soften(p->diag, "compiled for one replica only");
	ok = partition_batch(p, trial);
	diag_soften(p->diag, NULL);
	graph_free(trial);
	return ok;
}

static bool
replicate_graph(Pass *p, Graph *g)
{
	int64_t dp = p->opt->dp;

	if (!dp || g->replicas || (dp == DP_TRY && !can_partition_batch(p, g)))
		return true;
	if (!partition_batch(p, g))
		return false;
	g->replicas = dp == DP_TRY ? 1 : dp == DP_ANY ? DP_RANKS : dp;
	g->exact = p->opt->zero;
	return true;
}

bool
pass_replicate(Pass *p, Graph *g)
{
	return replicate_graph(p, g) && dp_fold_extents(p, g);
}
