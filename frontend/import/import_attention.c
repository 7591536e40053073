/* Attention and rotary positions: ONNX's operators of opset 23 and later.
 *
 * Attention becomes the IR's op, with causality, windows and padding joined
 * into one mask.  Forms that return or change the scores (softcap, scores as an
 * output) are composed of products and a softmax.
 */
#include "frontend/import/node_import.h"

#include <math.h>

/* [B,T,H*D] -> [B,H,T,D] */
static ValId
split_heads(struct importer *m, ValId x, int64_t heads)
{
	const int64_t shape[4] = { 0, 0, heads, -1 };

	x = binary(m, OP_RESHAPE, x, imp_ints(m, 4, shape));
	return imp_transpose(m, x, (IntList){ 4, { 0, 2, 1, 3 } });
}

static ValId
merge_heads(struct importer *m, ValId x)
{
	const int64_t shape[3] = { 0, 0, -1 };

	x = imp_transpose(m, x, (IntList){ 4, { 0, 2, 1, 3 } });
	return binary(m, OP_RESHAPE, x, imp_ints(m, 3, shape));
}

/* q / sqrt(D) for a head size that is known only after binding. */
static ValId
scale_query(struct importer *m, ValId q)
{
	ValId d = binary(m, OP_GATHER, unary(m, OP_SHAPE, q),
	                 imp_scalar(m, -1));

	d = unary(m, OP_RECIP, unary(m, OP_SQRT, imp_cast(m, d, DT_F32)));
	return binary(m, OP_MUL, q, binary(m, OP_CAST_LIKE, d, q));
}

/* ---- which keys a query sees ---- */

struct attention_heads {
	ValId q, k, v;                  /* [B,H,T,D], [B,G,S,D], [B,G,S,E] */
	ValId past;                     /* number of past keys: [P], or 0 */
	ValId valid;                    /* valid keys by batch, or 0 */
	bool causal;
	int64_t left, right;            /* window; -1: no bound */
};

/* The triangle j <= i + past. */
static ValId
triangle(struct importer *m, const struct attention_heads *h)
{
	Attr low = attr_default(OP_TRILU);
	ValId size[2] = { imp_extent(m, h->q, 2), imp_extent(m, h->k, 2) }, c;

	low.TRILU.upper = 0;
	c = imp_ones(m, imp_concat(m, 0, 2, size), DT_BOOL);
	return EMIT_NODE(m, OP_TRILU, &low, c,
	                 h->past ? imp_scalar_of(m, h->past) : 0);
}

static ValId
also(struct importer *m, ValId all, ValId c)
{
	return all ? binary(m, OP_AND, all, c) : c;
}

/* Position of key j seen from query i: j - (i + keys before the query). */
static ValId
distance(struct importer *m, const struct attention_heads *h)
{
	ValId t = imp_extent(m, h->q, 2), s = imp_extent(m, h->k, 2);
	ValId i = imp_unsqueeze(m, imp_count(m, t), 1), before = h->past;
	const int64_t by_batch[4] = { -1, 1, 1, 1 };

	if (h->valid) {
		before = imp_cast(m, h->valid, DT_I64);
		before = binary(m, OP_SUB, before, t);
		before = binary(m, OP_RESHAPE, before,
		                imp_ints(m, 4, by_batch));
	}
	if (before)
		i = binary(m, OP_ADD, i, before);
	return binary(m, OP_SUB, imp_count(m, s), i);
}

/* A bool mask of keys that causality, windows and padding show; 0: all. */
static ValId
visible(struct importer *m, const struct attention_heads *h)
{
	ValId all = 0, d;
	const int64_t by_batch[4] = { -1, 1, 1, 1 };

	if (h->causal && !h->valid)
		all = triangle(m, h);
	d = h->left >= 0 || h->right >= 0 || (h->causal && h->valid)
		? distance(m, h) : 0;
	if (h->causal && h->valid)
		all = binary(m, OP_LE, d, imp_scalar(m, 0));
	if (h->left >= 0)
		all = also(m, all, binary(m, OP_GE, d,
		                          imp_scalar(m, -h->left)));
	if (h->right >= 0)
		all = also(m, all, binary(m, OP_LE, d,
		                          imp_scalar(m, h->right)));
	if (h->valid) {
		d = imp_cast(m, h->valid, DT_I64);
		d = binary(m, OP_RESHAPE, d, imp_ints(m, 4, by_batch));
		all = also(m, all, binary(m, OP_LT, imp_count(m,
			imp_extent(m, h->k, 2)), d));
	}
	return all;
}

