/* Divisors that count samples: losses over labels, some of which may not
 * count, and the statistics of batch normalisation.
 */
#include "passes/shard/dp_partition.h"

#include <math.h>
#include <string.h>

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

	if (s->kind != PLACEMENT_SHARD || (s->first_axis == 1 && s->axis == 1)
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

/* ---- constants ---- */

/* Elements that v, a summand, is the sum of; 0: unknown. */
static int64_t
count_summed(const struct dp_partition *d, ValId v)
{
	const Graph *g = d->g;

	while (dp_has_kind(d, v, PLACEMENT_PARTIAL) && g->val[v].def
	       && g->node[g->val[v].def].nin) {
		v = g->node[g->val[v].def].in[0];
		if (dp_has_kind(d, v, PLACEMENT_SHARD))
			return val_nelem(&g->val[v]);
	}
	return 0;
}

/* Whether v, a summand, is a mean over samples, or follows from one. */
static bool
is_from_mean(const struct dp_partition *d, ValId v)
{
	const Graph *g = d->g;

	while (dp_has_kind(d, v, PLACEMENT_PARTIAL) && g->val[v].def) {
		const Node *n = &g->node[g->val[v].def];

		if (d->share && n->op == OP_MUL && n->in[1] == d->share)
			return true;
		v = n->nin ? n->in[0] : 0;
	}
	return false;
}

static bool
is_integral(double x)
{
	return x >= 1 && x < 1e15 && fabs(x - nearbyint(x)) < 1e-6 * x;
}

static bool
is_sample_count(const struct dp_partition *d, double x)
{
	return is_integral(x) && (int64_t)nearbyint(x) % d->samples == 0;
}

/* The factor of v, if it is a product with a number; else 0. */
static double
factor_of_product(const struct dp_partition *d, ValId v)
{
	const Node *n = &d->g->node[d->g->val[v].def];
	double x;

	for (int k = 0; d->g->val[v].def && n->op == OP_MUL && k < 2; k++)
		if (val_splat(d->g, n->in[k], &x))
			return x;
	return 0;
}

/* Of a sum: by may be its number of samples, of elements, or one less than that
 * of samples. */
static bool
divides_sum(const struct dp_partition *d, ValId v, double by)
{
	int64_t all = count_summed(d, v), n = (int64_t)nearbyint(by);

	return (is_sample_count(d, by) && (!all || all % n == 0))
		|| (is_integral(by) && n > 1 && n + 1 == d->samples);
}

/* Of a mean: n / (n - 1), in one or in two steps, or n. */
static bool
scales_mean(const struct dp_partition *d, ValId v, double by)
{
	double x = 1 / by, n = x / (x - 1);

	if (by > 1)
		return is_integral(by) && is_sample_count(d, by + 1)
			&& fabs(factor_of_product(d, v) - by - 1) < 1e-6 * by;
	return (x > 8.5 && is_sample_count(d, x))
		|| (x > 1 && n > 3.5 && is_sample_count(d, n));
}

/* What a number beside a sum over samples, or a mean over them, is: */
enum scaling {
	SCALE_FACTOR,
	SCALE_MAYBE_SIZE,               /* small, as factors of formulas are */
	SCALE_SIZE                      /* of the batch, or of what is summed:
	                                 * that does not grow with the batch */
};

struct scaled_sum {
	ValId sum;
	double by;                      /* it is divided by that */
	bool mean;
};

static enum scaling
classify_scaling(const struct dp_partition *d, const Node *n,
                 const struct scaled_sum *s)
{
	double x = 1 / s->by;

	if (s->mean)
		return scales_mean(d, s->sum, s->by) ? SCALE_SIZE
			: x > 1 && is_sample_count(d, x) ? SCALE_MAYBE_SIZE
			: SCALE_FACTOR;
	if (!divides_sum(d, s->sum, s->by))
		return SCALE_FACTOR;
	/* halves and quarters are factors of many formulas */
	return n->op == OP_MUL && strcmp(node_type(d->g, n), "Div")
	       && s->by < 8.5 ? SCALE_MAYBE_SIZE : SCALE_SIZE;
}

static enum scaling
find_scaling(const struct dp_partition *d, const Node *n, struct scaled_sum *s)
{
	enum scaling found = SCALE_FACTOR;

	for (int k = 0; k < 2 && d->samples > 1 && found == SCALE_FACTOR; k++) {
		double x;

		if ((n->op != OP_DIV && n->op != OP_MUL)
		    || (n->op == OP_DIV && k > 0)
		    || !dp_has_kind(d, n->in[k], PLACEMENT_PARTIAL)
		    || n->in[1 - k] == d->share
		    || dp_is_extent(d, n->in[k])
		    || !val_splat(d->g, n->in[1 - k], &x) || !(x > 0))
			continue;
		*s = (struct scaled_sum){ n->in[k], n->op == OP_DIV ? x : 1 / x,
		                          is_from_mean(d, n->in[k]) };
		found = classify_scaling(d, n, s);
	}
	return found;
}

static void
note_factor(const struct dp_partition *d, const Node *n,
            const struct scaled_sum *s)
{
	if (d->p->opt->dp != DP_SUMS && !diag_is_soft(d->p->diag))
		diag_note(d->p->diag, "node '%s' (%s): a %s over samples is "
		          "scaled by %g, which is treated as a constant; if it "
		          "is the batch size, use a %s without the factor",
		          node_label(d->g, n), node_type(d->g, n),
		          s->mean ? "mean" : "sum", 1 / s->by,
		          s->mean ? "sum" : "mean");
}

bool
dp_divides_by_size(const struct dp_partition *d, const Node *n)
{
	struct scaled_sum s;
	enum scaling found = find_scaling(d, n, &s);

	if (found == SCALE_MAYBE_SIZE)
		note_factor(d, n, &s);
	return found == SCALE_SIZE;
}

const char *
dp_mean_hint(const struct dp_partition *d, const Node *n)
{
	struct scaled_sum s;
	int64_t size;

	if (find_scaling(d, n, &s) != SCALE_SIZE)
		return "";
	if (s.mean)
		return s.by < 1 && is_sample_count(d, 1 / s.by)
			? ": replace y.mean() * N by y.sum()" : "";
	size = (int64_t)nearbyint(s.by);
	if (size == count_summed(d, s.sum))
		return ": replace y.sum() / N by y.mean()";
	return size == d->samples
		? ": replace y.sum() / N by y.flatten(1).sum(1).mean(), where "
		  "y may be kl_div(..., reduction='none')" : "";
}
