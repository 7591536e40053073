/* Divisors that count samples: losses over labels, some of which may not
 * count, and the statistics of batch normalisation.
 */
#include "passes/shard/deal.h"

#include <math.h>
#include <string.h>

/* ---- losses ---- */

static ValId
sum_all(struct deal *d, ValId v, NodeId like)
{
	Attr a = attr_default(OP_REDUCE_SUM);

	a.REDUCE_SUM.keepdims = 0;
	return deal_put(d, OP_REDUCE_SUM, 1, &v, &a, like);
}

/* The weight of each label's class; of those that are ignored any. */
static ValId
class_weights(struct deal *d, ValId labels, ValId counts, ValId weights,
              NodeId like)
{
	DType dt = d->g->val[labels].dt;
	ValId in[3] = { counts, labels, val_scalar(d->g, dt, 0) };

	d->g->val[in[2]].split.kind = SPLIT_R;
	in[1] = deal_put(d, OP_WHERE, 3, in, NULL, like);
	in[0] = weights;
	return deal_cast(d, deal_put(d, OP_GATHER, 2, in, NULL, like), DT_F32,
	                 like);
}

/* Which labels count, as booleans. */
static ValId
counted(struct deal *d, ValId labels, int64_t ignore, NodeId like)
{
	ValId in[2] = { labels, labels }, v;

	if (ignore == INT64_MIN)        /* all do */
		return deal_put(d, OP_EQ, 2, in, NULL, like);
	in[1] = val_scalar(d->g, d->g->val[labels].dt, (double)ignore);
	d->g->val[in[1]].split.kind = SPLIT_R;
	v = deal_put(d, OP_EQ, 2, in, NULL, like);
	return deal_put(d, OP_NOT, 1, &v, NULL, like);
}

/* What the losses of a replica's labels are a mean over: their number, or the
 * sum of their weights. */
static ValId
label_count(struct deal *d, NodeId id)
{
	const Node *n = &d->g->node[id];
	ValId labels = n->in[1], weights = n->nin > 2 ? n->in[2] : 0;
	Attr a = n->attr;
	ValId counts = counted(d, labels, *attr_int_of(n->op, &a, "ignore"),
	                       id);
	ValId v = deal_cast(d, counts, DT_F32, id);

	if (weights && v) {
		ValId in[2] = { class_weights(d, labels, counts, weights, id),
		                v };

		v = deal_put(d, OP_MUL, 2, in, NULL, id);
	}
	return sum_all(d, v, id);
}

/* Whether all labels count, and count alike. */
static bool
all_count(Node *n)
{
	return *attr_int_of(n->op, &n->attr, "ignore") == INT64_MIN
		&& (n->nin < 3 || !n->in[2]);
}

/* The count of all replicas is that of which the mean is taken: the loss of
 * each is its sum over that. */
bool
deal_labels(struct deal *d, NodeId id)
{
	Node *n = &d->g->node[id];
	int64_t *reduction = attr_int_of(n->op, &n->attr, "reduction");
	ValId loss = n->out[0], in[2], y;
	char why[SHARD_WHY];

	if (*reduction != 1 || !deal_is(d, n->in[1], SPLIT_S))
		return deal_visit(d, id);
	*reduction = 2;
	if (deal_is_micro(d) && all_count(n) && deal_infer(d, id, why)) {
		*reduction = 1;
		return deal_mean(d, id);
	}
	y = label_count(d, id);
	y = y ? deal_sum(d, y, id) : 0;
	in[1] = deal_cast(d, y, d->g->val[loss].dt, id);
	if (!in[1])
		return false;
	in[0] = deal_detach(d, id, 0);
	y = deal_visit(d, id) ? deal_put(d, OP_DIV, 2, in, NULL, id) : 0;
	if (y)
		deal_claim(d, y, loss);
	return y != 0;
}

/* ---- batch normalisation ---- */

struct bn {
	struct deal *d;
	NodeId id;
	Shape rows;                     /* of one number per channel, to
	                                 * broadcast */
};

static ValId
put2(const struct bn *b, Op op, ValId x, ValId y)
{
	return deal_put(b->d, op, 2, (ValId[]){ x, y }, NULL, b->id);
}

static ValId
scalar(const struct bn *b, double x)
{
	ValId v = val_scalar(b->d->g, DT_F32, x);

	b->d->g->val[v].split.kind = SPLIT_R;
	return v;
}