/* A mask over fewer keys than S hides the others. */
static ValId
widen_mask(struct importer *m, ValId mask, ValId k)
{
	DType dt = m->g->val[mask].dt;
	ValId pads[2] = { imp_one(m, 0),
		binary(m, OP_SUB, imp_extent(m, k, 2),
		       imp_extent(m, mask, -1)) };

	if (imp_dim(m, mask, -1) >= 0
	    && imp_dim(m, mask, -1) == imp_dim(m, k, 2))
		return mask;
	return EMIT_NODE(m, OP_PAD, NULL, mask, imp_concat(m, 0, 2, pads),
	                 val_scalar(m->g, dt, dt == DT_BOOL ? 0 : -INFINITY),
	                 imp_one(m, -1));
}

/* The mask as the IR's op reads it: f32 or bool over [B,H,T,S].  False if its
 * type is not known yet. */
static bool
make_mask(struct importer *m, const struct attention_heads *h, ValId *mask)
{
	ValId all = visible(m, h);
	DType dt;

	if (*mask && imp_has(m, 3)) {
		dt = m->g->val[*mask].dt;
		if (dt == DT_NONE && (all || imp_has(m, 4)))
			return false;
		if (dt != DT_NONE && (h->past || h->valid))
			*mask = widen_mask(m, *mask, h->k);
	}
	if (!all || !*mask) {
		*mask = all ? all : *mask;
		return true;
	}
	if (m->g->val[*mask].dt == DT_BOOL)
		*mask = binary(m, OP_AND, all, *mask);
	else
		*mask = EMIT_NODE(m, OP_WHERE, NULL, all, *mask,
		                  imp_like(m, *mask, -INFINITY));
	return true;
}

/* ---- composed ---- */

/* Query heads in groups that share a key head: [B,H,T,D] -> [B,G,R,T,D]. */
static ValId
group_queries(struct importer *m, const struct attention_heads *h)
{
	ValId size[5] = { imp_extent(m, h->k, 0), imp_extent(m, h->k, 1),
		imp_one(m, -1), imp_extent(m, h->q, 2),
		imp_extent(m, h->q, 3) };

	return imp_reshape(m, h->q, 5, size);
}

/* [B,G,R,T,X] -> [B,H,T,X] */
static ValId
join_groups(struct importer *m, ValId x, const struct attention_heads *h)
{
	ValId size[4] = { imp_extent(m, h->q, 0), imp_extent(m, h->q, 1),
		imp_extent(m, h->q, 2), imp_one(m, -1) };

	return imp_reshape(m, x, 4, size);
}

static ValId
add_mask(struct importer *m, ValId s, ValId mask)
{
	ValId hidden = imp_like(m, s, -INFINITY), c;

	if (!mask)
		return s;
	if (m->g->val[mask].dt == DT_BOOL)
		return EMIT_NODE(m, OP_WHERE, NULL, mask, s, hidden);
	/* hidden scores stay hidden, whatever their value */
	c = with(m, OP_EQ, mask, -INFINITY);
	return EMIT_NODE(m, OP_WHERE, NULL, c, hidden,
	                 binary(m, OP_ADD, s, mask));
}

