/* ONNX operators that compute: reductions, products, rows, attention. */
#include "frontend/importer.h"

#include <math.h>
#include <string.h>

static ValId
unary(struct importer *m, Op op, ValId x)
{
	return EMIT_NODE(m, op, NULL, x);
}

static ValId
binary(struct importer *m, Op op, ValId x, ValId y)
{
	return EMIT_NODE(m, op, NULL, x, y);
}

/* ---- reductions ---- */

/* The four reductions of the IR have the same attributes in the same order,
 * but each its own struct. */
static ValId
reduce(struct importer *m, Op op, ValId x, ValId axes, const IntList *list,
       bool keepdims, bool noop)
{
	Attr a = attr_default(op);

	switch (op) {
#define CASE(id) \
	case OP_##id: \
		a.id.axes = *list; \
		a.id.keepdims = keepdims; \
		a.id.noop = noop; \
		break;
	CASE(REDUCE_SUM)
	CASE(REDUCE_MEAN)
	CASE(REDUCE_MAX)
	CASE(REDUCE_MIN)
	CASE(REDUCE_PROD)
#undef CASE
	default:
		break;
	}
	return EMIT_NODE(m, op, &a, x, axes);
}

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

	imp_out(m, 0, reduce(m, op, imp_in(m, 0), axes, &list, keep, noop));
	return true;
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
		y = reduce(m, OP_REDUCE_SUM, unary(m, OP_ABS, x), axes, &list,
		           keep, noop);
	} else if (strcmp(what, "LogSum") == 0) {
		y = unary(m, OP_LOG, reduce(m, OP_REDUCE_SUM, x, axes, &list,
		                            keep, noop));
	} else if (strcmp(what, "LogSumExp") == 0) {
		ValId top =
			reduce(m, OP_REDUCE_MAX, x, axes, &list, true, noop);

		y = unary(m, OP_EXP, binary(m, OP_SUB, x, top));
		y = unary(m, OP_LOG, reduce(m, OP_REDUCE_SUM, y, axes, &list,
		                            keep, noop));
		if (!keep)
			top = reduce(m, OP_REDUCE_MAX, x, axes, &list, false,
			             noop);
		y = binary(m, OP_ADD, y, top);
	} else {
		y = reduce(m, OP_REDUCE_SUM, binary(m, OP_MUL, x, x), axes,
		           &list, keep, noop);
		if (strcmp(what, "L2") == 0)
			y = unary(m, OP_SQRT, y);
	}
	imp_out(m, 0, y);
	return true;
}

/* ---- products ---- */

bool
run_matmul(struct importer *m)
{
	imp_out(m, 0, binary(m, OP_MATMUL, imp_in(m, 0), imp_in(m, 1)));
	return true;
}

/* alpha op(A) op(B) + beta C.  C is an operand of the product only if it is
 * surely a vector of the result's last extent. */
bool
run_gemm(struct importer *m)
{
	Attr a = attr_default(OP_MATMUL);
	double beta = attr_float(&m->r, "beta", 1);
	ValId x = imp_in(m, 0), w = imp_in(m, 1), c = imp_in(m, 2), y;
	int64_t n;

	a.MATMUL.ta = attr_int(&m->r, "transA", 0) != 0;
	a.MATMUL.tb = attr_int(&m->r, "transB", 0) != 0;
	a.MATMUL.alpha = attr_float(&m->r, "alpha", 1);
	if (beta == 0)
		c = 0;
	if (c && beta != 1)
		c = binary(m, OP_MUL, c, imp_like(m, c, beta));
	n = imp_dim(m, w, a.MATMUL.tb ? -2 : -1);
	if (c && n > 0 && m->g->val[c].shape.rank == 1
	    && imp_dim(m, c, 0) == n) {
		y = EMIT_NODE(m, OP_MATMUL, &a, x, w, c);
	} else {
		y = EMIT_NODE(m, OP_MATMUL, &a, x, w);
		if (c)
			y = binary(m, OP_ADD, y, c);
	}
	imp_out(m, 0, y);
	return true;
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
	bool wide = m->n->opset < 13 && axis != -1
		&& m->g->val[x].shape.rank != axis + 1;

	if (op == OP_SOFTMAX)
		a.SOFTMAX.axis = wide ? -1 : axis;
	else
		a.LOG_SOFTMAX.axis = wide ? -1 : axis;
	if (!wide) {
		imp_out(m, 0, EMIT_NODE(m, op, &a, x));
		return true;
	}
	flat.FLATTEN.axis = axis;
	y = EMIT_NODE(m, op, &a, EMIT_NODE(m, OP_FLATTEN, &flat, x));
	imp_out(m, 0, binary(m, OP_RESHAPE, y, unary(m, OP_SHAPE, x)));
	return true;
}

