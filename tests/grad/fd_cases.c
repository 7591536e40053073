/* The cases: at least one for every gradient rule of ops.h. */
#include <math.h>

#include "tests/grad/fd.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- element-wise ---- */

static const struct {
	Op op;
	bool positive;
} unary[] = {
	{ OP_NEG, false }, { OP_ABS, false }, { OP_EXP, false },
	{ OP_LOG, true }, { OP_SQRT, true }, { OP_RECIP, true },
	{ OP_SIN, false }, { OP_COS, false }, { OP_ATAN, false },
	{ OP_ASINH, false }, { OP_TANH, false },
	{ OP_SIGMOID, false }, { OP_ERF, false }, { OP_RELU, false },
	{ OP_SOFTPLUS, false }, { OP_GELU, false }, { OP_SILU, false },
	{ OP_COPY, false },
};

static Shape
shape_no(int i)
{
	switch (i) {
	case 0: return shape_scalar();
	case 1: return SHAPE(5);
	case 2: return SHAPE(2, 3);
	default: return SHAPE(2, 1, 3, 2);
	}
}

static void
build_unary(struct fd *f, int i)
{
	Shape s = shape_no(i % 4);
	ValId x = unary[i / 4].positive ? fd_param_in(f, s, .3, 2)
	                                : fd_param_in(f, s, -3, 3);

	fd_loss(f, fd_1(f, unary[i / 4].op, x));
}

static void
build_gelu_tanh(struct fd *f, int i)
{
	Attr a = attr_default(OP_GELU);
	ValId x = fd_param_in(f, shape_no(i), -4, 4);

	a.GELU.tanh = 1;
	fd_loss(f, fd_op(f, OP_GELU, 1, &x, &a));
}

static const Op binary[] = { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_POW, OP_MAX,
	OP_MIN };

/* Pairs that broadcast both ways. */
static void
pair(int i, Shape *a, Shape *b)
{
	*a = SHAPE(2, 3);
	switch (i) {
	case 0: *b = SHAPE(2, 3); break;
	case 1: *b = SHAPE(3); break;
	case 2: *a = SHAPE(3); *b = SHAPE(2, 3); break;
	case 3: *a = SHAPE(2, 1, 3); *b = SHAPE(4, 1); break;
	case 4: *a = shape_scalar(); *b = SHAPE(2, 3); break;
	case 5: *b = SHAPE(1, 1, 1); break;
	default: *a = SHAPE(2, 1, 2, 1); *b = SHAPE(1, 3, 1, 2); break;
	}
}

static void
build_binary(struct fd *f, int i)
{
	Op op = binary[i / 7];
	Shape s, t;
	ValId a, b;

	pair(i % 7, &s, &t);
	a = op == OP_POW ? fd_param_in(f, s, .3, 2) : fd_param(f, s);
	b = op == OP_DIV ? fd_param_in(f, t, .4, 2) : fd_param(f, t);
	fd_loss(f, fd_2(f, op, a, b));
}

/* Both kinds of mod, where quotients stay away from whole numbers. */
static void
build_mod(struct fd *f, int i)
{
	Attr a = attr_default(OP_MOD);
	bool below = i & 1, negative = i & 2;
	ValId in[2];

	a.MOD.fmod = i / 4;
	in[0] = below ? fd_param_in(f, SHAPE(2, 3), -2.8, -2.3)
	              : fd_param_in(f, SHAPE(2, 3), 2.3, 2.8);
	in[1] = negative ? fd_param_in(f, SHAPE(3), -1.1, -1)
	                 : fd_param_in(f, SHAPE(3), 1, 1.1);
	fd_loss(f, fd_op(f, OP_MOD, 2, in, &a));
}

/* Both operands the same value; and one of them not trained. */
static void
build_binary_self(struct fd *f, int i)
{
	Op op = binary[i % 7];
	ValId a = fd_param_in(f, SHAPE(2, 3), .3, 2);

	if (i / 7 == 0) {       /* max(a, a) has a kink everywhere else */
		fd_loss(f, fd_2(f, op, a, a));
		return;
	}
	if (i / 7 == 1)
		fd_loss(f, fd_2(f, op, a, fd_input(f, SHAPE(3))));
	else
		fd_loss(f, fd_2(f, op, fd_param_in(f, SHAPE(3), .3, 2), a));
}

static void
build_pow_number(struct fd *f, int i)
{
	static const double e[] = { .5, 1, 2, 3, -1, 2.5, -.5, 4 };
	ValId x = fd_param_in(f, SHAPE(2, 3), .3, 2);
	DType dt = i % 2 ? DT_F32 : DT_I64;

	/* integers as exponents too */
	if (e[i / 2] != floor(e[i / 2]))
		dt = DT_F32;
	fd_loss(f, fd_2(f, OP_POW, x, val_scalar(f->g, dt, e[i / 2])));
}

