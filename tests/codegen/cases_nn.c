/* Cases of products, rows, attention, classifier and updates. */
#include "codegen/machine.h"
#include "ir/target.h"
#include "tests/codegen/harness.h"
#include "ir/infer/infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cases_nn(struct setup *);

static ValId
transposed(struct setup *t, ValId x, int n, const int64_t *perm)
{
	Attr a = list_attr(OP_TRANSPOSE, n, perm);

	return view(t, OP_TRANSPOSE, &a, x);
}

/* ---- products ---- */

static void
products(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_F64, DT_I64, DT_BF16,
		DT_F16 };
	Attr a = attr_default(OP_MATMUL);

	for (int k = 0; k < 4; k++)
		for (int i = 0; i < 5; i++) {
			int ta = k & 1, tb = k >> 1;
			DType dt = types[i];

			a.MATMUL.ta = ta;
			a.MATMUL.tb = tb;
			case_begin(t, "matmul");
			t->next_tolerance = dt == DT_BF16 ? 5e-2 : 0;
			APPLY(t, OP_MATMUL, &a,
			      given(t, dt, ta ? SHAPE(19, 8) : SHAPE(8, 19),
			            -2, 2),
			      given(t, dt, tb ? SHAPE(13, 19) : SHAPE(19, 13),
			            -2, 2));
			case_begin(t, "matmul, batched, broadcast");
			t->next_tolerance = dt == DT_BF16 ? 5e-2 : 0;
			APPLY(t, OP_MATMUL, &a, given(t, dt,
			      ta ? SHAPE(2, 1, 9, 4) : SHAPE(2, 1, 4, 9), -2,
			      2), given(t, dt, tb ? SHAPE(3, 5, 9)
			      : SHAPE(3, 9, 5), -2, 2));
			APPLY(t, OP_MATMUL, &a, given(t, dt,
			      ta ? SHAPE(6, 9, 1) : SHAPE(6, 1, 9), -2, 2),
			      given(t, dt, tb ? SHAPE(5, 9) : SHAPE(9, 5), -2,
			      2));
		}
}

static void
products_with_more(struct setup *t)
{
	Attr a = attr_default(OP_MATMUL);
	ValId x, w, acc;

	case_begin(t, "matmul, bias");
	a.MATMUL.alpha = 0.5;
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(8, 9)), floats(t, SHAPE(9, 7)),
	      floats(t, SHAPE(7)));
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(3, 8, 9)),
	      floats(t, SHAPE(3, 9, 7)), floats(t, SHAPE(7)));
	APPLY(t, OP_MATMUL, &a, given(t, DT_F64, SHAPE(8, 9), -1, 1),
	      given(t, DT_F64, SHAPE(9, 7), -1, 1), given(t, DT_F64, SHAPE(7),
	      -1, 1));
	case_begin(t, "matmul, acc");
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(8, 9)), floats(t, SHAPE(9, 7)),
	      0, floats(t, SHAPE(8, 7)));
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(8, 9)), floats(t, SHAPE(9, 7)),
	      floats(t, SHAPE(7)), floats(t, SHAPE(8, 7)));
	acc = APPLY(t, OP_COPY, NULL, floats(t, SHAPE(8, 7)))->out[0];
	t->g->val[acc].output = false;
	in_place(t, APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(8, 9)),
	         floats(t, SHAPE(9, 7)), 0, acc), 0, acc);
	case_begin(t, "matmul, strided operands");
	a.MATMUL.alpha = 1;
	x = transposed(t, floats(t, SHAPE(2, 9, 4, 8)), 4,
	               (int64_t[]){ 0, 2, 1, 3 });
	w = transposed(t, floats(t, SHAPE(2, 9, 4, 8)), 4,
	               (int64_t[]){ 0, 2, 3, 1 });
	APPLY(t, OP_MATMUL, &a, x, w);
	a.MATMUL.ta = a.MATMUL.tb = 1;
	APPLY(t, OP_MATMUL, &a, x, w);
	a.MATMUL.ta = a.MATMUL.tb = 0;
	APPLY(t, OP_MATMUL, &a, x, floats(t, SHAPE(8, 5)));
	x = transposed(t, floats(t, SHAPE(9, 1)), 2, (int64_t[]){ 1, 0 });
	APPLY(t, OP_MATMUL, &a, x, floats(t, SHAPE(9, 5)));
	x = transposed(t, floats(t, SHAPE(1, 9)), 2, (int64_t[]){ 1, 0 });
	APPLY(t, OP_MATMUL, &a, x, floats(t, SHAPE(1, 5)));
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(40, 3, 4)),
	      floats(t, SHAPE(40, 4, 2)));
}

