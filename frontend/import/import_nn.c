/* ONNX operators that compute: reductions, products, rows, attention. */
#include "frontend/import/node_import.h"

#include <string.h>

/* ---- reductions ---- */

/* Axes are an input since version 13 for ReduceSum, 18 for the others. */
bool
run_reduce(struct importer *m)
{
	Op op = m->n->op->ir;
	IntList list = { 0 };
	ValId axes = imp_axes(m, 1, op == OP_REDUCE_SUM ? 13 : 18, "axes",
	                      &list);
	bool keep = attr_int(&m->r, "keepdims", 1) != 0;
	bool noop = attr_int(&m->r, "noop_with_empty_axes", 0) != 0;

	return set_output(m, imp_reduce(m, op, imp_in(m, 0), axes, &list,
	                                    keep, noop));
}

/* The square root of a sum of squares; a norm of zero has the gradient 0. */
static ValId
norm_root(struct importer *m, ValId s)
{
	ValId zero = imp_like(m, s, 0), c = binary(m, OP_LE, s, zero);
	ValId y = EMIT_NODE(m, OP_WHERE, NULL, c, imp_like(m, s, 1), s);

	return EMIT_NODE(m, OP_WHERE, NULL, c, zero, unary(m, OP_SQRT, y));
}

/* ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, ReduceLogSumExp. */
bool
run_reduce_composed(struct importer *m)
{
	const char *what = m->n->type + strlen("Reduce");
	IntList list = { 0 };
	ValId axes = imp_axes(m, 1, 18, "axes", &list), x = imp_in(m, 0), y;
	bool keep = attr_int(&m->r, "keepdims", 1) != 0;
	bool noop = attr_int(&m->r, "noop_with_empty_axes", 0) != 0;

	if (strcmp(what, "L1") == 0) {
		y = imp_reduce(m, OP_REDUCE_SUM, unary(m, OP_ABS, x), axes,
		                   &list, keep, noop);
	} else if (strcmp(what, "LogSum") == 0) {
		y = unary(m, OP_LOG, imp_reduce(m, OP_REDUCE_SUM, x, axes,
		                                    &list, keep, noop));
	} else if (strcmp(what, "LogSumExp") == 0) {
		ValId top = imp_reduce(m, OP_REDUCE_MAX, x, axes, &list,
		                           true, noop);

		y = unary(m, OP_EXP, binary(m, OP_SUB, x, top));
		y = unary(m, OP_LOG, imp_reduce(m, OP_REDUCE_SUM, y, axes,
		                                    &list, keep, noop));
		if (!keep)
			top = imp_reduce(m, OP_REDUCE_MAX, x, axes, &list,
			                     false, noop);
		y = binary(m, OP_ADD, y, top);
	} else {
		y = imp_reduce(m, OP_REDUCE_SUM, binary(m, OP_MUL, x, x),
		                   axes, &list, keep, noop);
		if (strcmp(what, "L2") == 0)
			y = norm_root(m, y);
	}
	return set_output(m, y);
}

/* ---- products ---- */

/* alpha op(A) op(B) + beta C.  C is an operand of the product only if it is
 * surely a vector of the result's last extent. */
bool
run_gemm(struct importer *m)
{
	Attr a = imp_attrs(m, OP_MATMUL);
	double beta = attr_float(&m->r, "beta", 1);
	ValId x = imp_in(m, 0), w = imp_in(m, 1), c = imp_in(m, 2), y;
	int64_t n;
	int rank;

	if (beta == 0)
		c = 0;
	if (c && beta != 1)
		c = with(m, OP_MUL, c, beta);
	n = imp_dim(m, w, a.MATMUL.tb ? -2 : -1);
	if (c && n > 0 && imp_rank(m, 2, &rank) && rank == 1
	    && imp_dim(m, c, 0) == n) {
		y = EMIT_NODE(m, OP_MATMUL, &a, x, w, c);
	} else {
		y = EMIT_NODE(m, OP_MATMUL, &a, x, w);
		if (c)
			y = binary(m, OP_ADD, y, c);
	}
	return set_output(m, y);
}

/* ---- rows ---- */

/* Softmax and LogSoftmax.  Before version 13 the operand is a matrix whose
 * columns are all dims from axis on. */
