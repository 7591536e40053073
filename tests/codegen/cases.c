/* Cases of element-wise ops, views, copies, indexing and reductions. */
#include "tests/codegen/harness.h"

#include <stdio.h>
#include <string.h>

void cases_elementwise(struct setup *);

/* ---- element-wise, one by one ---- */

/* Ranges where each op is defined and smooth enough to compare. */
static void
range_of(Op op, double *lo, double *hi)
{
	*lo = -3;
	*hi = 3;
	if (op == OP_LOG || op == OP_SQRT || op == OP_RECIP) {
		*lo = 0.05;
		*hi = 9;
	}
}

static bool
is_unary_float(Op op)
{
	static const Op list[] = { OP_NEG, OP_ABS, OP_SIGN, OP_EXP, OP_LOG,
		OP_SQRT, OP_RECIP, OP_SIN, OP_COS, OP_ATAN, OP_ASINH, OP_TANH,
		OP_SIGMOID, OP_ERF, OP_RELU, OP_SOFTPLUS, OP_FLOOR, OP_CEIL, OP_ROUND,
		OP_GELU, OP_SILU, OP_ISNAN, OP_COPY };

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (list[i] == op)
			return true;
	return false;
}

static void
unary(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_F64, DT_BF16, DT_F16 };
	double lo, hi;

	for (Op op = OP_NONE + 1; op < OP_COUNT; op++) {
		if (!is_unary_float(op))
			continue;
		range_of(op, &lo, &hi);
		for (size_t k = 0; k < 4; k++) {
			case_begin(t, "unary");
			APPLY(t, op, NULL, given(t, types[k], SHAPE(3, 37), lo,
			                         hi));
		}
		case_begin(t, "unary, odd sizes");
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(1), lo, hi));
		APPLY(t, op, NULL, given(t, DT_F32, shape_scalar(), lo, hi));
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(0, 4), lo, hi));
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(40007), lo, hi));
	}
	for (int i = 0; i < 4; i++) {
		static const Op op[] = { OP_NEG, OP_ABS, OP_SIGN, OP_RELU };

		case_begin(t, "unary on integers");
		APPLY(t, op[i], NULL, given(t, DT_I64, SHAPE(5, 7), -9, 9));
		APPLY(t, op[i], NULL, given(t, DT_I32, SHAPE(5, 7), -9, 9));
		APPLY(t, op[i], NULL, given(t, DT_I8, SHAPE(5, 7), -9, 9));
		if (op[i] != OP_NEG)
			APPLY(t, op[i], NULL, given(t, DT_U8, SHAPE(5), 0, 9));
	}
	case_begin(t, "bits");
	for (Op op = OP_BIT_AND; op <= OP_SHR; op++) {
		APPLY(t, op, NULL, given(t, DT_U8, SHAPE(90), 0, 255),
		      given(t, DT_U8, SHAPE(90), 0, 10));
		APPLY(t, op, NULL, given(t, DT_U32, SHAPE(9, 7), 0, 1 << 20),
		      given(t, DT_U32, SHAPE(7), 0, 40));
		if (op < OP_SHL)
			APPLY(t, op, NULL, given(t, DT_I32, SHAPE(9, 7), -99,
			      99), given(t, DT_I32, SHAPE(9, 1), -99, 99));
	}
	APPLY(t, OP_BIT_NOT, NULL, given(t, DT_U16, SHAPE(50), 0, 65535));
	APPLY(t, OP_BIT_NOT, NULL, given(t, DT_I32, SHAPE(50), -99, 99));
	case_begin(t, "not");
	APPLY(t, OP_NOT, NULL, given(t, DT_BOOL, SHAPE(50), 0, 2));
}

static void
unary_attributes(struct setup *t)
{
	Attr a = attr_default(OP_GELU);

	case_begin(t, "gelu tanh");
	a.GELU.tanh = 1;
	APPLY(t, OP_GELU, &a, given(t, DT_F32, SHAPE(200), -6, 6));
	for (int tanh = 0; tanh < 2; tanh++) {
		case_begin(t, "gelu_grad");
		a = attr_default(OP_GELU_GRAD);
		a.GELU_GRAD.tanh = tanh;
		APPLY(t, OP_GELU_GRAD, &a, given(t, DT_F32, SHAPE(4, 50), -5,
		      5), given(t, DT_F32, SHAPE(4, 50), -1, 1));
	}
	case_begin(t, "shield");
	APPLY(t, OP_SHIELD, NULL, given(t, DT_F32, SHAPE(4, 50), -1, 1),
	      given(t, DT_F32, SHAPE(4, 50), -1, 1));
	APPLY(t, OP_SHIELD, NULL, given(t, DT_F32, SHAPE(4, 50), 0, 0),
	      given(t, DT_F32, SHAPE(4, 50), 1, 2));
	case_begin(t, "silu_grad");
	APPLY(t, OP_SILU_GRAD, NULL, given(t, DT_F32, SHAPE(4, 50), -8, 8),
	      given(t, DT_F32, SHAPE(4, 50), -1, 1));
}