/* Weights of fewer bits, that no update writes. */
static ValId
frozen(struct setup *t, DType dt, Shape s)
{
	double most = dt == DT_INT8X64 ? 1. / 128 : 1;
	ValId w = given_as(t, V_PARAM, dt, s, most / 10, most);

	t->g->val[w].frozen = true;
	return w;
}

static const DType block_type[] = { DT_INT8X64, DT_NF4X64 };

static void
dequantized(struct setup *t)
{
	static const DType to[] = { DT_F32, DT_BF16, DT_F16 };
	Attr a = attr_default(OP_DEQUANTIZE);

	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 3; k++) {
			case_begin(t, "dequantize");
			a.DEQUANTIZE.to = to[k];
			APPLY(t, OP_DEQUANTIZE, &a,
			      frozen(t, block_type[i], SHAPE(1)));
			APPLY(t, OP_DEQUANTIZE, &a,
			      frozen(t, block_type[i], SHAPE(5, 3)));
			APPLY(t, OP_DEQUANTIZE, &a,
			      frozen(t, block_type[i], SHAPE(171, 7)));
		}
}

/* Tiles of all sorts: one, several along each dim, blocks that tiles cut. */
static void
frozen_products(struct setup *t)
{
	static const DType left[] = { DT_F32, DT_BF16, DT_F16 };
	Attr a = attr_default(OP_MATMUL);

	if (!(t->machine->target->fuses & FUSE_FROZEN))
		return;
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 3; k++) {
			DType dt = block_type[i], x = left[k];

			case_begin(t, "matmul of blocks");
			t->next_tolerance = x == DT_F32 ? 0 : 5e-2;
			a.MATMUL.tb = 1;
			APPLY(t, OP_MATMUL, &a, given(t, x, SHAPE(8, 128), -1,
			      1), frozen(t, dt, SHAPE(13, 2)));
			APPLY(t, OP_MATMUL, &a, given(t, x, SHAPE(700, 576), -1,
			      1), frozen(t, dt, SHAPE(500, 9)));
			a.MATMUL.tb = 0;
			APPLY(t, OP_MATMUL, &a, given(t, x, SHAPE(2, 4, 19), -1,
			      1), frozen(t, dt, SHAPE(19, 2)));
			APPLY(t, OP_MATMUL, &a, given(t, x, SHAPE(600, 300), -1,
			      1), frozen(t, dt, SHAPE(300, 9)),
			      given(t, x, SHAPE(576), -1, 1));
			a.MATMUL.ta = 1;
			APPLY(t, OP_MATMUL, &a, given(t, x, SHAPE(128, 3), -1,
			      1), frozen(t, dt, SHAPE(128, 1)));
			a.MATMUL.ta = 0;
		}
	case_begin(t, "matmul of 16-bit weights");
	for (int k = 1; k < 3; k++)
		APPLY(t, OP_MATMUL, &a, given(t, DT_F32, SHAPE(8, 19), -1, 1),
		      frozen(t, left[k], SHAPE(19, 13)));
}

/* ---- rows ---- */

static void
softmaxes(struct setup *t)
{
	static const Op op[] = { OP_SOFTMAX, OP_LOG_SOFTMAX };
	static const Op grad[] = { OP_SOFTMAX_GRAD, OP_LOG_SOFTMAX_GRAD };

	for (int k = 0; k < 2; k++)
		for (int axis = 0; axis < 3; axis++) {
			Attr a = attr_default(op[k]), b = attr_default(grad[k]);
			ValId x = given(t, t->real, SHAPE(5, 133, 70), -9, 9);
			ValId y;

			a.SOFTMAX.axis = b.SOFTMAX_GRAD.axis = axis;
			case_begin(t, "softmax and its gradient");
			y = APPLY(t, op[k], &a, x)->out[0];
			APPLY(t, grad[k], &b, floats(t, SHAPE(5, 133, 70)), y);
			x = given(t, t->real, SHAPE(2, 1, 3), -9, 9);
			APPLY(t, op[k], &a, x);
		}
}

