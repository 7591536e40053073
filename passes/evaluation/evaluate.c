/* The evaluation graph: running statistics replace batch statistics.
 *
 * A batch norm with running statistics uses them and does not update them.
 * One without uses batch statistics, as in training.  The rules of canon
 * remove dropout and updates of statistics, because nothing is trained.
 *
 * Means over labels become sums and their divisors.  If exactly one op
 * compares class scores with labels, more outputs give the number of labels
 * counted, the number predicted correctly, and their total cross entropy:
 * sums, so that batches add up.
 */
#include "passes/evaluation/evaluation.h"

#include "passes/canon/loss.h"
#include "passes/canon/match.h"

/* Whether v follows from constant numbers and the batch size alone. */
static bool
is_batch_number(const struct rewrite *w, ValId v, int depth)
{
	NodeId n = w->g->val[v].def;
	double x;

	if (rw_scalar(w, v, &x) || rw_is(w, v, OP_EXTENT))
		return true;
	if (!n || depth == 0 || shape_nelem(rw_shape(w, v)) != 1)
		return false;
	for (int k = 0; k < w->g->node[n].nin; k++)
		if (!is_batch_number(w, rw_in(w, n, k), depth - 1))
			return false;
	return w->g->node[n].nin > 0;
}

enum { DEPTH = 8 };

/* v without a constant factor: PyTorch's variances divide by n - 1. */
static ValId
skip_scaling(const struct rewrite *w, ValId v)
{
	NodeId mul = rw_is(w, v, OP_MUL);

	for (int i = 0; mul && i < 2; i++)
		if (is_batch_number(w, rw_in(w, mul, i), DEPTH))
			return rw_in(w, mul, 1 - i);
	return v;
}

/* The running statistic that this batch statistic updates; 0: none.  A module
 * called twice updates its statistics twice. */
static ValId
running_statistic(const struct rewrite *w, ValId new)
{
	NodeId update = 0;
	ValId stat;

	for (NodeId n = 1; n < w->g->nnode && !update; n++)
		if (w->g->node[n].op == OP_BN_UPDATE && !w->dead[n]
		    && skip_scaling(w, rw_in(w, n, 1)) == new)
			update = n;
	if (!update)
		return 0;
	stat = rw_in(w, update, 0);
	while ((update = rw_is(w, stat, OP_BN_UPDATE)))
		stat = rw_in(w, update, 0);
	return w->g->val[stat].kind == V_BUFFER ? stat : 0;
}

static ValId
cast_value(struct rewrite *w, ValId v, DType to)
{
	Attr a = attr_cast(to);

	return !v || rw_dt(w, v) == to ? v : rw_emit(w, OP_CAST, 1, &v, &a);
}

/* One element per channel, in float32, to broadcast against x. */
static ValId
per_channel(struct rewrite *w, ValId v, ValId x)
{
	const Shape s = shape_along(rw_shape(w, x)->rank, 1,
	                            rw_shape(w, x)->dim[1]);

	return rw_reshape(w, cast_value(w, v, DT_F32), &s);
}

/* (x - mean) * (scale / sqrt(var + eps)) + bias, of ONNX's
 * BatchNormalization. */
static bool
use_running_statistics(struct rewrite *w, NodeId root)
{
	const Node *n = &w->g->node[root];
	ValId mean = running_statistic(w, n->out[1]);
	ValId var = running_statistic(w, n->out[2]);
	ValId x = rw_in(w, root, 0), scale = rw_in(w, root, 1);
	ValId bias = rw_in(w, root, 2), k, y;
	double eps = n->attr.BATCHNORM.eps;

	if (!mean || !var || !w->nuse[rw_out(w, root)])
		return false;
	k = cast_value(w, var, DT_F32);
	k = rw_binary(w, OP_ADD, k, rw_const_like(w, k, eps));
	k = rw_unary(w, OP_RECIP, rw_unary(w, OP_SQRT, k));
	if (scale)
		k = rw_binary(w, OP_MUL, cast_value(w, scale, DT_F32), k);
	y = rw_binary(w, OP_SUB, cast_value(w, x, DT_F32),
	              per_channel(w, mean, x));
	y = rw_binary(w, OP_MUL, y, per_channel(w, k, x));
	if (bias)
		y = rw_binary(w, OP_ADD, y, per_channel(w, bias, x));
	return rw_replace(w, root, cast_value(w, y, rw_dt(w, x)));
}

/* Divisor of a mean over labels: the number of labels counted, or the sum of
 * their weights; a scalar of type dt. */