static void
casts(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_F64, DT_F16, DT_BF16,
		DT_I64, DT_I32, DT_I16, DT_I8, DT_U64, DT_U32, DT_U16, DT_U8,
		DT_BOOL };
	Attr a = attr_default(OP_CAST);

	for (size_t i = 0; i < 13; i++)
		for (size_t k = 0; k < 13; k++) {
			case_begin(t, "cast");
			a.CAST.to = types[k];
			APPLY(t, OP_CAST, &a, given(t, types[i], SHAPE(33), 0,
			      types[i] == DT_BOOL ? 2 : 9));
			if (dtype_info[types[i]].cls == 'f' &&
			    strchr("fi", dtype_info[types[k]].cls))
				APPLY(t, OP_CAST, &a, given(t, types[i],
				      SHAPE(33), -9, 9));
		}
}

static void
binary(struct setup *t)
{
	static const Op arith[] = { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX,
		OP_MIN, OP_EQ, OP_LT, OP_LE, OP_GT, OP_GE };

	for (size_t i = 0; i < sizeof arith / sizeof *arith; i++) {
		Op op = arith[i];

		case_begin(t, "binary");
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(2, 3, 17), -2, 2),
		      given(t, DT_F32, SHAPE(2, 3, 17), 0.5, 2));
		APPLY(t, op, NULL, given(t, DT_F64, SHAPE(17), -2, 2),
		      given(t, DT_F64, SHAPE(17), 0.5, 2));
		APPLY(t, op, NULL, given(t, DT_BF16, SHAPE(17), -2, 2),
		      given(t, DT_BF16, SHAPE(17), 0.5, 2));
		case_begin(t, "binary, integers");
		APPLY(t, op, NULL, given(t, DT_I64, SHAPE(60), -20, 20),
		      given(t, DT_I64, SHAPE(60), 1, 7));
		APPLY(t, op, NULL, given(t, DT_I32, SHAPE(60), -20, 20),
		      given(t, DT_I32, SHAPE(60), -7, -1));
		case_begin(t, "binary, broadcast");
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(4, 1, 33), -2, 2),
		      given(t, DT_F32, SHAPE(5, 1), 0.5, 2));
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(64, 1100), -2, 2),
		      given(t, DT_F32, SHAPE(1100), 0.5, 2));
		APPLY(t, op, NULL, given(t, DT_F32, shape_scalar(), -2, 2),
		      given(t, DT_F32, SHAPE(3, 9), 0.5, 2));
		APPLY(t, op, NULL, given(t, DT_F32, SHAPE(3, 9), -2, 2),
		      val_scalar(t->g, DT_F32, -1.25));
	}
	for (int i = 0; i < 3; i++) {
		static const Op op[] = { OP_AND, OP_OR, OP_XOR };

		case_begin(t, "logic");
		APPLY(t, op[i], NULL, given(t, DT_BOOL, SHAPE(2, 30), 0, 2),
		      given(t, DT_BOOL, SHAPE(30), 0, 2));
	}
}