/* Of 16-bit floats, whose copies in float32 are of some rows at a time. */
static void
long_softmax(struct setup *t)
{
	Attr a = attr_default(OP_SOFTMAX), b = attr_default(OP_SOFTMAX_GRAD);
	Shape s = SHAPE(46, 150, 160);
	ValId y;

	case_begin(t, "softmax of many rows");
	y = APPLY(t, OP_SOFTMAX, &a, given(t, DT_BF16, s, -9, 9))->out[0];
	APPLY(t, OP_SOFTMAX_GRAD, &b, given(t, DT_BF16, s, -1, 1), y);
}

/* Lines of -inf, along either axis. */
static void
dead_lines(struct setup *t)
{
	static const Op op[] = { OP_SOFTMAX, OP_LOG_SOFTMAX };
	const float h = -INFINITY;
	const float data[] = { 1, 2, h, 3, h, h, h, h, h, 4, h, 5 };
	ValId x = val_const(t->g, NULL, DT_F32, SHAPE(3, 4), data), y;
	Attr a = attr_default(OP_CAST);

	a.CAST.to = t->real;
	case_begin(t, "softmax of lines in which nothing is visible");
	x = t->real == DT_F32 ? x : APPLY(t, OP_CAST, &a, x)->out[0];
	for (int k = 0; k < 4; k++) {
		a = attr_default(op[k % 2]);
		a.SOFTMAX.axis = k / 2;
		y = APPLY(t, op[k % 2], &a, x)->out[0];
		if (k % 2 == 0) {
			a = attr_default(OP_SOFTMAX_GRAD);
			a.SOFTMAX_GRAD.axis = k / 2;
			APPLY(t, OP_SOFTMAX_GRAD, &a, floats(t, SHAPE(3, 4)),
			      y);
		}
	}
}

static void
determinants(struct setup *t)
{
	static const float singular[] = { 1, 2, 2, 4 };
	ValId x, dy = floats(t, SHAPE(7, 3)), zero;

	for (int m = 1; m < 6; m++) {
		x = given(t, t->real, SHAPE(7, 3, m, m), -2, 2);
		case_begin(t, "determinant and its gradient");
		APPLY(t, OP_DET, NULL, x);
		APPLY(t, OP_DET_GRAD, NULL, dy, x);
	}
	zero = val_const(t->g, NULL, DT_F32, SHAPE(2, 2), singular);
	case_begin(t, "a singular matrix");
	APPLY(t, OP_DET, NULL, zero);
	APPLY(t, OP_DET_GRAD, NULL, floats(t, shape_scalar()), zero);
}

static void
norms(struct setup *t)
{
	for (int axis = 1; axis < 3; axis++) {
		Shape w = axis == 1 ? SHAPE(7, 35) : SHAPE(35);
		Attr a = attr_default(OP_LAYERNORM);
		Attr b = attr_default(OP_LAYERNORM_GRAD);
		ValId x = floats(t, SHAPE(103, 7, 35)), scale = floats(t, w);
		ValId dy = floats(t, SHAPE(103, 7, 35)), mean, rstd;
		Node *n;

		a.LAYERNORM.axis = b.LAYERNORM_GRAD.axis = axis;
		case_begin(t, "layernorm");
		t->next_tolerance = 1e-4;
		APPLY(t, OP_LAYERNORM, &a, x, scale);
		n = APPLY(t, OP_LAYERNORM, &a, x, scale, floats(t, w));
		mean = n->out[1], rstd = n->out[2];
		APPLY(t, OP_LAYERNORM_GRAD, &b, dy, x, scale, mean, rstd);
		n = APPLY(t, OP_LAYERNORM_GRAD, &b, dy, x, scale, mean, rstd);
		t->g->val[n->out[0]].output = false;
		n->out[0] = 0;
		case_begin(t, "rmsnorm");
		t->next_tolerance = 1e-4;
		a.RMSNORM.eps = 1e-5;
		rstd = APPLY(t, OP_RMSNORM, &a, x, scale)->out[1];
		APPLY(t, OP_RMSNORM_GRAD, &b, dy, x, scale, rstd);
		case_begin(t, "gradients of norms added to another");
		t->next_tolerance = 1e-4;
		APPLY(t, OP_LAYERNORM_GRAD, &b, dy, x, scale, mean, rstd,
		      floats(t, SHAPE(103, 7, 35)));
		APPLY(t, OP_RMSNORM_GRAD, &b, dy, x, scale, rstd,
		      floats(t, SHAPE(103, 7, 35)));
	}
}

