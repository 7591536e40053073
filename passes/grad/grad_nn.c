/* Gradient rules of reductions, products, normalisation, losses and
 * attention. */
#include "passes/grad/grad_rules.h"

#include <string.h>

/* ---- reductions ---- */

/* The input's shape with extent 1 where it was reduced; *count elements went
 * into one. */
static Shape
kept_shape(const struct grad *c, double *count)
{
	const IntList *axes = &c->n.attr.REDUCE_SUM.axes;
	Shape s = *adj_shape(c, c->n.in[0]);
	bool all = axes->n == 0 && !c->n.attr.REDUCE_SUM.noop;

	*count = 1;
	for (int i = 0; i < (all ? s.rank : axes->n); i++) {
		int64_t k = all ? i : axes->v[i];

		if (k < 0)
			k += s.rank;
		*count *= (double)s.dim[k];
		s.dim[k] = 1;
	}
	return s;
}

/* v, of the reduction's result, with the dims that were reduced as 1.  Where
 * the shard of a dim is 1 as well, the shapes do not tell which is which. */
static ValId
adj_keep_dims(struct grad *c, ValId v, const Shape *kept)
{
	const Placement *x = &c->g->val[c->n.in[0]].placement;
	const Placement *y = &c->g->val[c->n.out[0]].placement;
	ValId d = adj_reshape(c, v, kept);

	if (d != v && x->kind == PLACEMENT_SHARD && y->kind == PLACEMENT_SHARD
	    && x->first_axis == x->axis
	    && adj_shape(c, c->n.in[0])->dim[x->axis] == 1)
		c->g->val[d].placement = *x;
	return d;
}

static bool
grad_spread(struct grad *c, bool mean)
{
	double count;
	const Graph *g = c->g;
	Shape kept = kept_shape(c, &count);
	ValId d = c->dy[0], x = c->n.in[0];
	Attr a = attr_expand(adj_shape(c, x));

	if (adj_shape(c, d)->rank > 0)          /* a scalar expands as it is */
		d = adj_keep_dims(c, d, &kept);
	if (mean)
		d = adj_scale(c, d, 1 / count);
	/* a piece of one element is another thing than the sum, too */
	if (d != 0 && shape_eq(adj_shape(c, d), adj_shape(c, x))
	    && g->val[x].placement.kind == PLACEMENT_SHARD
	    && g->val[c->n.out[0]].placement.kind != PLACEMENT_SHARD)
		c->dx[0] = adj_op(c, OP_EXPAND, 1, &d, &a);
	else
		c->dx[0] = adj_expand(c, d, adj_shape(c, x));
	return true;
}

bool
grad_reduce_sum(struct grad *c)
{
	return grad_spread(c, false);
}

bool
grad_reduce_mean(struct grad *c)
{
	return grad_spread(c, true);
}

/* v reduced over the same axes, dims kept.  All reductions have the same
 * attributes. */
static ValId
reduce_kept(struct grad *c, Op op, ValId v)
{
	Attr a = attr_default(op);

	a.REDUCE_SUM.axes = c->n.attr.REDUCE_SUM.axes;
	a.REDUCE_SUM.noop = c->n.attr.REDUCE_SUM.noop;
	return adj_op(c, op, 1, &v, &a);
}

/* max and min: ties share evenly. */
bool
grad_reduce_max(struct grad *c)
{
	double count;
	Shape kept = kept_shape(c, &count);
	ValId x = c->n.in[0], hit, ties, d;
	DType dt = adj_dt(c, x);

	hit = adj_2(c, OP_EQ, x, adj_keep_dims(c, c->n.out[0], &kept));
	ties = reduce_kept(c, OP_REDUCE_SUM, adj_cast(c, hit, dt));
	d = adj_2(c, OP_DIV, adj_keep_dims(c, c->dy[0], &kept), ties);
	c->dx[0] = adj_where(c, hit, d, adj_scalar(c, dt, 0));
	return true;
}

/* Without dividing by zero: where one factor is zero, only its own slope is
 * not, and where two are, none is. */
bool
grad_reduce_prod(struct grad *c)
{
	double count;
	Shape kept = kept_shape(c, &count);
	ValId x = c->n.in[0], none, zeros, others, d, one;
	DType dt = adj_dt(c, x);
	ValId zero = adj_scalar(c, dt, 0);

	one = adj_scalar(c, dt, 1);
	none = adj_2(c, OP_EQ, x, zero);
	zeros = reduce_kept(c, OP_REDUCE_SUM, adj_cast(c, none, dt));
	others = adj_where(c, none, one, x);
	d = reduce_kept(c, OP_REDUCE_PROD, others);
	d = adj_2(c, OP_MUL, d, adj_keep_dims(c, c->dy[0], &kept));
	c->dx[0] = adj_where(c, none,
	                     adj_where(c, adj_2(c, OP_EQ, zeros, one), d, zero),
	                     adj_where(c, adj_2(c, OP_EQ, zeros, zero),
	                               adj_2(c, OP_DIV, d, others), zero));
	return true;
}