/* softmax(softcap(scale q k^T) + mask) v; rows that see no key give 0. */
static ValId
compose_attention(struct importer *m, const struct attention_heads *h,
                  ValId mask, double scale, double softcap, int show)
{
	Attr a = attr_default(OP_MATMUL);
	ValId s, p;

	a.MATMUL.tb = 1;
	a.MATMUL.alpha = scale;
	s = EMIT_NODE(m, OP_MATMUL, &a, group_queries(m, h),
	              imp_unsqueeze(m, h->k, 2));
	s = join_groups(m, s, h);
	if (show == 0)
		imp_out(m, 3, s);
	if (softcap != 0) {
		s = with(m, OP_DIV, s, softcap);
		s = binary(m, OP_MUL, unary(m, OP_TANH, s),
		           imp_like(m, s, softcap));
	}
	if (show == 1)
		imp_out(m, 3, s);
	s = add_mask(m, s, mask);
	if (show == 2)
		imp_out(m, 3, s);
	p = unary(m, OP_SOFTMAX, s);
	if (show == 3)
		imp_out(m, 3, p);
	/* keys are shared by the group */
	{
		struct attention_heads g = *h;

		g.q = p;
		g.q = group_queries(m, &g);
		p = binary(m, OP_MATMUL, g.q, imp_unsqueeze(m, h->v, 2));
	}
	return join_groups(m, p, h);
}

/* ---- the operator ---- */

/* Whether the last dim holds all heads side by side.  An operand of rank 4 has
 * heads in dim 1; the attribute only repeats their number. */
static bool
has_merged_heads(struct importer *m, bool counted, bool *merged)
{
	int rank = 0;

	if (counted && !imp_rank(m, 0, &rank))
		return imp_fail(m, "the rank of operand 0 is not known");
	*merged = counted && rank != 4;
	return true;
}

static bool
read_head_counts(struct importer *m, struct attention_heads *h, int64_t *hq,
                 int64_t *d)
{
	int64_t hk = attr_int(&m->r, "kv_num_heads", 0);
	bool merged = false;

	*hq = attr_int(&m->r, "q_num_heads", 0);
	if (!has_merged_heads(m, *hq || hk, &merged))
		return false;
	if (!merged)
		*hq = hk = 0;
	*h = (struct attention_heads){ .q = imp_in(m, 0), .k = imp_in(m, 1),
	                               .v = imp_in(m, 2), .valid = imp_in(m,
	                                                                  6) };
	h->causal = attr_int(&m->r, "is_causal", 0) != 0;
	h->left = attr_int(&m->r, "left_window_size", -1);
	h->right = attr_int(&m->r, "right_window_size", -1);
	*d = imp_dim(m, h->q, -1);
	if (h->left < -1 || h->right < -1)
		return imp_fail(m, "left_window_size and right_window_size: "
		                "expected -1 or more, found %jd and %jd",
		                (intmax_t)h->left, (intmax_t)h->right);
	if (*hq || hk) {
		if (*hq <= 0 || hk <= 0 || *hq % hk)
			return imp_fail(m, "q_num_heads %jd is not a multiple "
			                "of kv_num_heads %jd", (intmax_t)*hq,
			                (intmax_t)hk);
		if (*d > 0)
			*d = *d % *hq ? -1 : *d / *hq;
		h->q = split_heads(m, h->q, *hq);
		h->k = split_heads(m, h->k, hk);
		h->v = split_heads(m, h->v, hk);
	}
	if (imp_has(m, 4) != imp_has(m, 5))
		return imp_fail(m, "expected both past_key and past_value");
	if (imp_has(m, 4)) {
		ValId k[2] = { imp_in(m, 4), h->k }, v[2] = { imp_in(m, 5),
			h->v };

		h->past = imp_extent(m, k[0], 2);
		h->k = imp_concat(m, 2, 2, k);
		h->v = imp_concat(m, 2, 2, v);
	}
	imp_out(m, 1, imp_is_used(m, 1) ? h->k : 0);
	imp_out(m, 2, imp_is_used(m, 2) ? h->v : 0);
	return true;
}