/* Exponents that differ, among them 0 at a base of 0. */
static void
build_pow_list(struct fd *f, int i)
{
	const double x[] = { i ? .7 : 0, .4, 1.5 };
	const float e[] = { 0, 1, 3 };

	fd_loss(f, fd_2(f, OP_POW, fd_param_at(f, SHAPE(3), x),
	                val_const(f->g, NULL, DT_F32, SHAPE(3), e)));
}

static void
build_where(struct fd *f, int i)
{
	static const int c[] = { 1, 0, 0, 1, 1, 0 };
	ValId in[3];

	in[0] = i == 1 ? fd_bools(f, SHAPE(3), c) : i == 2
	        ? fd_bools(f, SHAPE(2, 1), c) : fd_bools(f, SHAPE(2, 3), c);
	in[1] = i == 3 ? fd_input(f, SHAPE(2, 3)) : fd_param(f, SHAPE(2, 3));
	in[2] = i == 4 ? val_scalar(f->g, DT_F32, 2)
	               : fd_param(f, i == 0 ? SHAPE(1) : SHAPE(2, 3));
	fd_loss(f, fd_op(f, OP_WHERE, 3, in, NULL));
}

static void
build_cast(struct fd *f, int i)
{
	Attr a = attr_default(OP_CAST);
	ValId x = fd_param(f, SHAPE(2, 2));

	a.CAST.to = DT_F64;
	x = fd_op(f, OP_CAST, 1, &x, &a);
	x = fd_2(f, OP_MUL, x, x);
	if (i == 1) {
		a.CAST.to = DT_F32;
		x = fd_op(f, OP_CAST, 1, &x, &a);
	}
	fd_loss(f, x);
}

static void
build_dropout(struct fd *f, int i)
{
	Attr a = attr_default(OP_DROPOUT);
	ValId x = fd_param(f, SHAPE(3, 5));

	a.DROPOUT.ratio = i == 0 ? .5 : .1;
	a.DROPOUT.stream = 3;
	x = fd_op(f, OP_DROPOUT, 1, &x, &a);
	fd_loss(f, fd_2(f, OP_MUL, x, x));
}

/* Whole rows dropped by a random factor: no gradient passes through it. */
static void
build_drop_path(struct fd *f, int i)
{
	Attr a = attr_default(OP_RANDOM), b = attr_default(OP_BERNOULLI);
	ValId x = fd_param(f, SHAPE(6, 5)), m;

	a.RANDOM.dt = DT_F32;
	a.RANDOM.shape = (IntList){ 2, { 6, 1 } };
	a.RANDOM.stream = b.BERNOULLI.stream = 3;
	m = fd_op(f, OP_RANDOM, 0, NULL, &a);
	if (i == 0)
		m = fd_1(f, OP_FLOOR, fd_2(f, OP_ADD, m,
		         val_scalar(f->g, DT_F32, 0.5)));
	else
		m = fd_op(f, OP_BERNOULLI, 1, &m, &b);
	x = fd_2(f, OP_MUL, fd_1(f, OP_TANH, x), m);
	fd_loss(f, fd_2(f, OP_MUL, x, x));
}

/* ---- layout ---- */

static void
build_reshape(struct fd *f, int i)
{
	Attr a = attr_default(OP_RESHAPE);
	ValId x = fd_param(f, SHAPE(2, 3, 2));

	a.RESHAPE.shape = i == 0 ? LIST(4, 3) : i == 1 ? LIST(12)
	                  : LIST(1, 2, 6);
	fd_loss(f, fd_op(f, OP_RESHAPE, 1, &x, &a));
}

static void
build_expand(struct fd *f, int i)
{
	Attr a = attr_default(OP_EXPAND);
	ValId x = fd_param(f, i == 0 ? SHAPE(3) : i == 1 ? SHAPE(2, 1)
	                      : shape_scalar());

	a.EXPAND.shape = i == 1 ? LIST(4, 2, 3) : LIST(2, 3);
	fd_loss(f, fd_op(f, OP_EXPAND, 1, &x, &a));
}

static void
build_transpose(struct fd *f, int i)
{
	Attr a = attr_default(OP_TRANSPOSE);
	ValId x = fd_param(f, SHAPE(2, 3, 4));

	if (i > 0)
		a.TRANSPOSE.perm = i == 1 ? LIST(1, 2, 0) : LIST(0, 2, 1);
	fd_loss(f, fd_op(f, OP_TRANSPOSE, 1, &x, &a));
}

static void
build_slice(struct fd *f, int i)
{
	ValId x = fd_param(f, SHAPE(4, 6)), y;

	switch (i) {
	case 0:
		y = fd_slice(f, x, LIST(0, 2), SHAPE(4, 3), LIST(1, 1));
		break;
	case 1:
		y = fd_slice(f, x, LIST(1, 2), SHAPE(2, 4), LIST(1, 1));
		break;
	case 2:
		y = fd_slice(f, x, LIST(0, 5), SHAPE(4, 3), LIST(1, -2));
		break;
	case 3:
		y = fd_slice(f, x, LIST(3, 1), SHAPE(4, 2), LIST(-1, 3));
		break;
	case 4:
		y = fd_slice(f, x, LIST(2, 1), SHAPE(1, 3), LIST(-7, 2));
		break;
	case 5:
		y = fd_slice(f, x, LIST(0, 0), SHAPE(4, 6), LIST(1, 1));
		break;
	default:
		y = fd_slice(f, x, LIST(3, 0), SHAPE(1, 6), LIST(5, 1));
		break;
	}
	fd_loss(f, fd_2(f, OP_MUL, y, y));
}