static ValId
weight_of_labels(struct rewrite *w, NodeId root, int64_t ignore, DType dt)
{
	ValId labels = rw_in(w, root, 1), weights = rw_in(w, root, 2), v[3];
	Attr a = attr_default(OP_REDUCE_SUM);
	ValId counts = ignore == INT64_MIN      /* all count */
		? rw_binary(w, OP_EQ, labels, labels)
		: rw_unary(w, OP_NOT, rw_binary(w, OP_EQ, labels,
			rw_const_like(w, labels, (double)ignore)));
	ValId sum = cast_value(w, counts, dt);

	if (weights) {
		v[0] = counts;
		v[1] = labels;
		v[2] = rw_const_like(w, labels, 0);
		v[1] = rw_emit(w, OP_WHERE, 3, v, NULL);
		v[0] = cast_value(w, weights, dt);
		sum = rw_binary(w, OP_MUL, sum,
		                rw_emit(w, OP_GATHER, 2, v, NULL));
	}
	a.REDUCE_SUM.keepdims = 0;
	for (int i = 0; i < rw_shape(w, labels)->rank; i++)
		a.REDUCE_SUM.axes.v[a.REDUCE_SUM.axes.n++] = i;
	return rw_emit(w, OP_REDUCE_SUM, 1, &sum, &a);
}

/* Split a mean over labels into a sum and its divisor, so that batches can be
 * added up. */
static bool
use_label_sums(struct rewrite *w, NodeId root)
{
	const Node *n = &w->g->node[root];
	Op op = n->op;
	Attr a = n->attr;
	int64_t *reduction = attr_int_of(op, &a, "reduction");
	int64_t ignore = *attr_int_of(op, &a, "ignore");
	DType dt = rw_dt(w, n->out[0]), wide = dtype_is_half(dt) ? DT_F32 : dt;
	ValId in[3], y;

	if (*reduction != 1)
		return false;
	for (int k = 1; k < n->nout; k++)
		if (n->out[k] && w->nuse[n->out[k]])
			return false;
	for (int k = 0; k < 3; k++)
		in[k] = rw_in(w, root, k);
	*reduction = 2;
	in[0] = cast_value(w, in[0], wide);
	in[2] = in[2] ? cast_value(w, in[2], wide) : 0;
	y = rw_emit(w, op, in[2] ? 3 : 2, in, &a);
	y = rw_binary(w, OP_DIV, y, weight_of_labels(w, root, ignore, wide));
	return rw_replace(w, root, cast_value(w, y, dt));
}

/* sum(x * c) as sum(x) * c where c follows from the batch size, such as 1 / n,
 * and likewise of quotients: so sums of batches add up. */
static bool
scale_sum(struct rewrite *w, NodeId root)
{
	ValId terms = rw_in(w, root, 0), x, c;
	NodeId mul = rw_is(w, terms, OP_MUL), div = rw_is(w, terms, OP_DIV);
	NodeId n = mul ? mul : div;
	Shape scalar = shape_scalar();
	double number;

	for (int k = mul ? 0 : 1; n && k < 2; k++) {
		c = rw_unexpanded(w, rw_in(w, n, k));
		x = rw_in(w, n, 1 - k);
		if (rw_scalar(w, c, &number) || !is_batch_number(w, c, DEPTH)
		    || !shape_eq(rw_shape(w, x), rw_shape(w, terms)))
			continue;
		x = rw_emit(w, OP_REDUCE_SUM, 1, &x, &w->g->node[root].attr);
		c = rw_reshape(w, c, &scalar);
		return rw_replace(w, root, rw_binary(w, mul ? OP_MUL : OP_DIV,
		                                     x, c));
	}
	return false;
}

static const struct rule rules[] = {
	{ OP_REDUCE_SUM, scale_sum },
	{ OP_BATCHNORM, use_running_statistics },
	{ OP_SCE, use_label_sums }, { OP_NLL, use_label_sums },
	{ OP_NONE, NULL }
};

/* ---- counts ---- */

/* The only node that reads scores and labels; NULL: none, or several. */
static const Node *
only_labels(const Graph *g)
{
	const Node *found = NULL;

	FOR_NODES (n, g) {
		if (!(op_info[n->op].flags & F_LABELS_1))
			continue;
		if (found)
			return NULL;
		found = n;
	}
	return found;
}

/* Labels in another type or shape, or beside other indices. */
static bool
keeps_labels(Op op)
{
	return op == OP_CAST || op == OP_RESHAPE || op == OP_TRANSPOSE
		|| op == OP_EXPAND || op == OP_CONCAT || op == OP_WHERE;
}

/* Whether the node takes or makes the class that a label names: its operand k
 * holds labels. */
static bool
names_class(const Graph *g, const Node *n, int k)
{
	switch (n->op) {
	case OP_EQ:             /* with all classes: one-hot */
		return val_nelem(&g->val[n->in[1 - k]]) > 1;
	case OP_GATHER_ELEMENTS: case OP_SCATTER_ELEMENTS:
	case OP_GATHER_ND: case OP_SCATTER_ND:
		return k == 1;
	default:
		return false;
	}
}

/* Whether the scores of a loss were made of its labels, such as those with a
 * margin: the largest of them is no prediction.  Labels that are shifted, as a
 * decoder reads them, are other ones. */