/* Over all dims but the channels', which it keeps as ones. */
static ValId
mean(const struct bn *b, ValId x)
{
	Attr a = attr_default(OP_REDUCE_MEAN);
	ValId y;

	for (int i = 0; x && i < b->rows.rank; i++)
		if (i != 1)
			a.REDUCE_MEAN.axes.v[a.REDUCE_MEAN.axes.n++] = i;
	y = x ? deal_put(b->d, OP_REDUCE_MEAN, 1, &x, &a, b->id) : 0;
	return y ? deal_sum(b->d, y, b->id) : 0;
}

static ValId
reshape(const struct bn *b, ValId v, const Shape *s)
{
	Attr a = attr_reshape(s);

	return !v || shape_eq(&b->d->g->val[v].shape, s) ? v
	       : deal_put(b->d, OP_RESHAPE, 1, &v, &a, b->id);
}

/* A parameter of the channels, in float32. */
static ValId
channels(const struct bn *b, int k)
{
	const Node *n = &b->d->g->node[b->id];
	ValId v = k < n->nin ? n->in[k] : 0;

	return reshape(b, v ? deal_cast(b->d, v, DT_F32, b->id) : 0,
	               &b->rows);
}

static bool
give(const struct bn *b, int k, ValId v)
{
	Graph *g = b->d->g;
	ValId old = g->node[b->id].out[k];

	if (!old)
		return true;
	v = v ? reshape(b, deal_cast(b->d, v, g->val[old].dt, b->id),
	                &g->val[old].shape) : 0;
	if (!v)
		return false;
	deal_claim(b->d, v, old);
	return true;
}

/* The op's kernel knows one replica's samples; written out, its statistics are
 * sums that can be added up, and so are their adjoints. */
bool
deal_batchnorm(struct deal *d, NodeId id)
{
	Graph *g = d->g;
	const Node *n = &g->node[id];
	ValId x = n->in[0], m, var, y, scale, bias;
	const Split *s = deal_state(d, x);
	struct bn b = { d, id, g->val[x].shape };

	if (s->kind != SPLIT_S || (s->lead == 1 && s->axis == 1)
	    || deal_is_micro(d))
		return deal_visit(d, id);
	for (int i = 0; i < b.rows.rank; i++)
		b.rows.dim[i] = i == 1 ? b.rows.dim[i] : 1;
	x = deal_cast(d, x, DT_F32, id);
	m = mean(&b, x);
	x = m ? put2(&b, OP_SUB, x, m) : 0;
	var = x ? mean(&b, put2(&b, OP_MUL, x, x)) : 0;
	y = var ? put2(&b, OP_ADD, var, scalar(&b, g->node[id].attr
	                                       .BATCHNORM.eps)) : 0;
	y = deal_put(d, OP_SQRT, 1, &y, NULL, id);
	y = deal_put(d, OP_RECIP, 1, &y, NULL, id);
	scale = channels(&b, 1);
	bias = channels(&b, 2);
	if (scale && y)
		y = put2(&b, OP_MUL, y, scale);
	y = y ? put2(&b, OP_MUL, x, y) : 0;
	if (bias && y)
		y = put2(&b, OP_ADD, y, bias);
	return y && give(&b, 0, y) && give(&b, 1, m) && give(&b, 2, var);
}

/* ---- constants ---- */

/* Elements that v, a summand, is the sum of; 0: unknown. */
static int64_t
summed(const struct deal *d, ValId v)
{
	const Graph *g = d->g;

	while (deal_is(d, v, SPLIT_P) && g->val[v].def
	       && g->node[g->val[v].def].nin) {
		v = g->node[g->val[v].def].in[0];
		if (deal_is(d, v, SPLIT_S))
			return val_nelem(&g->val[v]);
	}
	return 0;
}

/* Whether v, a summand, is a mean over samples, or follows from one. */
static bool
is_of_mean(const struct deal *d, ValId v)
{
	const Graph *g = d->g;

	while (deal_is(d, v, SPLIT_P) && g->val[v].def) {
		const Node *n = &g->node[g->val[v].def];

		if (d->share && n->op == OP_MUL && n->in[1] == d->share)
			return true;
		v = n->nin ? n->in[0] : 0;
	}
	return false;
}

static bool
is_whole(double x)
{
	return x >= 1 && x < 1e15 && fabs(x - nearbyint(x)) < 1e-6 * x;
}