/* Attention-23 to -25, with heads in a dim of their own or side by side. */
bool
run_attention(struct importer *m)
{
	Attr a = attr_default(OP_ATTENTION);
	struct attention_heads h;
	ValId mask = imp_in(m, 3), o;
	int64_t hq, d, show = attr_int(&m->r, "qk_matmul_output_mode", 0);
	double softcap = attr_float(&m->r, "softcap", 0);

	attr_has(&m->r, "softmax_precision");   /* f32 or better here */
	if (show < 0 || show > 3)
		return imp_fail(m, "qk_matmul_output_mode: expected 0 to 3, "
		                "found %jd", (intmax_t)show);
	if (!read_head_counts(m, &h, &hq, &d))
		return false;
	if (attr_has(&m->r, "scale"))
		a.ATTENTION.scale = attr_float(&m->r, "scale", 1);
	else if (d > 0)
		a.ATTENTION.scale = 1 / sqrt((double)d);
	else
		h.q = scale_query(m, h.q);
	if (!make_mask(m, &h, &mask)) {
		if (h.past || h.valid || h.left >= 0 || h.right >= 0)
			return imp_fail(m, "the dtype of the mask is unknown");
		a.ATTENTION.causal = 1;         /* right if T = S */
	}
	if (softcap != 0 || imp_is_used(m, 3))
		o = compose_attention(m, &h, mask, a.ATTENTION.scale, softcap,
		                      (int)show);
	else
		o = EMIT_NODE(m, OP_ATTENTION, &a, h.q, h.k, h.v, mask);
	return set_output(m, hq ? merge_heads(m, o) : o);
}

/* ---- rotary positions ---- */

static ValId
slice_last(struct importer *m, ValId x, int64_t from, int64_t to,
           int64_t step)
{
	return EMIT_NODE(m, OP_SLICE, NULL, x, imp_one(m, from),
	                 imp_one(m, to), imp_one(m, -1), imp_one(m, step));
}

static ValId
concat_last(struct importer *m, ValId x, ValId y)
{
	return imp_concat(m, -1, 2, (ValId[]){ x, y });
}

static ValId
split_half(struct importer *m, ValId x, int index)
{
	Attr a = attr_default(OP_SPLIT);

	a.SPLIT.axis = -1;
	a.SPLIT.count = 2;
	a.SPLIT.index = index;
	return EMIT_NODE(m, OP_SPLIT, &a, x);
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
	bool merged = false;

	if (heads < 0 || dim < 0 || dim % 2)
		return imp_fail(m, "invalid num_heads %jd or "
		                "rotary_embedding_dim %jd",
		                (intmax_t)heads, (intmax_t)dim);
	if (!has_merged_heads(m, heads, &merged))
		return false;
	if (merged)
		x = split_heads(m, x, heads);
	if (imp_has(m, 3)) {
		c = binary(m, OP_GATHER, c, imp_in(m, 3));
		s = binary(m, OP_GATHER, s, imp_in(m, 3));
	}
	c = imp_unsqueeze(m, c, 1);                 /* one for all heads */
	s = imp_unsqueeze(m, s, 1);
	if (dim) {
		rest = slice_last(m, x, dim, INT64_MAX, 1);
		x = slice_last(m, x, 0, dim, 1);
	}
	x1 = neighbours ? slice_last(m, x, 0, INT64_MAX, 2)
		: split_half(m, x, 0);
	x2 = neighbours ? slice_last(m, x, 1, INT64_MAX, 2)
		: split_half(m, x, 1);
	re = binary(m, OP_SUB, binary(m, OP_MUL, x1, c),
	            binary(m, OP_MUL, x2, s));
	im = binary(m, OP_ADD, binary(m, OP_MUL, x1, s),
	            binary(m, OP_MUL, x2, c));
	if (neighbours)
		y = binary(m, OP_RESHAPE,
		           concat_last(m, imp_unsqueeze(m, re, -1),
		                       imp_unsqueeze(m, im, -1)),
		           unary(m, OP_SHAPE, x));
	else
		y = concat_last(m, re, im);
	if (rest)
		y = concat_last(m, y, rest);
	return set_output(m, merged ? merge_heads(m, y) : y);
}