static bool
scores_contain_labels(const Graph *g, const Node *loss, Arena *arena)
{
	bool *label = arena_array(arena, g->nval, sizeof *label);
	bool *made = arena_array(arena, g->nval, sizeof *made);
	ValId root = loss->in[1];

	while (g->val[root].def && g->node[g->val[root].def].op != OP_CONCAT
	       && g->node[g->val[root].def].op != OP_WHERE
	       && keeps_labels(g->node[g->val[root].def].op))
		root = g->node[g->val[root].def].in[0];
	label[root] = true;
	FOR_NODES (n, g) {
		bool of = false;

		for (int k = 0; k < n->nin; k++) {
			ValId v = n->in[k];

			of |= made[v] || (label[v] && names_class(g, n, k));
			label[n->out[0]] |= label[v] && keeps_labels(n->op);
		}
		for (int k = 0; k < n->nout; k++)
			made[n->out[k]] |= of;
	}
	return made[loss->in[0]];
}

/* Add an output of that name: the sum of all elements, in float32. */
static bool
add_sum(Pass *p, Graph *g, ValId v, const char *name, NodeId like)
{
	Attr a = attr_default(OP_REDUCE_SUM);

	v = emit_cast(g, p->diag, v, DT_F32, like);
	a.REDUCE_SUM.keepdims = 0;
	for (int i = 0; v && i < g->val[v].shape.rank; i++)
		a.REDUCE_SUM.axes.v[a.REDUCE_SUM.axes.n++] = i;
	v = v ? emit_op(g, p->diag, OP_REDUCE_SUM, 1, &v, &a, like) : 0;
	if (!v)
		return false;
	val_rename(g, v, name);
	g->val[v].output = true;
	return true;
}

/* Bool: the label counts. */
static ValId
is_counted(Pass *p, Graph *g, ValId labels, int64_t ignore, NodeId like)
{
	ValId in[2] = { labels, val_const(g, NULL, DT_I64, shape_scalar(),
	                                  &ignore) }, v;

	v = emit_op(g, p->diag, OP_EQ, 2, in, NULL, like);
	return v ? emit_op(g, p->diag, OP_NOT, 1, &v, NULL, like) : 0;
}

/* Bool: the label has the largest score. */
static ValId
is_best(Pass *p, Graph *g, ValId scores, ValId labels, NodeId like)
{
	Attr a = attr_default(OP_ARGMAX);
	ValId in[2] = { 0, labels };

	a.ARGMAX.axis = 1;
	a.ARGMAX.keepdims = 0;
	in[0] = emit_op(g, p->diag, OP_ARGMAX, 1, &scores, &a, like);
	return in[0] ? emit_op(g, p->diag, OP_EQ, 2, in, NULL, like) : 0;
}

/* The mean over counted labels times their number, if all weights are equal. */
static bool
add_entropy(Pass *p, Graph *g, NodeId at, int64_t reduction)
{
	const Node *n = &g->node[at];
	ValId in[2] = { n->out[0], val_find(g, EVAL_COUNTED) };

	if (n->nin > 2 && n->in[2])
		return true;
	if (reduction == 1)
		in[0] = emit_op(g, p->diag, OP_MUL, 2, in, NULL, at);
	return add_sum(p, g, in[0], EVAL_ENTROPY, at);
}

static bool
count_labels(Pass *p, Graph *g)
{
	const Node *n = only_labels(g);
	NodeId at = n ? node_id(g, n) : 0;
	Attr a = at ? n->attr : (Attr){ 0 };
	int64_t *ignore, *reduction;
	ValId scores, labels, best, count;

	if (!at || scores_contain_labels(g, n, p->scratch)
	    || val_find(g, EVAL_CORRECT) || val_find(g, EVAL_COUNTED)
	    || val_find(g, EVAL_ENTROPY))
		return true;
	scores = n->in[0];
	ignore = attr_int_of(n->op, &a, "ignore");
	reduction = attr_int_of(n->op, &a, "reduction");
	labels = emit_cast(g, p->diag, n->in[1], DT_I64, at);
	best = labels ? is_best(p, g, scores, labels, at) : 0;
	count = best ? is_counted(p, g, labels, *ignore, at) : 0;
	if (count) {
		ValId in[2] = { best, count };

		best = emit_op(g, p->diag, OP_AND, 2, in, NULL, at);
	}
	return count && best && add_sum(p, g, best, EVAL_CORRECT, at)
		&& add_sum(p, g, count, EVAL_COUNTED, at)
		&& add_entropy(p, g, at, *reduction);
}

bool
evaluation_graph(Pass *p, Graph *g)
{
	struct rewrite w;

	if (!loss_keep_outputs(p, g))
		return false;
	FOR_NODES (n, g)
		if (n->op == OP_BN_UPDATE)
			g->val[n->out[0]].output = false;
	rw_init(&w, p, g);
	return rw_run(&w, rules) && canon_run(p, g) && count_labels(p, g);
}
