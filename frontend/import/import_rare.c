/* Rare ONNX operators, composed of IR ops: inverse and hyperbolic functions,
 * bits, norms over axes, selections.  */
#include "frontend/import/node_import.h"

#include <string.h>

/* ---- functions ---- */

/* 1 - x and 1 + x */
static void
around_one(struct importer *m, ValId x, ValId *below, ValId *above)
{
	*above = with(m, OP_ADD, x, 1);
	*below = binary(m, OP_SUB, imp_like(m, x, 1), x);
}

bool
run_asin(struct importer *m)
{
	ValId x = imp_in(m, 0), lo, hi;

	around_one(m, x, &lo, &hi);
	lo = unary(m, OP_SQRT, binary(m, OP_MUL, lo, hi));
	return set_output(m, unary(m, OP_ATAN, binary(m, OP_DIV, x, lo)));
}

bool
run_acos(struct importer *m)
{
	ValId x = imp_in(m, 0), lo, hi, y;

	around_one(m, x, &lo, &hi);
	y = unary(m, OP_SQRT, binary(m, OP_DIV, lo, hi));
	return set_output(m, with(m, OP_MUL, unary(m, OP_ATAN, y), 2));
}

bool
run_sinh(struct importer *m)
{
	ValId x = imp_in(m, 0), up = unary(m, OP_EXP, x);
	ValId down = unary(m, OP_EXP, unary(m, OP_NEG, x));

	up = binary(m, strcmp(m->n->type, "Sinh") == 0 ? OP_SUB : OP_ADD, up,
	            down);
	return set_output(m, with(m, OP_MUL, up, 0.5));
}

/* log(x + sqrt(x - 1) sqrt(x + 1)): x^2 could overflow */
bool
run_acosh(struct importer *m)
{
	ValId x = imp_in(m, 0), y = unary(m, OP_SQRT, with(m, OP_SUB, x, 1));

	y = binary(m, OP_MUL, y, unary(m, OP_SQRT, with(m, OP_ADD, x, 1)));
	return set_output(m, unary(m, OP_LOG, binary(m, OP_ADD, x, y)));
}

bool
run_atanh(struct importer *m)
{
	ValId lo, hi;

	around_one(m, imp_in(m, 0), &lo, &hi);
	lo = unary(m, OP_LOG, binary(m, OP_DIV, hi, lo));
	return set_output(m, with(m, OP_MUL, lo, 0.5));
}

/* Shrink x towards zero by bias; |x| <= lambd gives zero. */
bool
run_shrink(struct importer *m)
{
	ValId x = imp_in(m, 0), y;
	double bias = attr_float(&m->r, "bias", 0);
	double width = attr_float(&m->r, "lambd", 0.5);

	y = EMIT_NODE(m, OP_WHERE, NULL, with(m, OP_GT, x, width),
	              with(m, OP_SUB, x, bias), imp_like(m, x, 0));
	return set_output(m, EMIT_NODE(m, OP_WHERE, NULL,
	                               with(m, OP_LT, x, -width),
	                               with(m, OP_ADD, x, bias), y));
}

bool
run_bit_shift(struct importer *m)
{
	static const char *const words[] = { "", "LEFT", "RIGHT" };
	int way = attr_word(&m->r, "direction", 0, words, 3);

	if (way == 0)
		return m->r.failed ? false
			: imp_fail(m, "missing attribute 'direction'");
	return set_output(m, binary(m, way == 1 ? OP_SHL : OP_SHR, imp_in(m, 0),
	                            imp_in(m, 1)));
}

/* ---- shapes ---- */

/* Ones where column - row = k. */
bool
run_eye_like(struct importer *m)
{
	Attr tri = attr_default(OP_TRILU);
	ValId x = imp_in(m, 0), y;
	int64_t to = attr_int(&m->r, "dtype", 0);
	DType dt = to ? onnx_dtype((int)to) : m->g->val[x].dt;

	if (dt == DT_NONE)
		return imp_fail(m, "the dtype of the input is unknown");
	tri.TRILU.k = attr_int(&m->r, "k", 0);
	y = imp_ones(m, unary(m, OP_SHAPE, x), dt);
	y = EMIT_NODE(m, OP_TRILU, &tri, y);
	tri.TRILU.upper = 0;
	return set_output(m, EMIT_NODE(m, OP_TRILU, &tri, y));
}

/* One at the first largest element of a row, zero elsewhere.  Before opset 13
 * the operand is a matrix whose columns are all dims from axis on. */