static void
losses(struct setup *t, int reduction, int wide, int weighted, DType dt)
{
	Shape s = wide ? SHAPE(6, 11, 300) : SHAPE(277, 90);
	Shape ls = wide ? SHAPE(6, 300) : SHAPE(277);
	int64_t classes = s.dim[1];
	ValId x = given(t, t->real, s, -4, 4), dloss, loss[3], in[6];
	ValId labels = given(t, dt, ls, 0, (double)classes);
	ValId weight = weighted ? given(t, t->real, SHAPE(classes), 0.5, 2) : 0;
	Attr a = attr_default(OP_SCE), b = attr_default(OP_SCE_GRAD);
	Attr c = attr_default(OP_NLL_GRAD);
	Node *n;

	a.SCE.reduction = b.SCE_GRAD.reduction = reduction;
	a.SCE.ignore = b.SCE_GRAD.ignore = 3;
	c.NLL_GRAD.reduction = reduction;
	c.NLL_GRAD.ignore = 3;
	c.NLL_GRAD.shape.n = s.rank;
	memcpy(c.NLL_GRAD.shape.v, s.dim, sizeof c.NLL_GRAD.shape.v);
	case_begin(t, "cross entropy");
	in[0] = x, in[1] = labels, in[2] = weight;
	n = apply(t, OP_SCE, &a, weighted ? 3 : 2, in);
	memcpy(loss, n->out, sizeof loss);
	dloss = given(t, t->real, t->g->val[loss[0]].shape, 0.5, 1);
	memcpy(in, (ValId[]){ dloss, x, labels, loss[1], loss[2], weight },
	       sizeof in);
	apply(t, OP_SCE_GRAD, &b, weighted ? 6 : 5, in);
	case_begin(t, "negative log likelihood");
	in[0] = x, in[1] = labels, in[2] = weight;
	n = apply(t, OP_NLL, &a, weighted ? 3 : 2, in);
	memcpy(in, (ValId[]){ dloss, labels, n->out[1], weight },
	       4 * sizeof *in);
	apply(t, OP_NLL_GRAD, &c, weighted ? 4 : 3, in);
}

/* Classes of which ranks have pieces: one that has all. */
static void
pieces_of_classes(struct setup *t, int reduction)
{
	ValId x = given(t, t->real, SHAPE(277, 90), -4, 4), out[3], dloss;
	ValId labels = given(t, DT_I64, SHAPE(277), 0, 90);
	Attr a = attr_default(OP_VOCAB_STATS), b = attr_default(OP_SCE);
	Attr c = attr_default(OP_SCE_GRAD);
	ValId stats;

	t->g->ranks = 1;
	case_begin(t, "cross entropy over pieces of the classes");
	a.VOCAB_STATS.whole_extent = b.SCE.whole_extent = c.SCE_GRAD.whole_extent = 90;
	b.SCE.reduction = c.SCE_GRAD.reduction = reduction;
	b.SCE.ignore = c.SCE_GRAD.ignore = 3;
	stats = APPLY(t, OP_VOCAB_STATS, &a, x, labels)->out[0];
	memcpy(out, APPLY(t, OP_SCE, &b, x, labels, 0, stats)->out,
	       sizeof out);
	dloss = given(t, t->real, t->g->val[out[0]].shape, 0.5, 1);
	APPLY(t, OP_SCE_GRAD, &c, dloss, x, labels, out[1], out[2]);
}

/* ---- attention ---- */

struct heads {
	int64_t b, h, g, q, k, d, e;
	int causal;
	double ratio;
	int mask;                       /* 0 none, 1 float, 2 bool, 3 bool that
	                                 * hides everything, 4 float far from
	                                 * zero */
	Shape mask_shape;
	bool permuted, packed;
	double scale;
};