static void
powers(struct setup *t)
{
	static const double exponent[] = { 2, 3, 1, -1, 0.5, -0.5, 2.5, 0 };

	for (int i = 0; i < 8; i++) {
		case_begin(t, "pow of a constant");
		APPLY(t, OP_POW, NULL, given(t, DT_F32, SHAPE(50), 0.1, 3),
		      val_scalar(t->g, DT_F32, exponent[i]));
		APPLY(t, OP_POW, NULL, given(t, DT_F64, SHAPE(50), 0.1, 3),
		      val_scalar(t->g, DT_F64, exponent[i]));
	}
	case_begin(t, "pow");
	APPLY(t, OP_POW, NULL, given(t, DT_F32, SHAPE(50), 0.1, 3),
	      given(t, DT_F32, SHAPE(50), -2, 2));
	APPLY(t, OP_POW, NULL, given(t, DT_I64, SHAPE(50), -3, 4),
	      given(t, DT_I64, SHAPE(50), 0, 5));
	for (int fmod = 0; fmod < 2; fmod++) {
		Attr a = attr_default(OP_MOD);

		a.MOD.fmod = fmod;
		case_begin(t, "mod");
		APPLY(t, OP_MOD, &a, given(t, DT_I64, SHAPE(99), -20, 20),
		      given(t, DT_I64, SHAPE(99), 1, 7));
		APPLY(t, OP_MOD, &a, given(t, DT_I32, SHAPE(99), -20, 20),
		      given(t, DT_I32, SHAPE(99), -7, -1));
		APPLY(t, OP_MOD, &a, given(t, DT_F32, SHAPE(99), -20, 20),
		      given(t, DT_F32, SHAPE(99), 1, 7));
		APPLY(t, OP_MOD, &a, given(t, DT_F32, SHAPE(99), -20, 20),
		      given(t, DT_F32, SHAPE(99), -7, -1));
	}
}

static void
wheres(struct setup *t)
{
	case_begin(t, "where");
	APPLY(t, OP_WHERE, NULL, given(t, DT_BOOL, SHAPE(1, 1, 5, 5), 0, 2),
	      given(t, DT_F32, SHAPE(2, 3, 5, 5), -1, 1),
	      val_scalar(t->g, DT_F32, -3.4028234663852886e38));
	APPLY(t, OP_WHERE, NULL, given(t, DT_BOOL, SHAPE(40), 0, 2),
	      given(t, DT_I64, SHAPE(40), -9, 9), given(t, DT_I64,
	      SHAPE(40), -9, 9));
	APPLY(t, OP_WHERE, NULL, given(t, DT_BOOL, SHAPE(5, 1), 0, 2),
	      given(t, DT_BF16, SHAPE(7), -9, 9), given(t, DT_BF16,
	      SHAPE(5, 7), -9, 9));
}

static void
dropouts(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_F64, DT_F16, DT_BF16 };
	Attr a = attr_default(OP_DROPOUT);

	a.DROPOUT.ratio = 0.3;
	a.DROPOUT.stream = 5;
	case_begin(t, "dropout");
	APPLY(t, OP_DROPOUT, &a, given(t, DT_F32, SHAPE(7, 13), 1, 2));
	a.DROPOUT.stream = 6;
	APPLY(t, OP_DROPOUT, &a, given(t, DT_F32, SHAPE(3, 5000), 1, 2));
	APPLY(t, OP_DROPOUT, &a, given(t, DT_F32, SHAPE(70001), 1, 2));
	APPLY(t, OP_DROPOUT, &a, given(t, DT_F32, SHAPE(3, 4, 30, 31), 1, 2));
	case_begin(t, "bernoulli");
	a = attr_default(OP_BERNOULLI);
	a.BERNOULLI.stream = 11;
	for (size_t i = 0; i < 4; i++) {
		APPLY(t, OP_BERNOULLI, &a, given(t, types[i], SHAPE(7, 13), 0,
		                                 1));
		APPLY(t, OP_BERNOULLI, &a, given(t, types[i], SHAPE(3, 5000),
		                                 0, 1));
	}
}

/* ---- loops ---- */

static struct scalar_op
micro(Op op, DType dt, int narg, int a, int b)
{
	return (struct scalar_op){ .op = op, .dt = dt, .narg = narg,
		.arg = { a, b }, .attr = attr_default(op) };
}

static Node *
loop(struct setup *t, int nin, const ValId *in, int nmicro,
     const struct scalar_op *m, int nout, const int *result, Shape shape)
{
	Node *n = node_new(t->g, OP_LOOP, nin, in, nout, 0);

	n->body = arena_alloc(t->g->arena, sizeof *n->body);
	n->body->nop = nmicro;
	n->body->op = arena_copy(t->g->arena, m, (size_t)nmicro *
	                            sizeof *m);
	n->body->result = arena_copy(t->g->arena, result, (size_t)nout *
	                             sizeof *result);
	for (int i = 0; i < nout; i++) {
		t->g->val[n->out[i]].dt = m[result[i]].dt;
		t->g->val[n->out[i]].shape = shape;
		t->g->val[n->out[i]].output = true;
	}
	t->name_of[node_id(t->g, n)] = t->name;
	return n;
}

