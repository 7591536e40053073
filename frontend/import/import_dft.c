/* DFT as a product with its matrix.
 *
 * Element (n, k) of the matrix is exp(-2 pi i n k / N).  It has only N values:
 * the matrix gathers rows n k mod N of a table.  For complex numbers as pairs
 * it is
 *   [re im] [n] -> [re im] [k]:   [ cos  -sin ]
 *                                 [ sin   cos ]
 * and its conjugate divided by N for the inverse.  The graph computes extents
 * from the operand, so they may be unknown here.
 *
 * cost   N elements of the table, and products of O(N) for each element
 */
#include "frontend/import/node_import.h"

#include <string.h>

enum { LONGEST = 8192 };

struct dft {
	struct importer *m;
	ValId x;
	int64_t axis;
	bool inverse, onesided;
	/* extents of x and y along the axis and of their pairs: i64[1] */
	ValId n, k, nx, ny;
	ValId length;                   /* N: i64[1] */
};

static ValId
halve_value(struct importer *m, ValId v)
{
	return with(m, OP_DIV, v, 2);
}

/* ---- operands ---- */

/* N; -1: unknown. */
static int64_t
length_of(const struct dft *d, int64_t n)
{
	int64_t len;

	if (imp_const(d->m, 1, &len))
		return len < 0 ? 0 : len;
	return imp_has(d->m, 1) || n < 0 ? -1
	       : d->inverse && d->onesided ? 2 * (n - 1) : n;
}

static bool
check_signal(struct dft *d)
{
	Shape s = imp_shape(d->m, 0);
	int64_t at = d->axis < 0 ? d->axis + s.rank : d->axis, n, len, pair;

	if (d->axis == -1 || (s.rank >= 0 && (at < 0 || at >= s.rank - 1)))
		return imp_fail(d->m, "axis: expected an axis before the last, "
		                "found %jd; the last axis holds real and "
		                "imaginary parts", (intmax_t)d->axis);
	n = s.rank < 0 ? -1 : s.dim[at];
	pair = s.rank < 0 ? -1 : s.dim[s.rank - 1];
	len = length_of(d, n);
	if (pair == 0 || pair > 2)
		return imp_fail(d->m, "the last axis holds real and imaginary "
		                "parts: expected extent 1 or 2, found %jd",
		                (intmax_t)pair);
	if (d->onesided && pair == (d->inverse ? 1 : 2))
		return imp_fail(d->m, "onesided with inverse=%d: expected %s "
		                "input, found %s", d->inverse,
		                d->inverse ? "complex" : "real",
		                d->inverse ? "real" : "complex");
	if (len == 0 || n == 0)
		return imp_fail(d->m, "length: expected at least 1, found 0");
	if (n > LONGEST || len > LONGEST)
		return imp_fail(d->m, "length %jd is not supported: expected "
		                "at most %d, because ckc computes a DFT as a "
		                "product with an N x N matrix; transform "
		                "frames of the signal instead",
		                (intmax_t)(n > len ? n
		                                             : len), LONGEST);
	return true;
}

static bool
read(struct dft *d)
{
	struct importer *m = d->m;

	d->inverse = attr_int(&m->r, "inverse", 0) != 0;
	d->onesided = attr_int(&m->r, "onesided", 0) != 0;
	if (m->n->opset < 20)
		d->axis = attr_int(&m->r, "axis", 1);
	else if (imp_has(m, 2) && !imp_const(m, 2, &d->axis))
		return imp_fail(m, "the axis must be constant");
	if (d->axis < -MAX_RANK || d->axis > MAX_RANK)
		return imp_fail(m, "axis %jd is out of range: the rank is at "
		                "most %d", (intmax_t)d->axis, MAX_RANK);
	return check_signal(d);
}

static void
find_extents(struct dft *d)
{
	struct importer *m = d->m;
	bool real = d->inverse && d->onesided;

	d->n = imp_extent(m, d->x, d->axis);
	d->nx = imp_extent(m, d->x, -1);
	d->ny = imp_one(m, real ? 1 : 2);
	if (imp_has(m, 1))
		d->length = binary(m, OP_RESHAPE, imp_cast(m, imp_in(m, 1),
		                                           DT_I64),
		                   imp_one(m, 1));
	else
		d->length = !real ? d->n
			: with(m, OP_MUL, with(m, OP_SUB, d->n, 1), 2);
	d->k = d->onesided && !real
		? with(m, OP_ADD, halve_value(m, d->length), 1) : d->length;
}

/* ---- the matrix ---- */