static ValId
head_operand(struct setup *t, int64_t b, int64_t h, int64_t n, int64_t d)
{
	/* [B,N,H,D] seen as [B,H,N,D] */
	return transposed(t, floats(t, SHAPE(b, n, h, d)), 4,
	                  (int64_t[]){ 0, 2, 1, 3 });
}

static void
attention(struct setup *t, const struct heads *c)
{
	static const int order[] = { 0, 2, 1, 3 };
	Attr a = attr_default(OP_ATTENTION), b = attr_default(OP_ATTENTION_GRAD);
	ValId in[7] = { 0 }, mask = 0;
	Node *n;

	case_begin(t, "attention");
	t->next_tolerance = 1e-4;
	a.ATTENTION.scale = b.ATTENTION_GRAD.scale =
		(float)c->scale;
	a.ATTENTION.causal = b.ATTENTION_GRAD.causal = c->causal;
	a.ATTENTION.ratio = b.ATTENTION_GRAD.ratio = c->ratio;
	a.ATTENTION.stream = b.ATTENTION_GRAD.stream = 4;
	b.ATTENTION_GRAD.packed = c->packed;
	if (c->permuted) {
		in[1] = head_operand(t, c->b, c->h, c->q, c->d);
		in[2] = head_operand(t, c->b, c->g, c->k, c->d);
		in[3] = head_operand(t, c->b, c->g, c->k, c->e);
	} else {
		in[1] = floats(t, SHAPE(c->b, c->h, c->q, c->d));
		in[2] = floats(t, SHAPE(c->b, c->g, c->k, c->d));
		in[3] = floats(t, SHAPE(c->b, c->g, c->k, c->e));
	}
	if (c->mask)
		mask = given(t, c->mask % 3 == 1 ? t->real : DT_BOOL,
		             c->mask_shape, c->mask == 4 ? -1000 : 0,
		             c->mask == 4 ? -999 : c->mask == 3 ? 1 : 2);
	memcpy(in + 4, (ValId[]){ mask }, sizeof *in);
	n = apply(t, OP_ATTENTION, &a, mask ? 4 : 3, in + 1);
	if (c->permuted)
		permuted(t, n->out[0], order);
	in[0] = floats(t, SHAPE(c->b, c->h, c->q, c->e));
	n = &t->g->node[t->g->nnode - 1];
	in[4] = n->out[0];
	in[5] = n->out[1];
	in[6] = mask;
	n = apply(t, OP_ATTENTION_GRAD, &b, mask ? 7 : 6, in);
	for (int i = 0; c->permuted && !c->packed && i < 3; i++)
		permuted(t, n->out[i], order);
	in[4] = mask;           /* as a replay that wants lse alone */
	n = apply(t, OP_ATTENTION, &a, mask ? 4 : 3, in + 1);
	t->g->val[n->out[0]].output = false;
	n->out[0] = 0;
}