static void
loops(struct setup *t)
{
	ValId x = given(t, DT_F32, SHAPE(4, 6, 50), -1, 1), in[3];
	ValId bias = given(t, DT_F32, SHAPE(50), -1, 1);
	struct scalar_op m[5];

	case_begin(t, "loop: bias, gelu, dropout, residual, two results");
	m[0] = micro(OP_ADD, DT_F32, 2, 0, 1);
	m[1] = micro(OP_GELU, DT_F32, 1, ~0, 0);
	m[2] = micro(OP_DROPOUT, DT_F32, 1, ~1, 0);
	m[2].attr.DROPOUT.ratio = 0.1;
	m[2].attr.DROPOUT.stream = 9;
	m[3] = micro(OP_ADD, DT_F32, 2, ~2, 2);
	m[4] = micro(OP_LT, DT_BOOL, 2, ~3, 0);
	in[0] = x, in[1] = bias, in[2] = given(t, DT_F32, SHAPE(4, 6, 50), -1,
	                                       1);
	loop(t, 3, in, 5, m, 3, (const int[]){ 3, 1, 4 }, SHAPE(4, 6, 50));

	case_begin(t, "loop in place, over a transposed operand");
	in[0] = APPLY(t, OP_COPY, NULL, x)->out[0];
	in[1] = view(t, OP_TRANSPOSE, &(Attr){ .TRANSPOSE = { .perm =
		{ 3, { 1, 2, 0 } } } }, given(t, DT_F32, SHAPE(50, 4, 6), -1,
		1));
	m[0] = micro(OP_MUL, DT_F32, 2, 0, 1);
	in_place(t, loop(t, 2, in, 1, m, 1, (const int[]){ 0 },
	         SHAPE(4, 6, 50)), 0, in[0]);
	/* the copy's own value is gone */
	t->g->val[in[0]].output = false;

	case_begin(t, "loop without a full operand");
	in[0] = given(t, DT_F32, SHAPE(6, 1), -1, 1);
	m[0] = micro(OP_EXP, DT_F32, 1, 0, 0);
	m[1] = micro(OP_NEG, DT_F32, 1, ~0, 0);
	loop(t, 1, in, 2, m, 1, (const int[]){ 1 }, SHAPE(4, 6, 5));

	case_begin(t, "loop of several types");
	in[0] = given(t, DT_I64, SHAPE(70), -5, 5);
	m[0] = micro(OP_CAST, DT_F32, 1, 0, 0);
	m[0].attr.CAST.to = DT_F32;
	m[1] = micro(OP_EXP, DT_F32, 1, ~0, 0);
	m[2] = micro(OP_CAST, DT_BF16, 1, ~1, 0);
	m[2].attr.CAST.to = DT_BF16;
	loop(t, 1, in, 3, m, 2, (const int[]){ 2, 1 }, SHAPE(70));
}

/* ---- views and copies ---- */

static void
copies(struct setup *t)
{
	Attr perm = list_attr(OP_TRANSPOSE, 4, (int64_t[]){ 0, 2, 1, 3 });
	Attr flip = list_attr(OP_TRANSPOSE, 2, (int64_t[]){ 1, 0 });
	Attr shape = list_attr(OP_RESHAPE, 2, (int64_t[]){ 12, 35 });
	Attr wide = list_attr(OP_EXPAND, 3, (int64_t[]){ 4, 3, 5 });
	Attr cut = attr_default(OP_SLICE);
	ValId x = given(t, DT_F32, SHAPE(3, 4, 5, 7), -1, 1), y;

	case_begin(t, "views carried out");
	APPLY(t, OP_TRANSPOSE, &perm, x);
	APPLY(t, OP_TRANSPOSE, &flip, given(t, DT_I64, SHAPE(90, 70), -9, 9));
	APPLY(t, OP_TRANSPOSE, &flip, given(t, DT_BF16, SHAPE(9, 7), -9, 9));
	APPLY(t, OP_EXPAND, &wide, given(t, DT_F32, SHAPE(3, 1), -1, 1));
	APPLY(t, OP_RESHAPE, &shape, x);
	y = view(t, OP_TRANSPOSE, &perm, x);
	APPLY(t, OP_RESHAPE, &shape, y);
	APPLY(t, OP_COPY, NULL, y);
	cut.SLICE.start = (IntList){ 2, { 1, 8 } };
	cut.SLICE.step = (IntList){ 2, { 2, -3 } };
	case_begin(t, "slices");
	{
		ValId z = given(t, DT_F32, SHAPE(6, 9), -1, 1);
		Node *n = node_new(t->g, OP_SLICE, 1, &z, 1, 0);

		n->attr = cut;
		t->g->val[n->out[0]].dt = DT_F32;
		t->g->val[n->out[0]].shape = SHAPE(3, 3);
		t->name_of[node_id(t->g, n)] = t->name;
	}
	case_begin(t, "concat");
	for (int axis = 0; axis < 3; axis++) {
		Attr a = attr_default(OP_CONCAT);
		int64_t d[3] = { 2, 3, 4 };
		ValId in[6];

		a.CONCAT.axis = axis;
		for (int i = 0; i < 6; i++) {
			/* some alike behind one another */
			d[axis] = i < 3 ? i + 1 : i < 5 ? 3 : 1;
			in[i] = given(t, DT_F32, shape_make(3, d), -1, 1);
		}
		apply(t, OP_CONCAT, &a, 6, in);
	}
	{
		Attr a = attr_default(OP_CONCAT);
		ValId in[2] = { y, given(t, DT_F32, SHAPE(3, 5, 4, 2), 0, 1) };

		a.CONCAT.axis = 3;
		apply(t, OP_CONCAT, &a, 2, in);
	}
}

