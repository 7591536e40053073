/* Divisors that count samples: losses over labels, some of which may not
 * count, and the statistics of batch normalisation.
 */
#include "passes/data_parallel/dp_partition.h"

/* ---- losses ---- */

static ValId
emit_sum_all(struct dp_partition *d, ValId v, NodeId like)
{
	Attr a = attr_default(OP_REDUCE_SUM);

	a.REDUCE_SUM.keepdims = 0;
	return dp_emit(d, OP_REDUCE_SUM, 1, &v, &a, like);
}

/* The weight of each label's class; of those that are ignored any. */
static ValId
emit_class_weights(struct dp_partition *d, ValId labels, ValId counts,
                   ValId weights, NodeId like)
{
	DType dt = d->g->val[labels].dt;
	ValId in[3] = { counts, labels, val_scalar(d->g, dt, 0) };

	d->g->val[in[2]].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	in[1] = dp_emit(d, OP_WHERE, 3, in, NULL, like);
	in[0] = weights;
	return dp_emit_cast(d, dp_emit(d, OP_GATHER, 2, in, NULL, like), DT_F32,
	                    like);
}

/* Which labels count, as booleans. */
static ValId
emit_label_mask(struct dp_partition *d, ValId labels, int64_t ignore,
                NodeId like)
{
	ValId in[2] = { labels, labels }, v;

	if (ignore == INT64_MIN)        /* all do */
		return dp_emit(d, OP_EQ, 2, in, NULL, like);
	in[1] = val_scalar(d->g, d->g->val[labels].dt, (double)ignore);
	d->g->val[in[1]].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	v = dp_emit(d, OP_EQ, 2, in, NULL, like);
	return dp_emit(d, OP_NOT, 1, &v, NULL, like);
}

/* What the losses of a replica's labels are a mean over: their number, or the
 * sum of their weights. */
static ValId
emit_label_count(struct dp_partition *d, NodeId id)
{
	const Node *n = &d->g->node[id];
	ValId labels = n->in[1], weights = n->nin > 2 ? n->in[2] : 0;
	Attr a = n->attr;
	ValId counts = emit_label_mask(d, labels,
	                               *attr_int_of(n->op, &a, "ignore"), id);
	ValId v = dp_emit_cast(d, counts, DT_F32, id);

	if (weights && v) {
		ValId in[2] = { emit_class_weights(d, labels, counts, weights,
		                                   id), v };

		v = dp_emit(d, OP_MUL, 2, in, NULL, id);
	}
	return emit_sum_all(d, v, id);
}

/* Whether all labels count, and count alike. */
static bool
counts_all_labels(Node *n)
{
	return *attr_int_of(n->op, &n->attr, "ignore") == INT64_MIN
		&& (n->nin < 3 || !n->in[2]);
}

/* The count of all replicas is that of which the mean is taken: the loss of
 * each is its sum over that. */
bool
dp_partition_labels(struct dp_partition *d, NodeId id)
{
	Node *n = &d->g->node[id];
	int64_t *reduction = attr_int_of(n->op, &n->attr, "reduction");
	ValId loss = n->out[0], in[2], y;
	char why[SHARDING_WHY];

	if (*reduction != 1 || !dp_has_kind(d, n->in[1], PLACEMENT_SHARD))
		return dp_visit_node(d, id);
	*reduction = 2;
	if (dp_is_micro(d) && counts_all_labels(n) && dp_infer(d, id, why)) {
		*reduction = 1;
		return dp_partition_mean(d, id);
	}
	y = emit_label_count(d, id);
	y = y ? dp_all_reduce(d, y, id) : 0;
	in[1] = dp_emit_cast(d, y, d->g->val[loss].dt, id);
	if (!in[1])
		return false;
	in[0] = dp_detach_result(d, id, 0);
	y = dp_visit_node(d, id) ? dp_emit(d, OP_DIV, 2, in, NULL, id) : 0;
	if (y)
		dp_redefine(d, y, loss);
	return y != 0;
}

/* ---- batch normalisation ---- */

struct batchnorm_parts {
	struct dp_partition *d;
	NodeId id;
	Shape rows;                     /* of one number per channel, to
	                                 * broadcast */
};