/* [2, N, ny]: the rows for real parts, then those for imaginary parts. */
static ValId
make_table(const struct dft *d)
{
	struct importer *m = d->m;
	ValId n = imp_cast(m, d->length, DT_F64), a, c, s, minus, row[2];
	const double tau = 6.28318530717958647692;
	bool both = !(d->inverse && d->onesided);

	a = binary(m, OP_DIV, imp_cast(m, imp_count(m, d->length), DT_F64), n);
	a = imp_unsqueeze(m, with(m, OP_MUL, a, d->inverse ? tau : -tau), 1);
	c = unary(m, OP_COS, a);
	s = unary(m, OP_SIN, a);
	minus = unary(m, OP_NEG, s);
	row[0] = both ? imp_concat(m, 1, 2, (ValId[]){ c, s }) : c;
	row[1] = both ? imp_concat(m, 1, 2, (ValId[]){ minus, c }) : minus;
	for (int i = 0; i < 2; i++)
		row[i] = imp_unsqueeze(m, row[i], 0);
	a = imp_concat(m, 0, 2, row);
	return d->inverse ? binary(m, OP_DIV, a, n) : a;
}

/* Weights of the elements of x: 0 from N on.  A real signal's spectrum is given
 * as one half, whose inner elements count twice, for their conjugates in the
 * other half. */
static ValId
make_weights(const struct dft *d, ValId t)
{
	struct importer *m = d->m;
	ValId twice = with(m, OP_MUL, t, 2), ends, inside;

	if (!(d->inverse && d->onesided))
		return imp_cast(m, binary(m, OP_LT, t, d->length), DT_F64);
	ends = imp_cast(m, binary(m, OP_OR, with(m, OP_EQ, t, 0),
	                          binary(m, OP_EQ, twice, d->length)), DT_F64);
	inside = imp_cast(m, binary(m, OP_LE, twice, d->length), DT_F64);
	return binary(m, OP_MUL, inside,
	              binary(m, OP_SUB, imp_like(m, ends, 2), ends));
}

/* [nx * n, k * ny] */
static ValId
make_matrix(const struct dft *d)
{
	struct importer *m = d->m;
	Attr pick = attr_default(OP_GATHER);
	ValId t = imp_unsqueeze(m, imp_count(m, d->n), 1), at, w;

	at = binary(m, OP_MUL, t, imp_count(m, d->k));
	at = binary(m, OP_MOD, at, d->length);
	w = EMIT_NODE(m, OP_SLICE, NULL, make_table(d), imp_one(m, 0), d->nx,
	              imp_one(m, 0));
	w = EMIT_NODE(m, OP_CAST_LIKE, NULL, w, d->x);
	pick.GATHER.axis = 1;
	w = EMIT_NODE(m, OP_GATHER, &pick, w, at);
	if (d->length != d->n) {
		t = imp_unsqueeze(m, make_weights(d, t), 2);
		t = EMIT_NODE(m, OP_CAST_LIKE, NULL, t, d->x);
		w = binary(m, OP_MUL, w, t);
	}
	return imp_reshape(m, w, 2, (ValId[]){
		binary(m, OP_MUL, d->nx, d->n), imp_one(m, -1) });
}

/* ---- the product ---- */

/* The extents of x with k instead of n and ny instead of nx. */
static ValId
restore_shape(const struct dft *d, ValId y)
{
	struct importer *m = d->m;
	Attr before = attr_default(OP_SHAPE), after = before;

	before.SHAPE.end = d->axis;
	after.SHAPE.start = d->axis + 1;
	after.SHAPE.end = -1;
	return imp_reshape(m, y, 4, (ValId[]){
		EMIT_NODE(m, OP_SHAPE, &before, d->x), d->k,
		EMIT_NODE(m, OP_SHAPE, &after, d->x), d->ny });
}

bool
run_dft(struct importer *m)
{
	struct dft d = { .m = m, .x = imp_in(m, 0), .axis = -2 };
	Attr flat = attr_default(OP_FLATTEN);
	ValId rest = imp_one(m, -1), lead, x, y;

	if (!read(&d))
		return false;
	find_extents(&d);
	flat.FLATTEN.axis = d.axis;
	x = EMIT_NODE(m, OP_FLATTEN, &flat, d.x);
	lead = imp_extent(m, x, 0);
	x = imp_reshape(m, x, 4, (ValId[]){ lead, d.n, rest, d.nx });
	x = imp_transpose(m, x, (IntList){ 4, { 0, 2, 3, 1 } });
	x = imp_reshape(m, x, 2, (ValId[]){
		rest, binary(m, OP_MUL, d.nx, d.n) });
	y = binary(m, OP_MATMUL, x, make_matrix(&d));
	y = imp_reshape(m, y, 4, (ValId[]){ lead, rest, d.k, d.ny });
	y = imp_transpose(m, y, (IntList){ 4, { 0, 2, 1, 3 } });
	return set_output(m, restore_shape(&d, y));
}