static void
attentions(struct setup *t)
{
	static const struct heads list[] = {
		{ 2, 3, 3, 10, 10, 4, 4, 0, 0, 0, { 0 }, false, false, .25 },
		{ 2, 3, 3, 70, 70, 8, 8, 1, 0, 0, { 0 }, true, false, .25 },
		{ 2, 4, 4, 130, 130, 8, 8, 1, 0.2, 0, { 0 }, true, true, .25 },
		{ 2, 6, 2, 33, 33, 8, 8, 1, 0, 0, { 0 }, true, true, .25 },
		{ 1, 4, 2, 9, 17, 8, 6, 1, 0, 1,
		  { 4, { 1, 4, 9, 17 } }, false, false, .25 },
		{ 2, 4, 1, 66, 90, 8, 6, 0, 0.5, 2,
		  { 4, { 2, 1, 1, 90 } }, true, false, .25 },
		{ 2, 2, 2, 5, 7, 3, 3, 0, 0, 2, { 2, { 5, 7 } },
		  false, false, .25 },
		{ 2, 2, 2, 5, 7, 3, 3, 0, 0, 3, { 2, { 5, 7 } },
		  false, false, .25 },
		{ 2, 2, 2, 9, 4, 8, 8, 1, 0, 0, { 0 }, false, false, .25 },
		/* a tile of queries that see nothing */
		{ 1, 2, 2, 100, 8, 8, 8, 1, 0, 0, { 0 }, false, false, .25 },
		{ 1, 2, 1, 70, 100, 80, 72, 1, 0, 0, { 0 }, true, false, .25 },
		{ 1, 1, 1, 66, 66, 64, 64, 0, 0.3, 0, { 0 }, true, true, .25 },
		{ 1, 1, 1, 1, 1500, 8, 8, 0, 0.1, 1, { 4, { 1, 1, 1, 1 } },
		  false, false, .25 },
		/* tiles of which all is visible, beside others */
		{ 1, 4, 2, 150, 210, 64, 64, 1, 0, 0, { 0 }, true, false, 0.5 },
		{ 1, 2, 2, 70, 130, 16, 16, 0, 0, 0, { 0 }, true, false, -0.5 },
		{ 1, 2, 2, 70, 130, 16, 16, 0, 0, 4,
		  { 4, { 1, 2, 70, 130 } }, true, false, 0.5 },
	};

	/* 16-bit operands: not all, they share the kernels */
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (t->real == DT_F32 || (i > 1 && i < 6)
		    || (i > 8 && i < 12) || i > 12)
			attention(t, &list[i]);
}

/* ---- classifier ---- */

static void
classifiers(struct setup *t)
{
	int last = t->real == DT_F32 ? 12 : 8;

	for (int k = 0; k <= last; k++) {
		int tb = k & 1, bias = k >> 1 & 1 || k == last;
		int reduction = 1 + (k % 3 == 0 || k == last);
		/* with 16-bit operands, sums over many rows and over few */
		bool few = t->real != DT_F32 && k >= 4;
		/* a row that fills the shared memory that a GPU gives unasked,
		 * but for what the kernel has of its own */
		bool large = t->real == DT_F32 && k == 10;
		/* float32 weights that are rounded in two goes, and of which
		 * a row alone is too much for one */
		bool wide = few && k == 7 && t->machine == machines;
		bool deep = few && k == 6 && t->real == DT_BF16
			&& t->machine == machines;
		int64_t rows = large ? 5 : k == last ? 0 : wide ? 21
			: deep ? 1 : 137;
		int64_t dim = deep ? (1 << 21) + 3 : wide ? 2100 : few ? 80 : 9;
		int64_t classes = large ? 12280 : wide ? 1100 : deep ? 2 : 301;
		double most = wide ? 0.1 : deep ? 1e-4 : 1;
		bool seeded = k % 3 == 1;
		bool f32 = t->real != DT_F32 && bias && k >= 2 && k < last;
		ValId in[5];
		Attr a = attr_default(OP_CLASSIFIER);
		Node *n;

		case_begin(t, "classifier");
		/* logits in 16 bits, where products make them so */
		t->next_tolerance = t->real == DT_BF16 ? 5e-4 : 1e-4;
		a.CLASSIFIER.tb = tb;
		a.CLASSIFIER.reduction = reduction;
		a.CLASSIFIER.ignore = 7;
		a.CLASSIFIER.chunk = k < 6 ? 60 : 0;
		a.CLASSIFIER.seed = k == 5 ? 0.25 : 1;
		in[0] = given(t, t->real, SHAPE(rows, dim), -most, most);
		in[1] = given(t, f32 ? DT_F32 : t->real,
		              tb ? SHAPE(classes, dim) : SHAPE(dim, classes),
		              -1, 1);
		in[2] = given(t, k & 4 ? DT_I32 : DT_I64, SHAPE(rows), 0,
		              deep ? 2 : large ? (double)classes : 20);
		in[3] = bias ? floats(t, SHAPE(classes)) : 0;
		in[4] = seeded ? given(t, DT_F32, shape_scalar(), 2, 3) : 0;
		n = node_new(t->g, OP_CLASSIFIER, seeded ? 5 : bias ? 4 : 3,
		             in, bias ? 4 : 3, 0);
		n->attr = a;
		if (!shape_infer(t->g, t->diag, n))
			exit(1);
		for (int i = 0; i < n->nout; i++)
			t->g->val[n->out[i]].output = true;
		t->name_of[node_id(t->g, n)] = t->name;
		t->tolerance[node_id(t->g, n)] = t->next_tolerance;
	}
}

