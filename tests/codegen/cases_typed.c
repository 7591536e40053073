/* Cases of indexing, reductions and resampling in each of the floats that
 * kernels may take, where shapes decide how work is cut.
 */
#include "tests/codegen/harness.h"

void cases_typed(struct setup *);

/* Tables of few rows and of many, rows wider than a block. */
static void
tables(struct setup *t)
{
	static const int64_t shape[][2] = { { 1, 300 }, { 3, 130 },
		{ 1500, 9 }, { 2500, 6 }, { 9000, 3 }, { 40, 1100 } };

	/* many rows are many blocks: once, and with few indices */
	for (int i = 0; i < (t->real == DT_F32 ? 6 : 2); i++) {
		Attr a = attr_default(OP_SCATTER_ADD);
		Attr b = attr_default(OP_GATHER);
		int64_t rows = shape[i][0], wide = shape[i][1];
		int64_t n = rows > 1000 ? 60 : 501;
		ValId idx = given(t, i & 1 ? DT_I32 : DT_I64, SHAPE(5, n),
		                  0, (double)rows);

		case_begin(t, "scatter_add, typed");
		t->next_tolerance = 1e-4;
		a.SCATTER_ADD.shape = (IntList){ 2, { rows, wide } };
		APPLY(t, OP_SCATTER_ADD, &a, idx, floats(t, SHAPE(5, n,
		      wide)), floats(t, SHAPE(rows, wide)));
		case_begin(t, "gather, typed");
		APPLY(t, OP_GATHER, &b, floats(t, SHAPE(rows, wide)), idx);
	}
}

static void
elements(struct setup *t)
{
	Attr a = attr_default(OP_SCATTER_ELEMENTS);
	Attr b = attr_default(OP_SCATTER_ND), c = attr_default(OP_PAD);
	Attr d = attr_default(OP_TRILU);

	a.SCATTER_ELEMENTS.axis = b.SCATTER_ND.add = 1;
	a.SCATTER_ELEMENTS.add = 1;
	case_begin(t, "scatters, typed");
	APPLY(t, OP_SCATTER_ELEMENTS, &a, floats(t, SHAPE(3, 7, 5)),
	      given(t, DT_I64, SHAPE(3, 6, 4), 0, 7),
	      floats(t, SHAPE(3, 6, 4)));
	APPLY(t, OP_SCATTER_ND, &b, floats(t, SHAPE(7, 5)),
	      given(t, DT_I64, SHAPE(6, 1), 0, 7), floats(t, SHAPE(6, 5)));
	c.PAD.begin = (IntList){ 2, { 2, -1 } };
	c.PAD.end = (IntList){ 2, { 1, 3 } };
	c.PAD.value = 0.3;
	case_begin(t, "pad, typed");
	APPLY(t, OP_PAD, &c, floats(t, SHAPE(4, 5)));
	c.PAD.begin.v[1] = 1;
	c.PAD.mode = 1;
	APPLY(t, OP_PAD, &c, floats(t, SHAPE(4, 5)));
	case_begin(t, "trilu, typed");
	APPLY(t, OP_TRILU, &d, floats(t, SHAPE(2, 5, 8)));
}

/* Short rows and long ones, parts of these; columns alike, with and without
 * vectors; planes. */
static void
reductions(struct setup *t)
{
	static const Op ops[] = { OP_REDUCE_SUM, OP_REDUCE_MEAN,
		OP_REDUCE_MAX, OP_REDUCE_PROD };
	const Shape s[] = { SHAPE(9, 96), SHAPE(9, 101), SHAPE(3, 4096),
		SHAPE(20001), SHAPE(2, 20000), SHAPE(300, 136), SHAPE(300, 7),
		SHAPE(3, 40, 20), SHAPE(6, 5, 48), SHAPE(1030, 530) };
	static const IntList axes[] = { { 1, { 1 } }, { 1, { 1 } },
		{ 1, { 1 } }, { 1, { 0 } }, { 1, { 1 } }, { 1, { 0 } },
		{ 1, { 0 } }, { 1, { 1 } }, { 2, { 0, 2 } }, { 1, { 0 } } };

	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < sizeof s / sizeof *s; k++) {
			Attr a = list_attr(ops[i], axes[k].n, axes[k].v);

			case_begin(t, "reduce, typed");
			t->next_tolerance = 1e-4;
			APPLY(t, ops[i], &a, given(t, t->real, s[k], 0.99,
			                           1.01));
		}
}

static void
lines(struct setup *t)
{
	Attr a = attr_default(OP_CUMSUM), b = attr_default(OP_ARGMAX);

	b.ARGMAX.axis = 1;
	case_begin(t, "cumsum, argmax, typed");
	APPLY(t, OP_CUMSUM, &a, floats(t, SHAPE(5, 9)));
	APPLY(t, OP_ARGMAX, &b, floats(t, SHAPE(5, 9)));
}

static void
resampling(struct setup *t)
{
	Attr a = attr_default(OP_RESIZE), b = attr_default(OP_GRID_SAMPLE);
	Attr c = attr_default(OP_GRID_SAMPLE_GRAD);
	ValId x = floats(t, SHAPE(2, 9, 5, 6));
	ValId grid = given(t, t->real, SHAPE(2, 7, 5, 2), -1.3, 1.3), dy;
	Node *n;

	a.RESIZE.axis = 1;
	a.RESIZE.mode = 2;
	a.RESIZE.extent_in = 5;
	a.RESIZE.extent_out = 8;
	case_begin(t, "resize, typed");
	APPLY(t, OP_RESIZE, &a, floats(t, SHAPE(3, 5, 7)));
	c.GRID_SAMPLE_GRAD.out = (IntList){ 2, { 5, 6 } };
	case_begin(t, "grid_sample, typed");
	t->next_tolerance = 1e-4;
	n = APPLY(t, OP_GRID_SAMPLE, &b, x, grid);
	dy = floats(t, t->g->val[n->out[0]].shape);
	case_begin(t, "grid_sample_grad, typed");
	t->next_tolerance = 1e-4;
	APPLY(t, OP_GRID_SAMPLE_GRAD, &c, dy, grid, x);
}

void
cases_typed(struct setup *t)
{
	static const DType types[] = { DT_F32, DT_BF16, DT_F16 };

	for (int i = 0; i < 3; i++) {
		t->real = types[i];
		tables(t);
		elements(t);
		reductions(t);
		lines(t);
		resampling(t);
	}
	t->real = DT_F32;
}