static ValId
emit_binary(const struct batchnorm_parts *b, Op op, ValId x, ValId y)
{
	return dp_emit(b->d, op, 2, (ValId[]){ x, y }, NULL, b->id);
}

static ValId
emit_scalar(const struct batchnorm_parts *b, double x)
{
	ValId v = val_scalar(b->d->g, DT_F32, x);

	b->d->g->val[v].placement.kind = PLACEMENT_REPLICATE_PARTIAL;
	return v;
}

/* Over all dims but the channels', which it keeps as ones. */
static ValId
emit_batch_mean(const struct batchnorm_parts *b, ValId x)
{
	Attr a = attr_default(OP_REDUCE_MEAN);
	ValId y;

	for (int i = 0; x && i < b->rows.rank; i++)
		if (i != 1)
			a.REDUCE_MEAN.axes.v[a.REDUCE_MEAN.axes.n++] = i;
	y = x ? dp_emit(b->d, OP_REDUCE_MEAN, 1, &x, &a, b->id) : 0;
	return y ? dp_all_reduce(b->d, y, b->id) : 0;
}

static ValId
emit_reshape(const struct batchnorm_parts *b, ValId v, const Shape *s)
{
	Attr a = attr_reshape(s);

	return !v || shape_eq(&b->d->g->val[v].shape, s) ? v
	       : dp_emit(b->d, OP_RESHAPE, 1, &v, &a, b->id);
}

/* A parameter of the channels, in float32. */
static ValId
emit_channels(const struct batchnorm_parts *b, int k)
{
	const Node *n = &b->d->g->node[b->id];
	ValId v = k < n->nin ? n->in[k] : 0;

	return emit_reshape(b, v ? dp_emit_cast(b->d, v, DT_F32, b->id) : 0,
	                    &b->rows);
}

static bool
redefine_result(const struct batchnorm_parts *b, int k, ValId v)
{
	Graph *g = b->d->g;
	ValId old = g->node[b->id].out[k];

	if (!old)
		return true;
	v = v ? emit_reshape(b, dp_emit_cast(b->d, v, g->val[old].dt, b->id),
	                     &g->val[old].shape) : 0;
	if (!v)
		return false;
	dp_redefine(b->d, v, old);
	return true;
}

/* The op's kernel knows one replica's samples; written out, its statistics are
 * sums that can be added up, and so are their adjoints. */
bool
dp_partition_batchnorm(struct dp_partition *d, NodeId id)
{
	Graph *g = d->g;
	const Node *n = &g->node[id];
	ValId x = n->in[0], m, var, y, scale, bias;
	const Placement *s = dp_placement(d, x);
	struct batchnorm_parts b = { d, id, g->val[x].shape };

	if (s->kind != PLACEMENT_SHARD || dp_has_own_channels(s)
	    || dp_is_micro(d))
		return dp_visit_node(d, id);
	for (int i = 0; i < b.rows.rank; i++)
		b.rows.dim[i] = i == 1 ? b.rows.dim[i] : 1;
	x = dp_emit_cast(d, x, DT_F32, id);
	m = emit_batch_mean(&b, x);
	x = m ? emit_binary(&b, OP_SUB, x, m) : 0;
	var = x ? emit_batch_mean(&b, emit_binary(&b, OP_MUL, x, x)) : 0;
	y = var ? emit_binary(&b, OP_ADD, var, emit_scalar(&b, g->node[id].attr
	                                                   .BATCHNORM.eps)) : 0;
	y = dp_emit(d, OP_SQRT, 1, &y, NULL, id);
	y = dp_emit(d, OP_RECIP, 1, &y, NULL, id);
	scale = emit_channels(&b, 1);
	bias = emit_channels(&b, 2);
	if (scale && y)
		y = emit_binary(&b, OP_MUL, y, scale);
	y = y ? emit_binary(&b, OP_MUL, x, y) : 0;
	if (bias && y)
		y = emit_binary(&b, OP_ADD, y, bias);
	return y && redefine_result(&b, 0, y) && redefine_result(&b, 1, m)
		&& redefine_result(&b, 2, var);
}