bool
run_softmax(struct importer *m)
{
	Op op = m->n->op->ir;
	Attr a = attr_default(op), flat = attr_default(OP_FLATTEN);
	ValId x = imp_in(m, 0), y;
	int64_t axis = attr_int(&m->r, "axis", m->n->opset < 13 ? 1 : -1);
	int rank;
	bool last = axis == -1 || (imp_rank(m, 0, &rank) && axis == rank - 1);
	bool wide = m->n->opset < 13 && !last;

	if (op == OP_SOFTMAX)
		a.SOFTMAX.axis = wide ? -1 : axis;
	else
		a.LOG_SOFTMAX.axis = wide ? -1 : axis;
	if (!wide)
		return set_output(m, EMIT_NODE(m, op, &a, x));
	flat.FLATTEN.axis = axis;
	y = EMIT_NODE(m, op, &a, EMIT_NODE(m, OP_FLATTEN, &flat, x));
	return set_output(m, binary(m, OP_RESHAPE, y, unary(m, OP_SHAPE, x)));
}

/* Add the reduced dims that ONNX keeps as ones to a statistic of the IR: one
 * for each dim of x from axis on. */
static void
out_statistic(struct importer *m, int i, ValId v, int64_t axis)
{
	Attr some = attr_default(OP_SHAPE);
	ValId x = imp_in(m, 0), shape[2];

	if (!imp_is_used(m, i))
		return;
	some.SHAPE.start = axis;
	shape[0] = unary(m, OP_SHAPE, v);
	shape[1] = imp_ones(m, unary(m, OP_SHAPE,
	                             EMIT_NODE(m, OP_SHAPE, &some, x)), DT_I64);
	imp_out(m, i, binary(m, OP_RESHAPE, v, imp_concat(m, 0, 2, shape)));
}

bool
run_layernorm(struct importer *m)
{
	Attr a = attr_default(OP_LAYERNORM);
	ValId y;

	attr_int(&m->r, "stash_type", 1);       /* ckc always uses f32 */
	a.LAYERNORM.axis = attr_int(&m->r, "axis", -1);
	a.LAYERNORM.eps = attr_float(&m->r, "epsilon", 1e-5f);
	y = EMIT_NODE(m, OP_LAYERNORM, &a, imp_in(m, 0), imp_in(m, 1),
	              imp_in(m, 2));
	imp_out(m, 0, y);
	for (int k = 1; k < 3; k++)
		out_statistic(m, k, imp_output(m, y, k), a.LAYERNORM.axis);
	return true;
}

/* RMSNormalization and ONNX Runtime's SimplifiedLayerNormalization. */
bool
run_rmsnorm(struct importer *m)
{
	Attr a = attr_default(OP_RMSNORM);
	ValId y;

	attr_int(&m->r, "stash_type", 1);
	a.RMSNORM.axis = attr_int(&m->r, "axis", -1);
	a.RMSNORM.eps = attr_float(&m->r, "epsilon", 1e-5f);
	y = EMIT_NODE(m, OP_RMSNORM, &a, imp_in(m, 0), imp_in(m, 1));
	imp_out(m, 0, y);
	out_statistic(m, 1, imp_output(m, y, 1), a.RMSNORM.axis);
	return true;
}

/* com.microsoft: (Simplified)SkipLayerNormalization(x, skip, scale, bias?,
 * bias of the sum?).  Output 3 is the sum. */
bool
run_skip_norm(struct importer *m)
{
	bool simple = m->n->op->ir == OP_RMSNORM;
	Attr a = attr_default(m->n->op->ir);
	ValId x = binary(m, OP_ADD, imp_in(m, 0), imp_in(m, 1));
	double eps = attr_float(&m->r, "epsilon", 1e-12f);
	int extra = simple ? 3 : 4;

	if (imp_has(m, extra))
		x = binary(m, OP_ADD, x, imp_in(m, extra));
	if (imp_is_used(m, 1) || imp_is_used(m, 2))
		return imp_fail(m, "mean and inverse standard deviation are "
		                "not supported as outputs");
	if (simple)
		a.RMSNORM.eps = eps;
	else
		a.LAYERNORM.eps = eps;
	imp_out(m, 0, EMIT_NODE(m, m->n->op->ir, &a, x, imp_in(m, 2),
	                        simple ? 0 : imp_in(m, 3)));
	imp_out(m, 3, x);
	return true;
}

/* ---- losses ---- */

static const char *const reduction_words[] = { "none", "mean", "sum" };