/* Views whose first element is not their lowest, read by loops and copies. */
static void
backwards(struct setup *t)
{
	static const int64_t start[][2] = { { 5, 0 }, { 0, 8 }, { 4, 7 } };
	static const int64_t step[][2] = { { -1, 1 }, { 1, -1 }, { -2, -3 } };
	static const int64_t dim[][2] = { { 6, 9 }, { 6, 9 }, { 3, 3 } };

	case_begin(t, "backwards");
	for (int i = 0; i < 3; i++) {
		ValId x = given(t, DT_F32, SHAPE(6, 9), -1, 1), y;
		Node *n = node_new(t->g, OP_SLICE, 1, &x, 1, 0);
		Attr turn = list_attr(OP_TRANSPOSE, 2, (int64_t[]){ 1, 0 });
		Attr join = attr_default(OP_CONCAT);

		memcpy(n->attr.SLICE.start.v, start[i], sizeof start[i]);
		memcpy(n->attr.SLICE.step.v, step[i], sizeof step[i]);
		n->attr.SLICE.start.n = n->attr.SLICE.step.n = 2;
		y = n->out[0];
		t->name_of[node_id(t->g, n)] = t->name;
		slice_view(t, n, shape_make(2, dim[i]));
		APPLY(t, OP_COPY, NULL, y);
		APPLY(t, OP_COPY, NULL, view(t, OP_TRANSPOSE, &turn, y));
		APPLY(t, OP_MUL, NULL, y, given(t, DT_F32,
		      shape_make(2, dim[i]), -1, 1));
		APPLY(t, OP_TANH, NULL, y);
		join.CONCAT.axis = 1;
		apply(t, OP_CONCAT, &join, 2, (ValId[]){ y, y });
	}
}