bool
run_hardmax(struct importer *m)
{
	Attr a = attr_default(OP_ARGMAX), f = attr_default(OP_FLATTEN);
	Attr h = attr_default(OP_ONE_HOT);
	ValId x = imp_in(m, 0), t = x, two[2], y;
	bool flat = m->n->opset < 13;
	int64_t axis = attr_int(&m->r, "axis", flat ? 1 : -1);

	if (m->g->val[x].dt == DT_NONE)
		return imp_fail(m, "the dtype of the input is unknown");
	f.FLATTEN.axis = axis;
	if (flat)
		t = EMIT_NODE(m, OP_FLATTEN, &f, x);
	axis = flat ? 1 : axis;
	a.ARGMAX.axis = h.ONE_HOT.axis = axis;
	a.ARGMAX.keepdims = 0;
	for (int i = 0; i < 2; i++)
		two[i] = binary(m, OP_RESHAPE, imp_like(m, x, i),
		                imp_one(m, 1));
	y = EMIT_NODE(m, OP_ONE_HOT, &h, EMIT_NODE(m, OP_ARGMAX, &a, t),
	              imp_extent(m, t, axis),
	              imp_concat(m, 0, 2, two));
	if (flat)
		y = binary(m, OP_RESHAPE, y, unary(m, OP_SHAPE, x));
	return set_output(m, y);
}

/* Hann, Hamming and Blackman: sums of cosines over 0..size-1. */
bool
run_window(struct importer *m)
{
	int kind = m->n->type[0] == 'B' ? 2 : m->n->type[2] == 'm' ? 1 : 0;
	static const double c[3][3] = { { 0.5, 0.5, 0 },
		{ 25.0 / 46, 21.0 / 46, 0 }, { 0.42, 0.5, 0.08 } };
	bool periodic = attr_int(&m->r, "periodic", 1) != 0;
	DType dt = onnx_dtype((int)attr_int(&m->r, "output_datatype", 1));
	ValId n = imp_in(m, 0), t, y;
	const double tau = 6.28318530717958647692;

	if (dt == DT_NONE || dtype_info[dt].cls != 'f')
		return imp_fail(m, "only float windows are supported");
	t = EMIT_NODE(m, OP_RANGE, NULL, imp_like(m, n, 0), n,
	              imp_like(m, n, 1));
	if (!periodic)
		n = with(m, OP_SUB, n, 1);
	t = binary(m, OP_DIV, imp_cast(m, t, DT_F64), imp_cast(m, n, DT_F64));
	y = unary(m, OP_COS, with(m, OP_MUL, t, tau));
	y = binary(m, OP_SUB, imp_like(m, y, c[kind][0]),
	           with(m, OP_MUL, y, c[kind][1]));
	t = unary(m, OP_COS, with(m, OP_MUL, t, 2 * tau));
	y = binary(m, OP_ADD, y, with(m, OP_MUL, t, c[kind][2]));
	return set_output(m, imp_cast(m, y, dt));
}

/* ---- along axes ---- */

/* (x - mean) / (deviation + 1e-9) */
bool
run_mean_variance(struct importer *m)
{
	struct attr_ints axes;
	IntList list = { 3, { 0, 2, 3 } };
	ValId x = imp_in(m, 0), y, s;

	if (attr_ints(&m->r, "axes", &axes)) {
		if (axes.n > MAX_RANK)
			return imp_fail(m, "wrong number of axes: %d", axes.n);
		list.n = axes.n;
		memcpy(list.v, axes.v, (size_t)axes.n * sizeof axes.v[0]);
	}
	y = binary(m, OP_SUB, x, imp_reduce(m, OP_REDUCE_MEAN, x, 0, &list,
	                                    true, false));
	s = imp_reduce(m, OP_REDUCE_MEAN, binary(m, OP_MUL, y, y), 0, &list,
	               true, false);
	s = with(m, OP_ADD, unary(m, OP_SQRT, s), 1e-9);
	return set_output(m, binary(m, OP_DIV, y, s));
}

/* x / norm, and 0 where the norm is 0. */
bool
run_lp_norm(struct importer *m)
{
	IntList axis = { 1, { attr_int(&m->r, "axis", -1) } };
	int64_t p = attr_int(&m->r, "p", 2);
	ValId x = imp_in(m, 0), s, none;

	if (p != 1 && p != 2)
		return imp_fail(m, "p: expected 1 or 2, found %jd",
		                (intmax_t)p);
	s = p == 1 ? unary(m, OP_ABS, x) : binary(m, OP_MUL, x, x);
	s = imp_reduce(m, OP_REDUCE_SUM, s, 0, &axis, true, false);
	none = with(m, OP_EQ, s, 0);
	s = EMIT_NODE(m, OP_WHERE, NULL, none, imp_like(m, x, 1), s);
	if (p == 2)
		s = unary(m, OP_SQRT, s);
	return set_output(m, binary(m, OP_DIV, x, s));
}