/* ---- products ---- */

static ValId
adj_product(struct grad *c, ValId a, bool ta, ValId b, bool tb)
{
	Attr at = attr_default(OP_MATMUL);

	at.MATMUL.ta = ta;
	at.MATMUL.tb = tb;
	at.MATMUL.alpha = c->n.attr.MATMUL.alpha;
	return adj_op(c, OP_MATMUL, 2, (ValId[]){ a, b }, &at);
}

/* [..., m, k] as one matrix. */
static ValId
flatten_rows(struct grad *c, ValId v)
{
	const Shape *s = adj_shape(c, v);
	const Shape to = SHAPE(shape_span(s, 0, s->rank - 1),
	                       s->dim[s->rank - 1]);

	return adj_reshape(c, v, &to);
}

/* The right side is one matrix for the whole batch, and the left side's rows
 * can be strung together: one product instead of a batch and a sum.  Not if
 * those are cut over ranks, of which one may have but one matrix. */
static bool
one_right_side(const struct grad *c)
{
	const Placement *cut = &c->g->val[c->n.out[0]].placement;
	const Shape *a = adj_shape(c, c->n.in[0]);
	const Shape *b = adj_shape(c, c->n.in[1]);
	const Shape *y = adj_shape(c, c->dy[0]);

	if (cut->kind == PLACEMENT_SHARD && cut->axis < y->rank - 1)
		return false;
	for (int i = 0; i < b->rank - 2; i++)
		if (b->dim[i] != 1)
			return false;
	if (c->n.attr.MATMUL.ta || a->rank != y->rank || a->rank == 2)
		return false;
	return memcmp(a->dim, y->dim, (size_t)(a->rank - 1) * sizeof *a->dim)
	       == 0;
}

static ValId
left_gradient(struct grad *c)
{
	bool ta = c->n.attr.MATMUL.ta, tb = c->n.attr.MATMUL.tb;
	ValId b = c->n.in[1], d = c->dy[0];

	d = ta ? adj_product(c, b, tb, d, true)
	       : adj_product(c, d, false, b, !tb);
	return adj_fit(c, d, c->n.in[0]);
}

static ValId
right_gradient(struct grad *c)
{
	bool ta = c->n.attr.MATMUL.ta, tb = c->n.attr.MATMUL.tb;
	ValId a = c->n.in[0], d = c->dy[0];
	bool one = one_right_side(c);

	if (one) {
		a = flatten_rows(c, a);
		d = flatten_rows(c, d);
	}
	d = tb ? adj_product(c, d, true, a, ta)
	       : adj_product(c, a, !ta, d, false);
	return one ? adj_reshape(c, d, adj_shape(c, c->n.in[1]))
	           : adj_fit(c, d, c->n.in[1]);
}

/* Gradients of parameters come first: then what was kept for them can die
 * before the adjoint that goes on is written. */
bool
grad_matmul(struct grad *c)
{
	bool left_first = val_param_of(c->g, c->n.in[0]) != 0;

	if (c->n.nin > 2 && c->n.in[2] != 0 && c->want[2])
		c->dx[2] = adj_fit(c, c->dy[0], c->n.in[2]);
	if (c->n.nin > 3 && c->n.in[3] != 0 && c->want[3])
		c->dx[3] = c->dy[0];
	if (c->want[0] && left_first)
		c->dx[0] = left_gradient(c);
	if (c->want[1])
		c->dx[1] = right_gradient(c);
	if (c->want[0] && !left_first)
		c->dx[0] = left_gradient(c);
	return true;
}

/* The adjoint goes by the same indices.  The parameters' gradient comes first,
 * as above. */
bool
grad_expert_matmul(struct grad *c)
{
	ValId x = c->n.in[0], w = c->n.in[1], idx = c->n.in[2], dy = c->dy[0];
	bool tb = c->n.attr.EXPERT_MATMUL.tb;
	Attr product = attr_default(OP_EXPERT_MATMUL);
	Attr sums = attr_default(OP_EXPERT_DW);

	product.EXPERT_MATMUL.tb = !tb;
	product.EXPERT_MATMUL.all = c->n.attr.EXPERT_MATMUL.all;
	product.EXPERT_MATMUL.sent = c->n.attr.EXPERT_MATMUL.sent;
	sums.EXPERT_DW.all = c->n.attr.EXPERT_MATMUL.all;
	sums.EXPERT_DW.sent = c->n.attr.EXPERT_MATMUL.sent;
	sums.EXPERT_DW.experts = adj_shape(c, w)->dim[0];
	if (c->want[1])
		c->dx[1] = adj_op(c, OP_EXPERT_DW, 3,
		                  (ValId[]){ tb ? dy : x, tb ? x : dy, idx },
		                  &sums);
	if (c->want[0])
		c->dx[0] = adj_op(c, OP_EXPERT_MATMUL, 3,
		                  (ValId[]){ dy, w, idx }, &product);
	return true;
}