/* y = sum of squares of columns a..b-1, one slice each, times a number. */
static ValId
columns(struct fd *f, ValId x, int64_t a, int64_t n)
{
	ValId s = fd_slice(f, x, LIST(0, a), SHAPE(2, n), LIST(1, 1));
	Attr at = attr_default(OP_REDUCE_SUM);

	s = fd_2(f, OP_MUL, s, fd_1(f, OP_EXP, s));
	at.REDUCE_SUM.axes = LIST(1);
	return fd_op(f, OP_REDUCE_SUM, 1, &s, &at);
}

/* Several slices of one value: tiling, with gaps, overlapping, beside another
 * use, of an activation and of a parameter. */
static void
build_slices(struct fd *f, int i)
{
	static const int64_t cut[][6] = {
		{ 0, 2, 2, 3, 5, 3 }, { 5, 3, 0, 2, 2, 3 },
		{ 1, 2, 4, 1, 6, 1 }, { 0, 4, 2, 4, 5, 3 },
		{ 0, 8, 3, 2, 6, 2 }, { 3, 1, 3, 1, 0, 2 },
	};
	const int64_t *c = cut[i % 6];
	ValId x = fd_param(f, SHAPE(2, 8)), v = x, y;

	if (i >= 6)
		v = fd_1(f, OP_TANH, x);
	y = fd_2(f, OP_ADD, columns(f, v, c[0], c[1]),
	         columns(f, v, c[2], c[3]));
	y = fd_2(f, OP_ADD, y, columns(f, v, c[4], c[5]));
	if (i >= 12)
		y = fd_2(f, OP_MUL, y, v);
	fd_loss(f, y);
}

/* Halves of the columns whose rows are reversed: no plain cut. */
static void
build_slices_reversed(struct fd *f, int i)
{
	ValId x = fd_param(f, SHAPE(2, 4)), a, b;

	a = fd_slice(f, x, LIST(1, 0), SHAPE(2, 2), LIST(-1, 1));
	b = fd_slice(f, x, i ? LIST(0, 2) : LIST(1, 2), SHAPE(2, 2),
	             i ? LIST(1, 1) : LIST(-1, 1));
	fd_loss(f, fd_2(f, OP_MUL, a, b));
}

/* Slices along two axes, which cannot be joined. */
static void
build_slices_crossed(struct fd *f, int i)
{
	ValId x = fd_param(f, SHAPE(2, 4)), a, b;

	(void)i;
	a = fd_slice(f, x, LIST(0, 1), SHAPE(2, 2), LIST(1, 1));
	b = fd_slice(f, x, LIST(1, 0), SHAPE(1, 4), LIST(1, 1));
	fd_loss(f, fd_2(f, OP_MUL, a,
	                fd_slice(f, b, LIST(0, 2), SHAPE(1, 2), LIST(1, 1))));
}