/* A statistic of the IR lacks the reduced dims that ONNX keeps as ones. */
static bool
out_statistic(struct importer *m, int i, ValId v, int64_t axis)
{
	Attr a = attr_default(OP_UNSQUEEZE);
	int rank = m->g->val[imp_in(m, 0)].shape.rank;

	if (!imp_wants(m, i))
		return true;
	if (axis >= 0 && rank >= 0)
		axis -= rank;
	if (axis >= 0 || axis < -MAX_RANK)
		return imp_fail(m, "output %d is not supported with a "
		                "non-negative axis and an unknown rank", i);
	for (int64_t k = axis; k < 0; k++)
		a.UNSQUEEZE.axes.v[a.UNSQUEEZE.axes.n++] = k;
	imp_out(m, i, EMIT_NODE(m, OP_UNSQUEEZE, &a, v));
	return true;
}

bool
run_layernorm(struct importer *m)
{
	Attr a = attr_default(OP_LAYERNORM);
	ValId y;

	attr_int(&m->r, "stash_type", 1);       /* always f32 here */
	a.LAYERNORM.axis = attr_int(&m->r, "axis", -1);
	a.LAYERNORM.eps = attr_float(&m->r, "epsilon", 1e-5f);
	y = EMIT_NODE(m, OP_LAYERNORM, &a, imp_in(m, 0), imp_in(m, 1),
	              imp_in(m, 2));
	imp_out(m, 0, y);
	return out_statistic(m, 1, imp_output(m, y, 1), a.LAYERNORM.axis)
		&& out_statistic(m, 2, imp_output(m, y, 2), a.LAYERNORM.axis);
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
	return out_statistic(m, 1, imp_output(m, y, 1), a.RMSNORM.axis);
}

/* com.microsoft: (Simplified)SkipLayerNormalization(x, skip, scale, bias?,
 * bias of the sum?); output 3 is the sum. */
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
	if (imp_wants(m, 1) || imp_wants(m, 2))
		return imp_fail(m, "statistics as outputs are not supported");
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

bool
run_sce(struct importer *m)
{
	Attr a = attr_default(OP_SCE), l = attr_default(OP_LOG_SOFTMAX);

	a.SCE.reduction = attr_word(&m->r, "reduction", 1, reduction_words, 3);
	a.SCE.ignore = attr_int(&m->r, "ignore_index", INT64_MIN);
	imp_out(m, 0, EMIT_NODE(m, OP_SCE, &a, imp_in(m, 0), imp_in(m, 1),
	                        imp_in(m, 2)));
	l.LOG_SOFTMAX.axis = 1;
	if (imp_wants(m, 1))
		imp_out(m, 1, EMIT_NODE(m, OP_LOG_SOFTMAX, &l, imp_in(m, 0)));
	return true;
}

bool
run_nll(struct importer *m)
{
	Attr a = attr_default(OP_NLL);

	a.NLL.reduction = attr_word(&m->r, "reduction", 1, reduction_words, 3);
	a.NLL.ignore = attr_int(&m->r, "ignore_index", INT64_MIN);
	imp_out(m, 0, EMIT_NODE(m, OP_NLL, &a, imp_in(m, 0), imp_in(m, 1),
	                        imp_in(m, 2)));
	return true;
}

/* ---- attention ---- */

/* [B,T,H*D] -> [B,H,T,D] */
static ValId
split_heads(struct importer *m, ValId x, int64_t heads)
{
	Attr t = attr_default(OP_TRANSPOSE);
	const int64_t shape[4] = { 0, 0, heads, -1 };

	t.TRANSPOSE.perm = (IntList){ 4, { 0, 2, 1, 3 } };
	x = binary(m, OP_RESHAPE, x, imp_ints(m, 4, shape));
	return EMIT_NODE(m, OP_TRANSPOSE, &t, x);
}