static void
pads(struct setup *t)
{
	for (int mode = 0; mode < 4; mode++)
		for (int k = 0; k < 2; k++) {
			Attr a = attr_default(OP_PAD);

			a.PAD.begin = (IntList){ 2, { 2, k ? -1 : 0 } };
			a.PAD.end = (IntList){ 2, { 1, 3 } };
			a.PAD.mode = mode;
			a.PAD.value = -1.5;
			if (k && mode)
				continue;
			case_begin(t, "pad");
			APPLY(t, OP_PAD, &a, given(t, DT_F32, SHAPE(4, 5), -1,
			                           1));
			APPLY(t, OP_PAD, &a, given(t, DT_I64, SHAPE(4, 5), -9,
			                           9));
		}
	for (int upper = 0; upper < 2; upper++)
		for (int k = -2; k <= 2; k += 2) {
			Attr a = attr_default(OP_TRILU);

			a.TRILU.upper = upper;
			a.TRILU.k = k;
			case_begin(t, "trilu");
			APPLY(t, OP_TRILU, &a, given(t, DT_F32, SHAPE(2, 5, 4),
			                             -1, 1));
			APPLY(t, OP_TRILU, &a, given(t, DT_BOOL, SHAPE(3, 7),
			                             0, 2));
		}
	for (int i = 0; i < 8; i++) {
		static const DType types[] = { DT_F32, DT_F64, DT_F16,
			DT_BF16 };
		Attr a = list_attr(OP_RANDOM, 2, (int64_t[]){ 3, 20000 });

		case_begin(t, "random");
		a.RANDOM.dt = types[i % 4];
		a.RANDOM.kind = i / 4;
		a.RANDOM.stream = 20 + i;
		apply(t, OP_RANDOM, &a, 0, NULL);
		a.RANDOM.a = -3;
		a.RANDOM.b = i / 4 ? 0.5 : 4;
		a.RANDOM.shape.n = 1;
		apply(t, OP_RANDOM, &a, 0, NULL);
		a.RANDOM.shape.n = 0;
		apply(t, OP_RANDOM, &a, 0, NULL);
	}
	case_begin(t, "fill");
	{
		Attr a = list_attr(OP_FILL, 2, (int64_t[]){ 300, 200 });

		a.FILL.value = 0.125;
		apply(t, OP_FILL, &a, 0, NULL);
		a.FILL.shape.n = 0;
		apply(t, OP_FILL, &a, 0, NULL);
	}
	case_begin(t, "loss_scale");
	{
		Attr a = attr_default(OP_LOSS_SCALE);

		apply(t, OP_LOSS_SCALE, &a, 0, NULL);
		a.LOSS_SCALE.value = 1 / 3.;
		apply(t, OP_LOSS_SCALE, &a, 0, NULL);
	}
	case_begin(t, "share");
	apply(t, OP_SHARE, NULL, 0, NULL);
}

/* ---- indexing ---- */

static void
selections(struct setup *t)
{
	static const DType types[] = { DT_BOOL, DT_I64, DT_U8, DT_F32, DT_BF16,
		DT_F16, DT_F64 };

	for (int i = 0; i < 14; i++) {
		DType dt = types[i % 7];
		double lo = dtype_info[dt].cls == 'f' ? -1 : 0;
		ValId x = given(t, dt, SHAPE(5, 3, 7), lo, i < 7 ? 2 : 1);

		/* in the second round there is nothing to find */
		if (lo < 0)
			x = APPLY(t, OP_MAX, NULL, x,
			          val_scalar(t->g, dt, i < 7 ? 0 : 3))->out[0];
		if (lo < 0 && i >= 7)
			x = APPLY(t, OP_SUB, NULL, x, x)->out[0];
		for (int compact = 0; compact < 2; compact++) {
			Attr a = attr_default(OP_SELECTED);

			a.SELECTED.compact = compact;
			case_begin(t, "selected");
			APPLY(t, OP_SELECTED, &a, x);
		}
	}
}

static void
gathers(struct setup *t)
{
	for (int axis = 0; axis < 3; axis++)
		for (int k = 0; k < 2; k++) {
			Attr a = attr_default(OP_GATHER);
			Attr b = attr_default(OP_GATHER_ELEMENTS);
			Attr c = attr_default(OP_SCATTER_ELEMENTS);
			DType dt = k ? DT_I32 : DT_I64;

			a.GATHER.axis = b.GATHER_ELEMENTS.axis = axis;
			c.SCATTER_ELEMENTS.axis = axis;
			case_begin(t, "gather");
			APPLY(t, OP_GATHER, &a, given(t, DT_F32,
			      SHAPE(4, 5, 6), -1, 1), given(t, dt, SHAPE(2, 3),
			      -4, 4));
			APPLY(t, OP_GATHER, &a, given(t, DT_I64,
			      SHAPE(4, 5, 6), -9, 9), given(t, dt,
			      shape_scalar(), 0, 4));
			APPLY(t, OP_GATHER, &a, given(t, DT_F32,
			      SHAPE(9, 8, 70), -1, 1), given(t, dt, SHAPE(60),
			      -8, 8));
			case_begin(t, "gather_elements");
			APPLY(t, OP_GATHER_ELEMENTS, &b, given(t, DT_F32,
			      SHAPE(4, 5, 6), -1, 1), given(t, dt,
			      SHAPE(3, 4, 5), -4, 4));
			case_begin(t, "scatter_elements");
			c.SCATTER_ELEMENTS.add = 1;
			APPLY(t, OP_SCATTER_ELEMENTS, &c, given(t, DT_F32,
			      SHAPE(4, 5, 6), -1, 1), given(t, dt,
			      SHAPE(3, 4, 5), -4, 4), given(t, DT_F32,
			      SHAPE(3, 4, 5), -1, 1));
			APPLY(t, OP_SCATTER_ELEMENTS, &c, given(t, DT_I32,
			      SHAPE(4, 5, 6), -9, 9), given(t, dt,
			      SHAPE(3, 4, 5), -4, 4), given(t, DT_I32,
			      SHAPE(3, 4, 5), -9, 9));
			c.SCATTER_ELEMENTS.add = 0;
			APPLY(t, OP_SCATTER_ELEMENTS, &c, given(t, DT_F32,
			      SHAPE(4, 5, 6), -1, 1), listed(t, dt,
			      SHAPE(1, 1, 1), (int64_t[]){ 2 }), given(t,
			      DT_F32, SHAPE(1, 1, 1), -1, 1));
		}
}