/* ---- updates ---- */

/* An update of a parameter like g whose states, at most two, have these
 * shapes; norm 0: none.  Of one in float32 that has a norm there is a copy. */
static void
update(struct setup *t, Op op, const Attr *a, ValId g, ValId norm, int nstate,
       const Shape *state)
{
	const struct op_info *info = &op_info[op];
	bool copies = info->flags & F_COPY && norm && t->real == DT_F32;
	Shape s = t->g->val[g].shape;
	ValId in[8] = { given_as(t, V_PARAM, t->real, s, -1, 1), g };
	int nin = op_norm(op) + !!norm;
	Node *n;

	for (int k = 0; k < nstate; k++)
		/* the second is a mean of squares, and Adafactor's first */
		in[2 + k] = given_as(t, V_STATE, DT_F32, state[k],
		                     k || op == OP_ADAFACTOR ? 0.01 : -1, 1);
	in[op_norm(op)] = norm;
	if (copies)
		in[nin++] = given_as(t, V_STATE, a->SGD.decay ? DT_BF16
		                     : DT_F16, s, -1, 1);
	n = apply(t, op, a, nin, in);
	for (int k = 0; k < n->nout; k++)
		if (k <= nstate || (copies && k == n->nout - 1)) {
			in_place(t, n, k, in[op_overwrites(op, k)]);
		} else {
			t->g->val[n->out[k]].output = false;
			t->g->val[n->out[k]].def = 0;
			n->out[k] = 0;
		}
}

static void
updates(struct setup *t)
{
	static const struct {
		Op op;
		int nstate, coupled;
		const char *name;
	} kind[] = {
		{ OP_SGD, 0, 0, "sgd" }, { OP_SGDM, 1, 0, "sgdm" },
		{ OP_ADAMW, 2, 0, "adamw" }, { OP_ADAMW, 2, 1, "adam" },
		{ OP_LION, 1, 0, "lion" },
	};
	Shape s = SHAPE(33, 700), same[] = { s, s };
	ValId g = floats(t, s), norm, p;
	Attr sums = attr_default(OP_GRAD_NORM);

	case_begin(t, "sum_squares");
	norm = APPLY(t, OP_SUM_SQUARES, NULL, g, floats(t, SHAPE(7)))->out[0];
	case_begin(t, "grad_norm");
	sums.GRAD_NORM.sums = 1;
	APPLY(t, OP_GRAD_NORM, &sums, g, norm);
	norm = APPLY(t, OP_GRAD_NORM, NULL, g, floats(t, SHAPE(7)),
	             floats(t, SHAPE(5000, 3)))->out[0];
	for (int k = 0; k < 4 * (int)(sizeof kind / sizeof *kind); k++) {
		Attr a = attr_default(kind[k / 4].op);

		case_begin(t, kind[k / 4].name);
		a.SGD.decay = k >> 1 & 1;
		if (kind[k / 4].coupled)
			a.ADAMW.coupled = 1;
		update(t, kind[k / 4].op, &a, g, k & 1 ? norm : 0,
		       kind[k / 4].nstate, same);
	}
	case_begin(t, "accumulate");
	p = given_as(t, V_STATE, DT_F32, s, -1, 1);
	in_place(t, APPLY(t, OP_ACCUMULATE, NULL, p, g), 0, p);
	case_begin(t, "ema");
	p = given_as(t, V_STATE, DT_F32, s, -1, 1);
	in_place(t, APPLY(t, OP_EMA, NULL, p, g), 0, p);
}

/* What a rank with a piece does before an update of parameter p like g, whose
 * operands are there but for the norm, and that update. */