bool
grad_take_rows(struct grad *c)
{
	c->dx[0] = adj_op(c, OP_TAKE_ROWS, 3, (ValId[]){
		c->dy[0], c->n.in[2], c->n.in[1]
	}, NULL);
	return true;
}

/* ---- rows ---- */

bool
grad_softmax(struct grad *c)
{
	Attr a = attr_default(OP_SOFTMAX_GRAD);

	a.SOFTMAX_GRAD.axis = c->n.attr.SOFTMAX.axis;
	c->dx[0] = adj_op(c, OP_SOFTMAX_GRAD, 2,
	                  (ValId[]){ c->dy[0], c->n.out[0] }, &a);
	return true;
}

bool
grad_log_softmax(struct grad *c)
{
	Attr a = attr_default(OP_LOG_SOFTMAX_GRAD);

	a.LOG_SOFTMAX_GRAD.axis = c->n.attr.LOG_SOFTMAX.axis;
	c->dx[0] = adj_op(c, OP_LOG_SOFTMAX_GRAD, 2,
	                  (ValId[]){ c->dy[0], c->n.out[0] }, &a);
	return true;
}

/* True if an output other than the first has an adjoint. */
static bool
side_adjoint(const struct grad *c)
{
	for (int k = 1; k < c->n.nout; k++)
		if (c->dy[k] != 0)
			return true;
	return false;
}

static void
set_adjoints(struct grad *c, const ValId *out, int n, const int *input)
{
	for (int k = 0; out != NULL && k < n; k++)
		if (out[k] != 0)
			c->dx[input[k]] = out[k];
}

static Shape
norm_row_shape(const struct grad *c, int64_t axis)
{
	Shape s = *adj_shape(c, c->n.in[0]);

	s.rank = (int)(axis < 0 ? axis + s.rank : axis);
	return s;
}

/* What adjoints of the statistics add to x's, or 0:
 *   dmean / n - drstd rstd^3 (x - mean) / n
 * for rows of n elements; mean 0: there is none. */
static ValId
from_statistics(struct grad *c, int64_t axis, ValId mean, ValId rstd,
                ValId dmean, ValId drstd)
{
	ValId x = c->n.in[0], t = 0;
	Shape kept = *adj_shape(c, x);
	double n = 1;

	for (int i = (int)(axis < 0 ? axis + kept.rank : axis); i < kept.rank;
	     i++) {
		n *= (double)kept.dim[i];
		kept.dim[i] = 1;
	}
	if (drstd) {
		x = adj_cast(c, x, DT_F32);
		if (mean)
			x = adj_2(c, OP_SUB, x, adj_reshape(c, mean, &kept));
		t = adj_2(c, OP_MUL, adj_2(c, OP_MUL, rstd, rstd), rstd);
		t = adj_scale(c, adj_2(c, OP_MUL, drstd, t), -1 / n);
		t = adj_2(c, OP_MUL, x, adj_reshape(c, t, &kept));
	}
	if (dmean) {
		dmean = adj_reshape(c, adj_scale(c, dmean, 1 / n), &kept);
		t = t ? adj_2(c, OP_ADD, t, dmean) : dmean;
	}
	t = adj_cast(c, t, adj_dt(c, c->n.in[0]));
	return adj_expand(c, t, adj_shape(c, c->n.in[0]));
}

bool
grad_layernorm(struct grad *c)
{
	Attr a = attr_default(OP_LAYERNORM_GRAD);
	int64_t axis = c->n.attr.LAYERNORM.axis;
	Shape rows = norm_row_shape(c, axis);
	bool bias = adj_in(c, 2) != 0 && c->want[2];
	const bool keep[3] = { c->want[0], c->want[1], bias };
	ValId in[6] = { c->dy[0], c->n.in[0], c->n.in[1] };

	in[3] = adj_out(c, 1, DT_F32, rows);
	in[4] = adj_out(c, 2, DT_F32, rows);
	if (c->want[0])
		c->dx[0] = in[5] = from_statistics(c, axis, in[3], in[4],
		                                   c->dy[1], c->dy[2]);
	a.LAYERNORM_GRAD.axis = axis;
	if (c->dy[0])
		set_adjoints(c,
		             adj_node(c, OP_LAYERNORM_GRAD, in[5] ? 6 : 5, in,
		                      &a, 3, keep),
		             3, (const int[]){ 0, 1, 2 });
	return true;
}