static ValId
merge_heads(struct importer *m, ValId x)
{
	Attr t = attr_default(OP_TRANSPOSE);
	const int64_t shape[3] = { 0, 0, -1 };

	t.TRANSPOSE.perm = (IntList){ 4, { 0, 2, 1, 3 } };
	x = EMIT_NODE(m, OP_TRANSPOSE, &t, x);
	return binary(m, OP_RESHAPE, x, imp_ints(m, 3, shape));
}

/* q / sqrt(D) for a head size that is known only after binding. */
static ValId
scale_query(struct importer *m, ValId q)
{
	Attr a = attr_default(OP_CAST);
	const int64_t last = -1;
	ValId d = binary(m, OP_GATHER, unary(m, OP_SHAPE, q),
	                 imp_scalar(m, last));

	a.CAST.to = DT_F32;
	d = unary(m, OP_RECIP, unary(m, OP_SQRT,
	                             EMIT_NODE(m, OP_CAST, &a, d)));
	return binary(m, OP_MUL, q, binary(m, OP_CAST_LIKE, d, q));
}

static bool
refuse_attention(struct importer *m)
{
	if (imp_has(m, 4) || imp_has(m, 5) || imp_wants(m, 1)
	    || imp_wants(m, 2))
		return imp_fail(m, "past keys and values are not supported; "
		                "export without a cache (use_cache=False)");
	if (imp_has(m, 6))
		return imp_fail(m, "nonpad_kv_seqlen is not supported");
	if (imp_wants(m, 3))
		return imp_fail(m, "scores as an output are not supported");
	if (attr_float(&m->r, "softcap", 0) != 0)
		return imp_fail(m, "softcap is not supported");
	if (attr_int(&m->r, "left_window_size", -1) != -1
	    || attr_int(&m->r, "right_window_size", -1) != -1)
		return imp_fail(m, "windows are not supported");
	return true;
}

/* Extent `axis` of x as a list of one. */
static ValId
extent(struct importer *m, ValId x, int64_t axis)
{
	return binary(m, OP_GATHER, unary(m, OP_SHAPE, x),
	              imp_ints(m, 1, &axis));
}

/* ONNX shows key j to query i iff j <= i, ckc's attribute iff j - S <= i - T.
 * That is the same for T = S, which is not known yet: so the mask is written
 * out, and recognised once dims are bound.  0: the attribute must do. */
static ValId
causal_mask(struct importer *m, ValId q, ValId k, ValId mask)
{
	Attr cat = attr_default(OP_CONCAT), low = attr_default(OP_TRILU);
	Attr full = attr_default(OP_CONSTANT_OF_SHAPE);
	DType dt = mask ? m->g->val[mask].dt : DT_BOOL;
	ValId c;

	if (dt == DT_NONE)
		return 0;
	full.CONSTANT_OF_SHAPE.dt = DT_BOOL;
	full.CONSTANT_OF_SHAPE.value = 1;
	low.TRILU.upper = 0;
	c = EMIT_NODE(m, OP_CONCAT, &cat, extent(m, q, 2), extent(m, k, 2));
	c = EMIT_NODE(m, OP_CONSTANT_OF_SHAPE, &full, c);
	c = EMIT_NODE(m, OP_TRILU, &low, c);
	if (!mask)
		return c;
	if (dt == DT_BOOL)
		return binary(m, OP_AND, c, mask);
	return EMIT_NODE(m, OP_WHERE, NULL, c, mask,
	                 imp_like(m, mask, -INFINITY));
}

/* Attention-23 and -24, with heads in a dim of their own or side by side. */
bool
run_attention(struct importer *m)
{
	Attr a = attr_default(OP_ATTENTION);
	ValId q = imp_in(m, 0), k = imp_in(m, 1), v = imp_in(m, 2), o;
	ValId mask = imp_in(m, 3), causal = 0;
	int64_t hq = attr_int(&m->r, "q_num_heads", 0);
	int64_t hk = attr_int(&m->r, "kv_num_heads", 0), d;

	if (!refuse_attention(m))
		return false;
	attr_has(&m->r, "qk_matmul_output_mode");
	attr_has(&m->r, "softmax_precision");   /* f32 or better here */
	a.ATTENTION.causal = attr_int(&m->r, "is_causal", 0) != 0;
	d = imp_dim(m, q, -1);
	if (hq || hk) {
		if (hq <= 0 || hk <= 0 || hq % hk)
			return imp_fail(m, "q_num_heads %jd and kv_num_heads "
			                "%jd", (intmax_t)hq, (intmax_t)hk);
		if (d > 0)
			d = d % hq ? -1 : d / hq;
		q = split_heads(m, q, hq);
		k = split_heads(m, k, hk);
		v = split_heads(m, v, hk);
	}
	if (attr_has(&m->r, "scale"))
		a.ATTENTION.scale = attr_float(&m->r, "scale", 1);
	else if (d > 0)
		a.ATTENTION.scale = 1 / sqrt((double)d);
	else
		q = scale_query(m, q);
	if (a.ATTENTION.causal)
		causal = causal_mask(m, q, k, mask);
	a.ATTENTION.causal = a.ATTENTION.causal && !causal;
	o = EMIT_NODE(m, OP_ATTENTION, &a, q, k, v, causal ? causal : mask);
	imp_out(m, 0, hq ? merge_heads(m, o) : o);
	return true;
}