static void
scatters(struct setup *t)
{
	Attr a = attr_default(OP_SCATTER_ADD);
	ValId acc, idx = given(t, DT_I64, SHAPE(60, 17), -9, 9);

	case_begin(t, "scatter_add");
	a.SCATTER_ADD.shape = (IntList){ 2, { 9, 33 } };
	APPLY(t, OP_SCATTER_ADD, &a, idx, given(t, DT_F32, SHAPE(60, 17, 33),
	      -1, 1));
	acc = APPLY(t, OP_COPY, NULL, given(t, DT_F32, SHAPE(9, 33), -1, 1))
	      ->out[0];
	APPLY(t, OP_SCATTER_ADD, &a, idx, given(t, DT_F32, SHAPE(60, 17, 33),
	      -1, 1), acc);
	t->g->val[acc].output = false;
	in_place(t, APPLY(t, OP_SCATTER_ADD, &a, idx, given(t, DT_F32,
	         SHAPE(60, 17, 33), -1, 1), acc), 0, acc);
	a.SCATTER_ADD.axis = 1;
	a.SCATTER_ADD.shape = (IntList){ 3, { 4, 9, 9 } };
	APPLY(t, OP_SCATTER_ADD, &a, given(t, DT_I32, SHAPE(600), 0, 9),
	      given(t, DT_F32, SHAPE(4, 600, 9), -1, 1));

	case_begin(t, "gather_nd, scatter_nd");
	a = attr_default(OP_GATHER_ND);
	APPLY(t, OP_GATHER_ND, &a, given(t, DT_F32, SHAPE(4, 5, 6), -1, 1),
	      given(t, DT_I64, SHAPE(3, 2), -4, 4));
	APPLY(t, OP_GATHER_ND, &a, given(t, DT_F32, SHAPE(4, 5), -1, 1),
	      given(t, DT_I64, SHAPE(2, 3, 2), 0, 4));
	a.GATHER_ND.batch = 1;
	APPLY(t, OP_GATHER_ND, &a, given(t, DT_F32, SHAPE(4, 5, 6), -1, 1),
	      given(t, DT_I64, SHAPE(4, 3, 1), 0, 5));
	for (int how = 2; how <= 4; how++)
		for (int k = 0; k < 3; k++) {
			static const DType dt[] = { DT_F32, DT_BF16, DT_I32 };
			Attr b = attr_default(OP_SCATTER_ELEMENTS);

			b.SCATTER_ELEMENTS.add = how;
			b.SCATTER_ELEMENTS.axis = 1;
			APPLY(t, OP_SCATTER_ELEMENTS, &b,
			      given(t, dt[k], SHAPE(4, 5), -4, 4),
			      given(t, DT_I64, SHAPE(4, 3), 0, 5),
			      given(t, dt[k], SHAPE(4, 3), -4, 4));
			b = attr_default(OP_SCATTER_ND);
			b.SCATTER_ND.add = how;
			APPLY(t, OP_SCATTER_ND, &b,
			      given(t, dt[k], SHAPE(4, 5), -4, 4),
			      given(t, DT_I64, SHAPE(6, 1), 0, 4),
			      given(t, dt[k], SHAPE(6, 5), -4, 4));
		}
	a = attr_default(OP_SCATTER_ND);
	APPLY(t, OP_SCATTER_ND, &a, given(t, DT_F32, SHAPE(4, 5, 6), -1, 1),
	      listed(t, DT_I64, SHAPE(2, 2), (int64_t[]){ 0, 1, -1, 2 }),
	      given(t, DT_F32, SHAPE(2, 6), -1, 1));
	a.SCATTER_ND.add = 1;
	APPLY(t, OP_SCATTER_ND, &a, given(t, DT_F32, SHAPE(4, 5, 6), -1, 1),
	      given(t, DT_I64, SHAPE(9, 1), 0, 4),
	      given(t, DT_F32, SHAPE(9, 5, 6), -1, 1));
}