static void
factored(struct setup *t, const Attr *a, ValId g, ValId norm, int nstate,
         const Shape *state)
{
	ValId in[8] = { given_as(t, V_PARAM, t->real, t->g->val[g].shape, -1,
	                         1), g }, in_means[2] = { g, norm };
	Node *n;

	for (int k = 0; k < nstate; k++)
		in[2 + k] = given_as(t, V_STATE, DT_F32, state[k], 0.01, 1);
	if (nstate == 2) {
		case_begin(t, "adafactor_means");
		n = apply(t, OP_ADAFACTOR_MEANS, NULL, 1 + !!norm, in_means);
		in[4] = n->out[0];
		in[5] = n->out[1];
	}
	case_begin(t, "adafactor_squares");
	in[6] = norm;
	in[6] = apply(t, OP_ADAFACTOR_SQUARES, NULL, 7, in)->out[0];
	case_begin(t, "adafactor, pieces");
	in[7] = norm;
	n = apply(t, OP_ADAFACTOR, a, 8, in);
	for (int k = 0; k < nstate + 1; k++)
		in_place(t, n, k, in[op_overwrites(OP_ADAFACTOR, k)]);
	if (nstate == 1) {
		t->g->val[n->out[2]].output = false;
		t->g->val[n->out[2]].def = 0;
		n->out[2] = 0;
	}
}

/* Matrices of few and of many columns, more of them than one, none. */
static void
adafactors(struct setup *t)
{
	const Shape shape[] = { SHAPE(33, 700), SHAPE(3, 9001), SHAPE(900, 2),
		SHAPE(9, 8, 3, 3), SHAPE(130, 30, 5), SHAPE(9000), SHAPE(1),
		shape_scalar(), SHAPE(4, 0) };

	for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
		for (int clipped = 0; clipped < 2; clipped++) {
			Shape s = shape[k], state[] = { s, s };
			Attr a = attr_default(OP_ADAFACTOR);
			ValId g = floats(t, s), norm = 0;

			case_begin(t, "adafactor");
			a.ADAFACTOR.decay = clipped;
			for (int i = 0; i < 2 && s.rank >= 2; i++)
				state[i] = shape_without(s, i + 1);
			if (clipped)
				norm = APPLY(t, OP_GRAD_NORM, NULL, g)->out[0];
			update(t, OP_ADAFACTOR, &a, g, norm,
			       s.rank < 2 ? 1 : 2, state);
			if (shape_nelem(&s) && clipped == (int)(k % 2))
				factored(t, &a, g, norm, s.rank < 2 ? 1 : 2,
				         state);
		}
}

/* Larger than a tile each way, with what may be added to it, and without. */
static void
tiled_products(struct setup *t)
{
	Attr a = attr_default(OP_MATMUL);
	ValId bias = floats(t, SHAPE(530)), acc;

	case_begin(t, "matmul, tiles");
	a.MATMUL.alpha = 0.125;
	acc = APPLY(t, OP_COPY, NULL, floats(t, SHAPE(520, 530)))->out[0];
	t->g->val[acc].output = false;
	in_place(t, APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(520, 1100)),
	         floats(t, SHAPE(1100, 530)), bias, acc), 0, acc);
	a.MATMUL.ta = a.MATMUL.tb = 1;
	APPLY(t, OP_MATMUL, &a, floats(t, SHAPE(1100, 520)),
	      floats(t, SHAPE(530, 1100)), bias);
	APPLY(t, OP_MATMUL, NULL, floats(t, SHAPE(20, 1100)),
	      floats(t, SHAPE(1100, 30)));
}

void
cases_nn(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_BF16, DT_F16 };

	products(t);
	dequantized(t);
	frozen_products(t);
	for (int i = 0; i < 3; i++) {
		t->real = types[i];
		products_with_more(t);
		softmaxes(t);
		dead_lines(t);
		determinants(t);
		norms(t);
		for (int reduction = 0; reduction < 3; reduction++)
			for (int k = i ? 2 : 0; k < 4; k++)
				losses(t, reduction, k & 1, k >> 1,
				       k == 3 ? DT_I32 : DT_I64);
		for (int reduction = 0; reduction < 3 && i == 0;
		     reduction++)
			pieces_of_classes(t, reduction);
		attentions(t);
		classifiers(t);
		updates(t);
		adafactors(t);
	}
	t->real = DT_F32;
	long_softmax(t);
}

void
cases_tiles(struct setup *t)
{
	static const DType types[] = { DT_BF16, DT_F16 };

	for (int i = 0; i < 2; i++) {
		t->real = types[i];
		tiled_products(t);
	}
	t->real = DT_F32;
}