/* ---- rotary positions ---- */

static ValId
slice_last(struct importer *m, ValId x, int64_t from, int64_t to,
           int64_t step)
{
	const int64_t axis = -1;

	return EMIT_NODE(m, OP_SLICE, NULL, x, imp_ints(m, 1, &from),
	                 imp_ints(m, 1, &to), imp_ints(m, 1, &axis),
	                 imp_ints(m, 1, &step));
}

static ValId
concat_last(struct importer *m, ValId x, ValId y)
{
	Attr a = attr_default(OP_CONCAT);

	a.CONCAT.axis = -1;
	return EMIT_NODE(m, OP_CONCAT, &a, x, y);
}

static ValId
half(struct importer *m, ValId x, int index)
{
	Attr a = attr_default(OP_PART);

	a.PART.axis = -1;
	a.PART.count = 2;
	a.PART.index = index;
	return EMIT_NODE(m, OP_PART, &a, x);
}

static ValId
unsqueeze(struct importer *m, ValId x, int64_t axis)
{
	Attr a = attr_default(OP_UNSQUEEZE);

	a.UNSQUEEZE.axes = (IntList){ 1, { axis } };
	return EMIT_NODE(m, OP_UNSQUEEZE, &a, x);
}

/* RotaryEmbedding-23: pairs (x1, x2), halves or neighbours of the last dim,
 * are turned by the angle whose cosine and sine are given. */
bool
run_rotary(struct importer *m)
{
	bool neighbours = attr_int(&m->r, "interleaved", 0) != 0;
	int64_t heads = attr_int(&m->r, "num_heads", 0);
	int64_t dim = attr_int(&m->r, "rotary_embedding_dim", 0);
	ValId x = imp_in(m, 0), c = imp_in(m, 1), s = imp_in(m, 2);
	ValId rest = 0, x1, x2, re, im, y;

	if (heads < 0 || dim < 0 || dim % 2)
		return imp_fail(m, "num_heads %jd, rotary_embedding_dim %jd",
		                (intmax_t)heads, (intmax_t)dim);
	if (heads)
		x = split_heads(m, x, heads);
	if (imp_has(m, 3)) {
		c = binary(m, OP_GATHER, c, imp_in(m, 3));
		s = binary(m, OP_GATHER, s, imp_in(m, 3));
	}
	c = unsqueeze(m, c, 1);                 /* one for all heads */
	s = unsqueeze(m, s, 1);
	if (dim) {
		rest = slice_last(m, x, dim, INT64_MAX, 1);
		x = slice_last(m, x, 0, dim, 1);
	}
	x1 = neighbours ? slice_last(m, x, 0, INT64_MAX, 2) : half(m, x, 0);
	x2 = neighbours ? slice_last(m, x, 1, INT64_MAX, 2) : half(m, x, 1);
	re = binary(m, OP_SUB, binary(m, OP_MUL, x1, c),
	            binary(m, OP_MUL, x2, s));
	im = binary(m, OP_ADD, binary(m, OP_MUL, x1, s),
	            binary(m, OP_MUL, x2, c));
	if (neighbours)
		y = binary(m, OP_RESHAPE,
		           concat_last(m, unsqueeze(m, re, -1),
		                       unsqueeze(m, im, -1)),
		           unary(m, OP_SHAPE, x));
	else
		y = concat_last(m, re, im);
	if (rest)
		y = concat_last(m, y, rest);
	imp_out(m, 0, heads ? merge_heads(m, y) : y);
	return true;
}