/* ---- selections ---- */

bool
run_topk(struct importer *m)
{
	Attr a = imp_attrs(m, OP_TOPK);
	ValId y;

	attr_int(&m->r, "sorted", 1);           /* always */
	if (m->n->opset < 10)
		a.TOPK.k = attr_int(&m->r, "k", 0);
	y = EMIT_NODE(m, OP_TOPK, &a, imp_in(m, 0), imp_in(m, 1));
	m->g->val[imp_output(m, y, 1)].dt = DT_I64;
	imp_out(m, 0, y);
	imp_out(m, 1, imp_output(m, y, 1));
	return true;
}

/* The condition must be known when dims are bound. */
bool
run_compress(struct importer *m)
{
	Attr a = attr_default(OP_GATHER);
	ValId x = imp_in(m, 0), at;

	at = unary(m, OP_NONZERO, imp_in(m, 1));
	at = binary(m, OP_RESHAPE, at, imp_one(m, -1));
	if (!attr_has(&m->r, "axis"))
		x = binary(m, OP_RESHAPE, x, imp_one(m, -1));
	a.GATHER.axis = attr_int(&m->r, "axis", 0);
	return set_output(m, EMIT_NODE(m, OP_GATHER, &a, x, at));
}

/* The first lens[b] elements along time in reverse, the others as they are. */
bool
run_reverse_sequence(struct importer *m)
{
	Attr a = attr_default(OP_GATHER_ELEMENTS);
	ValId x = imp_in(m, 0), lens = imp_in(m, 1), t, turned;
	int rank;
	int64_t batch = attr_int(&m->r, "batch_axis", 1);
	int64_t time = attr_int(&m->r, "time_axis", 0);

	if (!imp_rank(m, 0, &rank))
		return imp_fail(m, "the rank of the input is unknown");
	batch += batch < 0 ? rank : 0;
	time += time < 0 ? rank : 0;
	if (batch < 0 || batch >= rank || time < 0 || time >= rank)
		return imp_fail(m, "batch_axis or time_axis is out of range "
		                "for rank %d", rank);
	lens = imp_reshape_along(m, imp_cast(m, lens, DT_I64), (int)batch,
	                         rank);
	t = imp_scalar_of(m, imp_extent(m, x, time));
	t = imp_range(m, t);
	t = imp_reshape_along(m, t, (int)time, rank);
	turned = binary(m, OP_SUB, with(m, OP_SUB, lens, 1), t);
	t = EMIT_NODE(m, OP_WHERE, NULL, binary(m, OP_LT, t, lens), turned, t);
	t = binary(m, OP_EXPAND, t, unary(m, OP_SHAPE, x));
	a.GATHER_ELEMENTS.axis = time;
	return set_output(m, EMIT_NODE(m, OP_GATHER_ELEMENTS, &a, x, t));
}

/* ---- pieces in the middle ---- */

/* Cut or pad axes to the given extents, evenly on both sides.  An odd element
 * is padded or cut at the end. */
bool
run_center_crop_pad(struct importer *m)
{
	struct attr_ints axes;
	ValId x = imp_in(m, 0), want = imp_in(m, 1), list = 0, have, d, lo, hi;
	ValId zero, from, to, pads[2];

	want = imp_cast(m, want, DT_I64);
	have = unary(m, OP_SHAPE, x);
	if (attr_ints(&m->r, "axes", &axes)) {
		list = imp_ints(m, axes.n, axes.v);
		have = binary(m, OP_GATHER, have, list);
	}
	zero = imp_like(m, want, 0);
	d = binary(m, OP_SUB, have, want);
	d = binary(m, OP_MAX, d, zero);                 /* to cut */
	from = with(m, OP_DIV, d, 2);
	to = binary(m, OP_ADD, from, binary(m, OP_MIN, have, want));
	if (!list) {
		int rank;

		if (!imp_rank(m, 0, &rank))
			return imp_fail(m, "the rank of the input is unknown");
		for (int i = 0; i < rank; i++)
			axes.v[i] = i;
		list = imp_ints(m, rank, axes.v);
	}
	x = EMIT_NODE(m, OP_SLICE, NULL, x, from, to, list);
	d = binary(m, OP_SUB, want, have);
	d = binary(m, OP_MAX, d, zero);                 /* to pad */
	lo = with(m, OP_DIV, d, 2);
	hi = binary(m, OP_SUB, d, lo);
	pads[0] = lo;
	pads[1] = hi;
	return set_output(m, EMIT_NODE(m, OP_PAD, NULL, x,
	                               imp_concat(m, 0, 2, pads), 0, list));
}