/* ---- reductions ---- */

static void
reductions(struct setup *t)
{
	static const Op ops[] = { OP_REDUCE_SUM, OP_REDUCE_MEAN,
		OP_REDUCE_MAX, OP_REDUCE_MIN, OP_REDUCE_PROD };
	static const IntList axes[] = { { 0 }, { 1, { 0 } }, { 1, { 1 } },
		{ 1, { 2 } }, { 2, { 0, 1 } }, { 2, { 0, 2 } },
		{ 2, { 1, 2 } }, { 3, { 0, 1, 2 } } };

	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < 8; k++) {
			Attr a = list_attr(ops[i], axes[k].n, axes[k].v);

			case_begin(t, "reduce");
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(5, 7, 67),
			      0.9, 1.1));
			APPLY(t, ops[i], &a, given(t, DT_F64, SHAPE(2, 7, 6),
			      0.5, 1.5));
			if (ops[i] != OP_REDUCE_MEAN)
				APPLY(t, ops[i], &a, given(t, DT_I64,
				      SHAPE(2, 3, 2), -2, 3));
		}
		case_begin(t, "reduce, long");
		{
			Attr a = list_attr(ops[i], 1, (int64_t[]){ 0 });

			t->next_tolerance = 1e-4;
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(70000),
			      0.9999, 1.0001));
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(700, 300),
			      0.999, 1.001));
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(1, 3), -1,
			      1));
			/* in parts, of several blocks of columns; of each
			 * outer element */
			t->next_tolerance = 1e-4;
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(1030, 530),
			      0.999, 1.001));
			a = list_attr(ops[i], 1, (int64_t[]){ 1 });
			t->next_tolerance = 1e-4;
			APPLY(t, ops[i], &a, given(t, DT_F32, SHAPE(3, 700, 5),
			      0.999, 1.001));
		}
	}
	for (int k = 0; k < 8; k++) {
		Attr a = attr_default(OP_CUMSUM), b = attr_default(OP_ARGMAX);

		a.CUMSUM.axis = b.ARGMAX.axis = k & 1;
		a.CUMSUM.exclusive = k >> 1 & 1;
		a.CUMSUM.reverse = k >> 2 & 1;
		b.ARGMAX.keepdims = k >> 1 & 1;
		b.ARGMAX.last = k >> 2 & 1;
		case_begin(t, "cumsum");
		APPLY(t, OP_CUMSUM, &a, given(t, DT_F32, SHAPE(5, 9), -1, 1));
		APPLY(t, OP_CUMSUM, &a, given(t, DT_I64, SHAPE(5, 9), -9, 9));
		case_begin(t, "cumsum, product");
		a.CUMSUM.product = 1;
		APPLY(t, OP_CUMSUM, &a, given(t, DT_F32, SHAPE(5, 9), -1, 1));
		case_begin(t, "topk");
		Attr top = attr_default(OP_TOPK);
		top.TOPK.axis = k & 1;
		top.TOPK.largest = k >> 1 & 1;
		top.TOPK.k = k >> 2 & 1 ? 5 : 2;
		APPLY(t, OP_TOPK, &top, given(t, DT_F32, SHAPE(5, 9), -1, 1));
		APPLY(t, OP_TOPK, &top, given(t, DT_I64, SHAPE(5, 9), 0, 4));
		APPLY(t, OP_TOPK, &top, given(t, DT_F16, SHAPE(400, 90), 0, 4));
		case_begin(t, "argmax");
		APPLY(t, OP_ARGMAX, &b, given(t, DT_F32, SHAPE(5, 9), -1, 1));
		APPLY(t, OP_ARGMAX, &b, given(t, DT_I64, SHAPE(5, 9), 0, 4));
	}
}

void
cases_elementwise(struct setup *t)
{
	unary(t);
	unary_attributes(t);
	casts(t);
	binary(t);
	powers(t);
	wheres(t);
	dropouts(t);
	loops(t);
	copies(t);
	backwards(t);
	pads(t);
	selections(t);
	gathers(t);
	scatters(t);
	reductions(t);
}