/* Whether labels are probabilities of classes, not class numbers. */
static bool
is_soft(const struct importer *m, ValId labels)
{
	DType dt = m->g->val[labels].dt;

	return dt != DT_NONE && dtype_info[dt].cls == 'f';
}

/* y as a node that fails, once dims are bound, if y and x differ in their
 * numbers of elements. */
static ValId
as_many(struct importer *m, ValId y, ValId x)
{
	ValId other = binary(m, OP_RESHAPE, y, unary(m, OP_SHAPE, x));

	return binary(m, OP_RESHAPE, other, unary(m, OP_SHAPE, y));
}

/* Labels that are probabilities must have the shape of the scores. */
static bool
check_soft(struct importer *m, ValId x, ValId y)
{
	const Val *scores = &m->g->val[x], *labels = &m->g->val[y];
	char a[128], b[128];

	if (!shape_known(&scores->shape) || !shape_known(&labels->shape)
	    || shape_eq(&scores->shape, &labels->shape))
		return true;
	return imp_fail(m, "float labels are class probabilities: expected %s, "
	                "the shape of the scores, found %s",
	                shape_text(a, sizeof a, labels->dt, &scores->shape),
	                shape_text(b, sizeof b, labels->dt, &labels->shape));
}

/* PyTorch's cross_entropy with probabilities of classes, which its exporter
 * writes as the same operator: the sum of -w y log p over classes.  The mean
 * is over rows regardless of weights, and no class is ignored.  logp: the
 * log_softmax of the scores. */
static bool
soft_cross_entropy(struct importer *m, ValId logp, int reduction)
{
	ValId x = imp_in(m, 0), y = imp_in(m, 1), w = imp_in(m, 2), rows[2];
	Attr batch = attr_default(OP_SHAPE), rest = batch;
	IntList classes = { 1, { 1 } }, all = { 0 };

	if (!check_soft(m, x, y))
		return false;
	y = binary(m, OP_CAST_LIKE, y, logp);
	y = binary(m, OP_MUL, logp, as_many(m, y, logp));
	/* [N, C, the rest in one] */
	x = binary(m, OP_RESHAPE, logp, imp_ints(m, 3, (int64_t[]){
		0, 0, -1 }));
	y = binary(m, OP_RESHAPE, y, unary(m, OP_SHAPE, x));
	if (w)
		y = binary(m, OP_MUL, y, imp_unsqueeze(m, w, 1));
	y = unary(m, OP_NEG, imp_reduce(m, OP_REDUCE_SUM, y, 0, &classes,
	                                    false, false));
	if (reduction)
		return set_output(m, imp_reduce(m,
			reduction == 1 ? OP_REDUCE_MEAN : OP_REDUCE_SUM, y, 0,
			&all, false, false));
	batch.SHAPE.end = 1;
	rest.SHAPE.start = 2;
	rows[0] = EMIT_NODE(m, OP_SHAPE, &batch, logp);
	rows[1] = EMIT_NODE(m, OP_SHAPE, &rest, logp);
	return set_output(m, imp_reshape(m, y, 2, rows));
}

bool
run_sce(struct importer *m)
{
	Attr a = imp_attrs(m, OP_SCE), l = attr_default(OP_LOG_SOFTMAX);
	bool soft = is_soft(m, imp_in(m, 1));
	ValId logp = 0;

	a.SCE.reduction = attr_word(&m->r, "reduction", 1, reduction_words, 3);
	l.LOG_SOFTMAX.axis = 1;
	if (soft || imp_is_used(m, 1))
		logp = EMIT_NODE(m, OP_LOG_SOFTMAX, &l, imp_in(m, 0));
	imp_out(m, 1, logp);
	return soft ? soft_cross_entropy(m, logp, (int)a.SCE.reduction)
	       : imp_same(m, OP_SCE, &a);
}

bool
run_nll(struct importer *m)
{
	Attr a = imp_attrs(m, OP_NLL);

	a.NLL.reduction = attr_word(&m->r, "reduction", 1, reduction_words, 3);
	if (is_soft(m, imp_in(m, 1)))
		return imp_fail(m, "labels: expected integers, the class "
		                "indices, found %s; for class probabilities, "
		                "write -(y * log_softmax(x, 1)).sum(1).mean()",
		                dtype_info[m->g->val[imp_in(m, 1)].dt].text);
	return imp_same(m, OP_NLL, &a);
}