bool
grad_rmsnorm(struct grad *c)
{
	Attr a = attr_default(OP_RMSNORM_GRAD);
	int64_t axis = c->n.attr.RMSNORM.axis;
	ValId in[5] = { c->dy[0], c->n.in[0], c->n.in[1] };

	in[3] = adj_out(c, 1, DT_F32, norm_row_shape(c, axis));
	if (c->want[0])
		c->dx[0] = in[4] = from_statistics(c, axis, 0, in[3], 0,
		                                   c->dy[1]);
	a.RMSNORM_GRAD.axis = axis;
	if (c->dy[0])
		set_adjoints(c,
		             adj_node(c, OP_RMSNORM_GRAD, in[4] ? 5 : 4, in, &a,
		                      2, c->want),
		             2, (const int[]){ 0, 1 });
	return true;
}

/* ---- losses ---- */

bool
grad_sce(struct grad *c)
{
	Attr a = attr_default(OP_SCE_GRAD);
	Shape lse = *adj_shape(c, c->n.in[1]);
	ValId in[6] = { c->dy[0], c->n.in[0], c->n.in[1] };

	if (side_adjoint(c))
		return grad_refuse(c, "its log-sum-exp output is used");
	if (adj_in(c, 2) != 0 && c->want[2])
		return grad_refuse(c, "its class weights require a gradient");
	in[3] = adj_out(c, 1, DT_F32, lse);
	in[4] = adj_out(c, 2, DT_F32, shape_scalar());
	in[5] = adj_in(c, 2);
	a.SCE_GRAD.reduction = c->n.attr.SCE.reduction;
	a.SCE_GRAD.ignore = c->n.attr.SCE.ignore;
	a.SCE_GRAD.whole_extent = c->n.attr.SCE.whole_extent;
	c->dx[0] = adj_op(c, OP_SCE_GRAD, in[5] ? 6 : 5, in, &a);
	return true;
}

bool
grad_nll(struct grad *c)
{
	Attr a = attr_default(OP_NLL_GRAD);
	const Shape *logp = adj_shape(c, c->n.in[0]);
	ValId in[4] = { c->dy[0], c->n.in[1] };

	if (side_adjoint(c))
		return grad_refuse(c, "its divisor output is used");
	if (adj_in(c, 2) != 0 && c->want[2])
		return grad_refuse(c, "its class weights require a gradient");
	a.NLL_GRAD.shape = shape_list(logp);
	a.NLL_GRAD.reduction = c->n.attr.NLL.reduction;
	a.NLL_GRAD.ignore = c->n.attr.NLL.ignore;
	in[2] = adj_out(c, 1, DT_F32, shape_scalar());
	in[3] = adj_in(c, 2);
	c->dx[0] = adj_op(c, OP_NLL_GRAD, in[3] ? 4 : 3, in, &a);
	return true;
}

/* ---- attention ---- */

bool
grad_attention(struct grad *c)
{
	Attr a = attr_default(OP_ATTENTION_GRAD);
	const Shape *q = adj_shape(c, c->n.in[0]);
	Shape rows = { 3, { q->dim[0], q->dim[1], q->dim[2] } };
	ValId in[7] = { c->dy[0], c->n.in[0], c->n.in[1], c->n.in[2],
		c->n.out[0] };

	if (side_adjoint(c))
		return grad_refuse(c, "its log-sum-exp output is used");
	if (adj_in(c, 3) != 0 && c->want[3])
		return grad_refuse(c, "its mask requires a gradient; try: "
		                   "--attention=unfused");
	in[5] = adj_out(c, 1, DT_F32, rows);
	in[6] = adj_in(c, 3);
	a.ATTENTION_GRAD.scale = c->n.attr.ATTENTION.scale;
	a.ATTENTION_GRAD.causal = c->n.attr.ATTENTION.causal;
	a.ATTENTION_GRAD.ratio = c->n.attr.ATTENTION.ratio;
	a.ATTENTION_GRAD.stream = c->n.attr.ATTENTION.stream;
	a.ATTENTION_GRAD.batch_segments = c->n.attr.ATTENTION.batch_segments;
	a.ATTENTION_GRAD.half = c->n.attr.ATTENTION.half;
	a.ATTENTION_GRAD.context = c->n.attr.ATTENTION.context;
	a.ATTENTION_GRAD.share_heads = c->n.attr.ATTENTION.share_heads;
	set_adjoints(c, adj_node(c, OP_ATTENTION_GRAD, in[6] ? 7 : 6, in, &a, 3,
	                         c->want), 3, (const int[]){ 0, 1, 2 });
	return true;
}

bool
grad_det(struct grad *c)
{
	c->dx[0] = adj_2(c, OP_DET_GRAD, c->dy[0], c->n.in[0]);
	return true;
}