static bool
is_size(const struct deal *d, double x)
{
	return is_whole(x) && (int64_t)nearbyint(x) % d->samples == 0;
}

/* The factor of v, if it is a product with a number; else 0. */
static double
factor_of(const struct deal *d, ValId v)
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
divides_sum(const struct deal *d, ValId v, double by)
{
	int64_t all = summed(d, v), n = (int64_t)nearbyint(by);

	return (is_size(d, by) && (!all || all % n == 0))
		|| (is_whole(by) && n > 1 && n + 1 == d->samples);
}

/* Of a mean: n / (n - 1), in one or in two steps, or n. */
static bool
scales_mean(const struct deal *d, ValId v, double by)
{
	double x = 1 / by, n = x / (x - 1);

	if (by > 1)
		return is_whole(by) && is_size(d, by + 1)
			&& fabs(factor_of(d, v) - by - 1) < 1e-6 * by;
	return (x > 8.5 && is_size(d, x))
		|| (x > 1 && n > 3.5 && is_size(d, n));
}

/* What a number beside a sum over samples, or a mean over them, is: */
enum scaling {
	A_FACTOR,
	MAYBE_SIZE,                     /* small, as factors of formulas are */
	A_SIZE                          /* of the batch, or of what is summed:
	                                 * that does not grow with the batch */
};

struct scaled {
	ValId sum;
	double by;                      /* it is divided by that */
	bool mean;
};

static enum scaling
scaling_of(const struct deal *d, const Node *n, const struct scaled *s)
{
	double x = 1 / s->by;

	if (s->mean)
		return scales_mean(d, s->sum, s->by) ? A_SIZE
			: x > 1 && is_size(d, x) ? MAYBE_SIZE : A_FACTOR;
	if (!divides_sum(d, s->sum, s->by))
		return A_FACTOR;
	/* halves and quarters are factors of many formulas */
	return n->op == OP_MUL && strcmp(node_type(d->g, n), "Div")
	       && s->by < 8.5 ? MAYBE_SIZE : A_SIZE;
}

static enum scaling
find_scaling(const struct deal *d, const Node *n, struct scaled *s)
{
	enum scaling found = A_FACTOR;

	for (int k = 0; k < 2 && d->samples > 1 && found == A_FACTOR; k++) {
		double x;

		if ((n->op != OP_DIV && n->op != OP_MUL)
		    || (n->op == OP_DIV && k > 0)
		    || !deal_is(d, n->in[k], SPLIT_P)
		    || n->in[1 - k] == d->share
		    || deal_is_extent(d, n->in[k])
		    || !val_splat(d->g, n->in[1 - k], &x) || !(x > 0))
			continue;
		*s = (struct scaled){ n->in[k], n->op == OP_DIV ? x : 1 / x,
		                      is_of_mean(d, n->in[k]) };
		found = scaling_of(d, n, s);
	}
	return found;
}

static void
note_factor(const struct deal *d, const Node *n, const struct scaled *s)
{
	const char *label = node_label(d->g, n);

	if (d->p->opt->dp != DP_SUMS && !diag_is_soft(d->p->diag))
		diag_note(d->p->diag, "node '%s' (%s): a %s over samples is "
		          "scaled by %g, which is treated as a constant; if it "
		          "is the batch size, use a %s without the factor",
		          label ? label
		          : d->g->val[n->out[0]].name, node_type(d->g, n),
		          s->mean ? "mean" : "sum", 1 / s->by,
		          s->mean ? "sum" : "mean");
}

bool
deal_divides_by_size(const struct deal *d, const Node *n)
{
	struct scaled s;
	enum scaling found = find_scaling(d, n, &s);

	if (found == MAYBE_SIZE)
		note_factor(d, n, &s);
	return found == A_SIZE;
}

const char *
deal_mean_line(const struct deal *d, const Node *n)
{
	struct scaled s;
	int64_t size;

	if (find_scaling(d, n, &s) != A_SIZE)
		return "";
	if (s.mean)
		return s.by < 1 && is_size(d, 1 / s.by)
			? ": replace y.mean() * N by y.sum()" : "";
	size = (int64_t)nearbyint(s.by);
	if (size == summed(d, s.sum))
		return ": replace y.sum() / N by y.mean()";
	return size == d->samples
		? ": replace y.sum() / N by y.flatten(1).sum(1).mean(), where "
		  "y may be kl_div(..., reduction='none')" : "";
}