static void
build_concat(struct fd *f, int i)
{
	Attr a = attr_default(OP_CONCAT);
	ValId in[3] = { fd_param(f, SHAPE(2, 3)), fd_input(f, SHAPE(2, 3)),
		fd_param(f, SHAPE(2, 3)) };

	a.CONCAT.axis = i % 3 - 1;
	if (i >= 3)
		in[1] = in[0];
	in[0] = fd_op(f, OP_CONCAT, 3, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

static void
build_pad(struct fd *f, int i)
{
	Attr a = attr_default(OP_PAD);
	ValId x = fd_param(f, SHAPE(3, 4));

	a.PAD.mode = i / 3;
	a.PAD.value = 1.5;
	a.PAD.begin = i % 3 == 0 ? LIST(1, 2) : i % 3 == 1 ? LIST(0, 3)
	              : LIST(2, 0);
	a.PAD.end = i % 3 == 0 ? LIST(2, 1) : i % 3 == 1 ? LIST(0, 0)
	            : LIST(0, 3);
	if (i == 1) {                   /* negative: cuts */
		a.PAD.begin = LIST(-1, 2);
		a.PAD.end = LIST(1, -2);
	}
	x = fd_op(f, OP_PAD, 1, &x, &a);
	fd_loss(f, fd_2(f, OP_MUL, x, x));
}

static void
build_trilu(struct fd *f, int i)
{
	Attr a = attr_default(OP_TRILU);
	ValId x = fd_param(f, SHAPE(2, 3, 4));

	a.TRILU.upper = i % 2;
	a.TRILU.k = i / 2 - 1;
	fd_loss(f, fd_op(f, OP_TRILU, 1, &x, &a));
}

/* ---- indexing ---- */

static void
build_gather(struct fd *f, int i)
{
	static const int idx[] = { 2, 0, 2, -1, 1, 0 };
	Attr a = attr_default(OP_GATHER);
	ValId in[2] = { fd_param(f, SHAPE(3, 4, 3)), 0 };

	a.GATHER.axis = i % 4 - 1;
	in[1] = fd_ints(f, i / 4 == 0 ? SHAPE(2, 3) : i / 4 == 1 ? SHAPE(4)
	                   : shape_scalar(), idx);
	in[0] = fd_op(f, OP_GATHER, 2, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

static void
build_scatter_add(struct fd *f, int i)
{
	static const int idx[] = { 2, 0, 2, 4, 1, 0 };
	Attr a = attr_default(OP_SCATTER_ADD);
	bool pairs = i / 2;
	ValId in[3];

	a.SCATTER_ADD.axis = pairs;
	a.SCATTER_ADD.shape = pairs ? LIST(3, 5, 2) : LIST(5, 2);
	in[0] = fd_ints(f, pairs ? SHAPE(2, 3) : SHAPE(6), idx);
	in[1] = fd_param(f, pairs ? SHAPE(3, 2, 3, 2) : SHAPE(6, 2));
	in[2] = fd_param(f, pairs ? SHAPE(3, 5, 2) : SHAPE(5, 2));
	in[0] = fd_op(f, OP_SCATTER_ADD, 2 + i % 2, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

static void
build_gather_elements(struct fd *f, int i)
{
	static const int idx[] = { 1, 0, -1, 1, 1, 0 };
	Attr a = attr_default(OP_GATHER_ELEMENTS);
	ValId in[2] = { fd_param(f, SHAPE(3, 3)), 0 };

	a.GATHER_ELEMENTS.axis = i - 1;
	in[1] = fd_ints(f, i == 1 ? SHAPE(2, 3) : SHAPE(3, 2), idx);
	in[0] = fd_op(f, OP_GATHER_ELEMENTS, 2, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

static void
build_scatter_elements(struct fd *f, int i)
{
	static const int twice[] = { 1, 0, -1, 1, 1, 0 };
	static const int once[] = { 1, 0, 2, 2, 0, 1 };
	Attr a = attr_default(OP_SCATTER_ELEMENTS);
	ValId in[3] = { fd_param(f, SHAPE(3, 3)), 0, 0 };

	a.SCATTER_ELEMENTS.axis = i % 2 - 1;
	a.SCATTER_ELEMENTS.add = i / 2;
	in[1] = fd_ints(f, i % 2 ? SHAPE(2, 3) : SHAPE(3, 2),
	                i / 2 ? twice : once);
	in[2] = fd_param(f, i % 2 ? SHAPE(2, 3) : SHAPE(3, 2));
	if (i == 1)             /* along axis 0 these are [1,0,2],[2,1,0] */
		in[1] = fd_ints(f, SHAPE(2, 3),
		                (const int[]){ 1, 0, 2, 2, 1, 0 });
	if (i == 0)
		in[1] = fd_ints(f, SHAPE(3, 2),
		                (const int[]){ 1, 0, 2, 1, 0, 2 });
	in[0] = fd_op(f, OP_SCATTER_ELEMENTS, 3, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

/* An embedding that is also the last product's weight. */
static void
build_tied(struct fd *f, int i)
{
	static const int ids[] = { 3, 1, 3, 0 };
	Attr a = attr_default(OP_MATMUL);
	ValId w = fd_param(f, SHAPE(4, 3)), in[2] = { w, 0 };

	in[1] = fd_ints(f, SHAPE(4), ids);
	in[0] = fd_1(f, OP_TANH, fd_op(f, OP_GATHER, 2, in, NULL));
	in[1] = w;
	a.MATMUL.tb = 1;
	in[0] = fd_op(f, OP_MATMUL, 2, in, &a);
	if (i == 1)
		in[0] = fd_2(f, OP_MATMUL, in[0], w);
	fd_loss(f, in[0]);
}

/* ---- reductions ---- */

static const Op reductions[] = { OP_REDUCE_SUM, OP_REDUCE_MEAN,
	OP_REDUCE_MAX, OP_REDUCE_MIN };

static void
build_reduce(struct fd *f, int i)
{
	Attr a = attr_default(OP_REDUCE_SUM);
	ValId x = fd_param(f, SHAPE(2, 3, 4));

	switch (i / 4) {
	case 0: break;
	case 1: a.REDUCE_SUM.axes = LIST(1); break;
	case 2: a.REDUCE_SUM.axes = LIST(-1, 0); break;
	case 3: a.REDUCE_SUM.axes = LIST(2); break;
	case 4: a.REDUCE_SUM.noop = 1; break;
	}
	a.REDUCE_SUM.keepdims = (i / 4) % 2;
	x = fd_op(f, reductions[i % 4], 1, &x, &a);
	fd_loss(f, fd_2(f, OP_MUL, x, x));
}

/* ---- products ---- */

static void
build_matmul(struct fd *f, int i)
{
	bool ta = i & 1, tb = i & 2, bias = i & 4, acc = i & 8;
	Attr a = attr_default(OP_MATMUL);
	ValId in[4] = { fd_param(f, ta ? SHAPE(4, 3) : SHAPE(3, 4)),
		fd_param(f, tb ? SHAPE(2, 4) : SHAPE(4, 2)), 0, 0 };

	if (bias)
		in[2] = fd_param(f, SHAPE(2));
	if (acc)
		in[3] = fd_param(f, SHAPE(3, 2));
	a.MATMUL.ta = ta;
	a.MATMUL.tb = tb;
	a.MATMUL.alpha = i & 16 ? .25 : 1;
	in[0] = fd_op(f, OP_MATMUL, acc ? 4 : bias ? 3 : 2, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

static void
swap_last(Shape *s)
{
	int64_t t = s->dim[s->rank - 1];

	s->dim[s->rank - 1] = s->dim[s->rank - 2];
	s->dim[s->rank - 2] = t;
}

static void
build_matmul_batch(struct fd *f, int i)
{
	Attr at = attr_default(OP_MATMUL);
	Shape a = SHAPE(2, 3, 4), b = SHAPE(2, 4, 2);

	switch (i / 4) {
	case 0: break;
	case 1: a = SHAPE(2, 1, 3, 4); b = SHAPE(3, 4, 2); break;
	case 2: b = SHAPE(4, 2); break;
	case 3: a = SHAPE(3, 4); b = SHAPE(2, 4, 2); break;
	case 4: b = SHAPE(1, 4, 2); break;
	case 5: a = SHAPE(1, 3, 4); b = SHAPE(2, 2, 4, 2); break;
	}
	at.MATMUL.ta = i % 2;
	at.MATMUL.tb = i / 2 % 2;
	at.MATMUL.alpha = i % 3 ? 1 : .5;
	if (at.MATMUL.ta)
		swap_last(&a);
	if (at.MATMUL.tb)
		swap_last(&b);
	fd_loss(f, fd_op(f, OP_MATMUL, 2,
	                 (ValId[]){ fd_param(f, a), fd_param(f, b) }, &at));
}

/* Rows of several experts, of one, and of none of some. */
static void
build_experts(struct fd *f, int i)
{
	static const int idx[][6] = { { 2, 0, 2, -1, 0, 0 },
		{ 1, 1, 1, 1, 1, 1 }, { 3, 2, 1, 0, -4, -1 } };
	Attr a = attr_default(OP_EXPERT_MATMUL);
	ValId in[3] = { fd_param(f, SHAPE(6, 3)) };
	bool tb = i % 2;

	a.EXPERT_MATMUL.tb = tb;
	in[1] = fd_param(f, tb ? SHAPE(4, 2, 3) : SHAPE(4, 3, 2));
	in[2] = fd_ints(f, SHAPE(6), idx[i / 2]);
	in[0] = fd_op(f, OP_EXPERT_MATMUL, 3, in, &a);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

/* Rows in other places; one is left out, two places are empty. */
static void
build_take_rows(struct fd *f, int i)
{
	static const int at[] = { 2, 4, 0, 3, 4 }, back[] = { 2, 5, 0, 3 };
	ValId in[3] = { fd_param(f, i ? SHAPE(4, 2, 3) : SHAPE(4)) };

	in[1] = fd_ints(f, SHAPE(5), at);
	in[2] = fd_ints(f, SHAPE(4), back);
	in[0] = fd_op(f, OP_TAKE_ROWS, 3, in, NULL);
	fd_loss(f, fd_2(f, OP_MUL, in[0], in[0]));
}

/* x x, x x^T: both operands are the same value. */
static void
build_matmul_self(struct fd *f, int i)
{
	Attr a = attr_default(OP_MATMUL);
	ValId x = fd_param(f, SHAPE(3, 3));

	a.MATMUL.ta = i & 1;
	a.MATMUL.tb = i >> 1;
	if (i == 4) {
		a.MATMUL.tb = 0;
		x = fd_1(f, OP_SIN, x);
	}
	fd_loss(f, fd_op(f, OP_MATMUL, 2, (ValId[]){ x, x }, &a));
}

/* One input of three projections: their adjoints accumulate in place. */
static void
build_projections(struct fd *f, int i)
{
	ValId x = fd_1(f, OP_TANH, fd_param(f, SHAPE(3, 4))), y = x;

	(void)i;
	for (int k = 0; k < 3; k++) {
		ValId z = fd_2(f, OP_MATMUL, x, fd_param(f, SHAPE(4, 4)));

		y = fd_2(f, OP_MUL, y, fd_1(f, OP_SIN, z));
	}
	fd_loss(f, y);
}

/* ---- rows ---- */

static void
build_softmax(struct fd *f, int i)
{
	Op op = i % 2 ? OP_LOG_SOFTMAX : OP_SOFTMAX;
	Attr a = attr_default(op);
	ValId x = fd_param_in(f, SHAPE(2, 3, 4), -2, 2);

	a.SOFTMAX.axis = i / 2 - 1;
	fd_loss(f, fd_op(f, op, 1, &x, &a));
}

static void
build_det(struct fd *f, int i)
{
	ValId x = fd_param_in(f, i ? SHAPE(2, 3, 3) : SHAPE(4, 4), -2, 2);

	fd_loss(f, fd_1(f, OP_DET, x));
}

static void
build_layernorm(struct fd *f, int i)
{
	Attr a = attr_default(OP_LAYERNORM);
	ValId in[3];
	Shape row = i % 3 == 1 ? SHAPE(3, 4) : SHAPE(4);

	a.LAYERNORM.axis = i % 3 == 0 ? -1 : i % 3 == 1 ? 1 : 2;
	a.LAYERNORM.eps = 1e-2;
	in[0] = i == 3 ? fd_input(f, SHAPE(2, 3, 4))
	               : fd_param(f, SHAPE(2, 3, 4));
	in[1] = i == 6 ? fd_input(f, row) : fd_param(f, row);
	if (i != 5)
		in[2] = i == 7 ? fd_input(f, row) : fd_param(f, row);
	fd_loss(f, fd_op(f, OP_LAYERNORM, i == 5 ? 2 : 3, in, &a));
}

static void
build_rmsnorm(struct fd *f, int i)
{
	Attr a = attr_default(OP_RMSNORM);
	Shape row = i % 2 ? SHAPE(3, 4) : SHAPE(4);
	ValId in[2];

	a.RMSNORM.axis = i % 2 ? -2 : -1;
	a.RMSNORM.eps = 1e-2;
	in[0] = i == 2 ? fd_input(f, SHAPE(2, 3, 4))
	               : fd_param(f, SHAPE(2, 3, 4));
	in[1] = i == 3 ? fd_input(f, row) : fd_param(f, row);
	fd_loss(f, fd_op(f, OP_RMSNORM, 2, in, &a));
}

/* Labels, some of them ignored; two shapes; weights; three reductions. */
static void
build_sce(struct fd *f, int i)
{
	static const int labels[] = { 2, -100, 0, 1, -100, 3 };
	static const int all[] = { 2, 1, 0, 1, 3, 3 };
	Op op = i / 12 ? OP_NLL : OP_SCE;
	Attr a = attr_default(op);
	bool deep = i % 2, weighted = i / 2 % 2;
	ValId in[3];

	a.SCE.reduction = i / 4 % 3;
	if (!weighted)
		a.SCE.ignore = -100;
	in[0] = fd_param_in(f, deep ? SHAPE(2, 4, 3) : SHAPE(6, 4), -2, 2);
	in[1] = fd_ints(f, deep ? SHAPE(2, 3) : SHAPE(6),
	                weighted ? all : labels);
	in[2] = fd_input(f, SHAPE(4));
	fd_loss(f, fd_op(f, op, weighted ? 3 : 2, in, &a));
}

/* ---- attention ---- */

static void
build_attention(struct fd *f, int i)
{
	static const int mask[] = { 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1,
		1, 1, 0, 1, 0, 1 };
	int64_t h = i == 1 ? 4 : 2, e = i == 2 ? 3 : 2, s = i == 3 ? 5 : 4;
	Attr a = attr_default(OP_ATTENTION);
	ValId in[4] = { fd_param(f, SHAPE(2, h, 4, 2)),
		fd_param(f, SHAPE(2, 2, s, 2)),
		fd_param(f, SHAPE(2, 2, s, e)), 0 };
	int nin = 3;

	a.ATTENTION.scale = .7;
	a.ATTENTION.causal = i == 4 || i == 5 || i == 8;
	if (i == 5 || i == 6) {
		a.ATTENTION.ratio = .3;
		a.ATTENTION.stream = 2;
	}
	if (i == 6 || i == 8)           /* query 1 sees no key */
		in[nin++] = fd_bools(f, SHAPE(4, 4), mask);
	if (i == 7)
		in[nin++] = fd_input(f, SHAPE(2, 1, 1, 4));
	if (i == 9)                     /* keys alone are trained */
		f->g->val[in[0]].kind = f->g->val[in[2]].kind = V_INPUT;
	fd_loss(f, fd_op(f, OP_ATTENTION, nin, in, &a));
}

/* ---- bookkeeping ---- */

/* One adjoint that is the gradient of two parameters; a parameter used twice;
 * a residual; a gradient divided among micro-batches. */
static void
build_shared(struct fd *f, int i)
{
	ValId p = fd_param(f, SHAPE(2, 3)), q = fd_param(f, SHAPE(2, 3)), x;

	x = fd_2(f, OP_ADD, p, q);
	if (i == 1)
		x = fd_2(f, OP_ADD, x, p);
	if (i == 2)
		x = fd_2(f, OP_ADD, x, fd_1(f, OP_TANH, x));
	if (i == 3) {
		f->grad_accum = 4;
		x = fd_2(f, OP_MUL, x, p);
	}
	fd_loss(f, x);
}

/* ---- random graphs ---- */

static int
pick(struct fd *f, int n)
{
	return (int)fd_random(f, 0, n - 1e-9);
}

static void
build_gather_nd(struct fd *f, int i)
{
	static const int idx[] = { 0, 1, -1, 2, 0, 1, 1, 0, 1, 2, 0, 0 };
	Attr a = attr_default(OP_GATHER_ND);
	ValId in[2] = { fd_param(f, SHAPE(2, 3, 2)), 0 };

	a.GATHER_ND.batch = i == 2 ? 1 : i == 3 ? 2 : 0;
	in[1] = i == 0 ? fd_ints(f, SHAPE(3, 2), idx)
	      : i == 1 ? fd_ints(f, SHAPE(2, 2, 1), (int[]){ 1, 0, 1, 1 })
	      : i == 2 ? fd_ints(f, SHAPE(2, 3, 1), (int[]){ 0, 2, 2, 1, 1, 1 })
	      : fd_ints(f, SHAPE(2, 3, 1), (int[]){ 0, 1, 1, 1, 0, 0 });
	fd_loss(f, fd_op(f, OP_GATHER_ND, 2, in, &a));
}

/* Twice the same place only where it is added to. */
static void
build_scatter_nd(struct fd *f, int i)
{
	Attr a = attr_default(OP_SCATTER_ND);
	ValId in[3] = { fd_param(f, SHAPE(2, 3, 2)), 0, 0 };

	a.SCATTER_ND.add = i < 4 ? i & 1 : 1 + i % 4;
	if (i / 2 == 0 || i >= 4) {
		bool twice = a.SCATTER_ND.add;

		in[1] = fd_ints(f, SHAPE(2, 2), (int[]){ 0, 1, twice ? 0 : 1,
		                                         twice ? 1 : -1 });
		in[2] = fd_param(f, SHAPE(2, 2));
	} else {
		in[1] = fd_ints(f, SHAPE(1, 1), (int[]){ 1 });
		in[2] = fd_param(f, SHAPE(1, 3, 2));
	}
	fd_loss(f, fd_op(f, OP_SCATTER_ND, 3, in, &a));
}

static void
build_topk(struct fd *f, int i)
{
	static const double x[] = { .1, -.9, .6, .35, -.2, .9, -.55, .8, .5,
	                            -.4, .2, -.7 };
	Attr a = attr_default(OP_TOPK);
	ValId v = fd_param_at(f, SHAPE(2, 3, 2), x);

	a.TOPK.axis = i & 1 ? 1 : -1;
	a.TOPK.largest = i >> 1 & 1;
	a.TOPK.k = 1 + (i >> 2);
	fd_loss(f, fd_op(f, OP_TOPK, 1, &v, &a));
}

static void
build_cumsum(struct fd *f, int i)
{
	Attr a = attr_default(OP_CUMSUM);
	ValId v = fd_param(f, SHAPE(2, 4, 3));

	a.CUMSUM.axis = 1 + (i & 1);
	a.CUMSUM.exclusive = i >> 1 & 1;
	a.CUMSUM.reverse = i >> 2 & 1;
	fd_loss(f, fd_op(f, OP_CUMSUM, 1, &v, &a));
}

/* No zeros, one and two of them in a row. */
static void
build_cumprod(struct fd *f, int i)
{
	double x[] = { .7, -.9, 1.6, .4, -1.2, .9, .5, 1.1 };
	Attr a = attr_default(OP_CUMSUM);
	ValId v;

	if (i / 4 > 0)
		x[1] = x[4] = 0;
	if (i / 4 > 1)
		x[2] = x[7] = 0;
	v = fd_param_at(f, SHAPE(2, 4), x);
	a.CUMSUM.product = 1;
	a.CUMSUM.axis = 1;
	a.CUMSUM.exclusive = i & 1;
	a.CUMSUM.reverse = i >> 1 & 1;
	fd_loss(f, fd_op(f, OP_CUMSUM, 1, &v, &a));
}

/* No zeros, one and two of them. */
static void
build_reduce_prod(struct fd *f, int i)
{
	double x[] = { .7, -.9, 1.6, .4, -1.2, .9, .5, 1.1 };
	Attr a = attr_default(OP_REDUCE_PROD);
	ValId v;

	if (i % 3 > 0)
		x[1] = 0;
	if (i % 3 > 1)
		x[3] = 0;
	v = fd_param_at(f, SHAPE(2, 4), x);
	if (i / 3) {
		a.REDUCE_PROD.axes = LIST(1);
		a.REDUCE_PROD.keepdims = 0;
	}
	fd_loss(f, fd_op(f, OP_REDUCE_PROD, 1, &v, &a));
}

/* Both halves of x, changed, in another order. */
static ValId
halves(struct fd *f, ValId x)
{
	ValId in[2];
	Attr a = attr_default(OP_CONCAT);

	in[1] = fd_slice(f, x, LIST(0, 0), SHAPE(2, 2), LIST(1, 1));
	in[0] = fd_slice(f, x, LIST(0, 2), SHAPE(2, 2), LIST(1, 1));
	in[0] = fd_1(f, OP_NEG, in[0]);
	a.CONCAT.axis = 1;
	return fd_op(f, OP_CONCAT, 2, in, &a);
}

static ValId
row_mean(struct fd *f, ValId x)
{
	Attr a = attr_default(OP_REDUCE_MEAN);

	a.REDUCE_MEAN.axes = LIST(1);
	return fd_op(f, OP_REDUCE_MEAN, 1, &x, &a);
}

/* A new value of shape [2,4] from two others. */
static ValId
random_node(struct fd *f, ValId x, ValId y)
{
	switch (pick(f, 9)) {
	case 0: return fd_2(f, OP_ADD, x, y);
	case 1: return fd_2(f, OP_MUL, fd_1(f, OP_TANH, x), y);
	case 2: return fd_2(f, OP_SUB, x, row_mean(f, y));
	case 3: return fd_1(f, OP_SOFTMAX, x);
	case 4: return fd_2(f, OP_MATMUL, fd_1(f, OP_SIN, x),
	                    fd_param(f, SHAPE(4, 4)));
	case 5: return halves(f, x);
	case 6: return fd_2(f, OP_ADD, x, fd_param(f, SHAPE(4)));
	case 7: return fd_2(f, OP_ADD, halves(f, x), halves(f, y));
	default: return fd_1(f, OP_SIGMOID, x);
	}
}

/* Sums, slices and products in any combination; what is not used stays
 * outside the backward graph. */
static void
build_random(struct fd *f, int i)
{
	enum { NODES = 12 };
	ValId v[NODES + 2] = { fd_param(f, SHAPE(2, 4)),
		fd_input(f, SHAPE(2, 4)) };

	(void)i;
	for (int k = 2; k < NODES + 2; k++) {
		ValId x = v[pick(f, k)], y = v[pick(f, k)];

		v[k] = random_node(f, x, y);
	}
	fd_loss(f, fd_2(f, OP_ADD, v[NODES + 1], fd_2(f, OP_MUL, v[0],
	                                              v[NODES])));
}

const struct fd_case fd_cases[] = {
	{ "unary", build_unary, 4 * COUNT(unary) },
	{ "gelu_tanh", build_gelu_tanh, 4 },
	{ "binary", build_binary, 7 * COUNT(binary) },
	{ "mod", build_mod, 8 },
	{ "binary_self", build_binary_self, 21 },
	{ "pow_number", build_pow_number, 16 },
	{ "pow_list", build_pow_list, 2 },
	{ "where", build_where, 5 },
	{ "cast", build_cast, 2 },
	{ "dropout", build_dropout, 2 },
	{ "drop path", build_drop_path, 2 },
	{ "reshape", build_reshape, 3 },
	{ "expand", build_expand, 3 },
	{ "transpose", build_transpose, 3 },
	{ "slice", build_slice, 7 },
	{ "slices", build_slices, 18 },
	{ "slices_reversed", build_slices_reversed, 2 },
	{ "slices_crossed", build_slices_crossed, 1 },
	{ "concat", build_concat, 6 },
	{ "pad", build_pad, 12 },
	{ "trilu", build_trilu, 6 },
	{ "gather", build_gather, 12 },
	{ "scatter_add", build_scatter_add, 4 },
	{ "gather_elements", build_gather_elements, 3 },
	{ "scatter_elements", build_scatter_elements, 10 },
	{ "gather_nd", build_gather_nd, 4 },
	{ "scatter_nd", build_scatter_nd, 8 },
	{ "topk", build_topk, 8 },
	{ "cumsum", build_cumsum, 8 },
	{ "cumprod", build_cumprod, 12 },
	{ "reduce_prod", build_reduce_prod, 6 },
	{ "tied", build_tied, 2 },
	{ "reduce", build_reduce, 20 },
	{ "matmul", build_matmul, 32 },
	{ "matmul_batch", build_matmul_batch, 24 },
	{ "matmul_self", build_matmul_self, 5 },
	{ "experts", build_experts, 6 },
	{ "take_rows", build_take_rows, 2 },
	{ "projections", build_projections, 1 },
	{ "softmax", build_softmax, 8 },
	{ "det", build_det, 2 },
	{ "layernorm", build_layernorm, 9 },
	{ "rmsnorm", build_rmsnorm, 4 },
	{ "sce", build_sce, 24 },
	{ "attention", build_attention, 10 },
	{ "conv", fd_build_conv, 10 },
	{ "conv_dx", fd_build_conv_dx, 10 },
	{ "batchnorm", fd_build_batchnorm, 8 },
	{ "pool", fd_build_pool, 16 },
	{ "resize", fd_build_resize, 42 },
	{ "grid_sample", fd_build_grid_sample, 30 },
	{ "shared", build_shared, 4 },
	{ "random", build_random, 200 },
	{ NULL, NULL, 0 },
};
