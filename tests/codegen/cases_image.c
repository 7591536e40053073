/* Cases of batch normalisation, pools and resampling. */
#include "tests/codegen/harness.h"

void cases_image(struct setup *);

/* ---- batch normalisation ---- */

static void
batchnorm(struct setup *t, Shape s, bool affine, double about)
{
	Attr a = attr_default(OP_BATCHNORM);
	Attr b = attr_default(OP_BATCHNORM_GRAD);
	Shape ch = SHAPE(s.dim[1]);
	ValId x = given(t, t->real, s, about - 2, about + 3), in[5];
	ValId scale = affine ? given(t, DT_F32, ch, -1, 1) : 0;
	Node *n;

	case_begin(t, "batchnorm");
	t->next_tolerance = 1e-4;
	n = apply(t, OP_BATCHNORM, &a, affine ? 3 : 1,
	          (ValId[]){ x, scale, affine ? given(t, DT_F32, ch, -1, 1)
	          : 0 });
	in[0] = floats(t, s);
	in[1] = x;
	in[2] = n->out[1];
	in[3] = n->out[2];
	in[4] = scale;
	/* a mean of 500 is rounded by 1.5e-5, which the scale's gradient has
	 * times the sum of dy, up to 70, over a deviation of 1.4 */
	t->next_tolerance = about > 0 ? 8e-4 : 0;
	apply(t, OP_BATCHNORM_GRAD, &b, affine ? 5 : 4, in);
	t->next_tolerance = about > 0 ? 8e-4 : 0;
	n = apply(t, OP_BATCHNORM_GRAD, &b, affine ? 5 : 4, in);
	t->g->val[n->out[1]].output = false;
	n->out[1] = 0;
}

static void
batchnorms(struct setup *t)
{
	ValId stat, new = floats(t, SHAPE(77));

	batchnorm(t, SHAPE(4, 5, 9, 8), true, 0);
	batchnorm(t, SHAPE(3, 33, 20, 19), true, 0);
	batchnorm(t, SHAPE(5, 7, 6), false, 0);
	batchnorm(t, SHAPE(64, 9), true, 0);
	batchnorm(t, SHAPE(1, 3, 2, 3, 4), true, 0);
	/* several strips, more images than a lane adds up at once */
	batchnorm(t, SHAPE(151, 40, 3), true, 0);
	batchnorm(t, SHAPE(70, 1030), true, 0);
	batchnorm(t, SHAPE(2, 19, 15, 17), true, 0);
	/* planes in pieces; far from zero */
	batchnorm(t, SHAPE(2, 7, 41, 57), true, 0);
	batchnorm(t, SHAPE(5, 6, 33, 10), true, 500);
	batchnorm(t, SHAPE(9, 6, 7), true, 500);
	case_begin(t, "bn_update");
	stat = given_as(t, V_BUFFER, DT_F32, SHAPE(77), -1, 1);
	in_place(t, APPLY(t, OP_BN_UPDATE, NULL, stat, new), 0, stat);
}

/* ---- pools ---- */

static void
pool(struct setup *t, Shape s, const int64_t v[4][3], int flags)
{
	Attr a = attr_default(OP_MAXPOOL), g = attr_default(OP_MAXPOOL_GRAD);
	Attr b = attr_default(OP_AVGPOOL), h = attr_default(OP_AVGPOOL_GRAD);
	int n = s.rank - 2;
	ValId x = floats(t, s);
	Node *m;

	a.MAXPOOL.kernel = list(n, v[0][0], v[0][1], v[0][2]);
	a.MAXPOOL.stride = list(n, v[1][0], v[1][1], v[1][2]);
	a.MAXPOOL.dilation = list(n, v[2][0], v[2][1], v[2][2]);
	a.MAXPOOL.begin = list(n, v[3][0], v[3][1], v[3][2]);
	a.MAXPOOL.ceil = flags & 1;
	case_begin(t, "maxpool");
	m = APPLY(t, OP_MAXPOOL, &a, x);
	g.MAXPOOL_GRAD.out = list(n, s.dim[2], s.dim[3], s.dim[4]);
	APPLY(t, OP_MAXPOOL_GRAD, &g, floats(t, t->g->val[m->out[0]].shape),
	      m->out[1]);
	m = APPLY(t, OP_MAXPOOL, &a, x);
	t->g->val[m->out[1]].output = false;
	m->out[1] = 0;
	b.AVGPOOL.kernel = h.AVGPOOL_GRAD.kernel = a.MAXPOOL.kernel;
	b.AVGPOOL.stride = h.AVGPOOL_GRAD.stride = a.MAXPOOL.stride;
	b.AVGPOOL.dilation = h.AVGPOOL_GRAD.dilation = a.MAXPOOL.dilation;
	b.AVGPOOL.begin = h.AVGPOOL_GRAD.begin = a.MAXPOOL.begin;
	b.AVGPOOL.end = h.AVGPOOL_GRAD.end = a.MAXPOOL.begin;
	b.AVGPOOL.ceil = h.AVGPOOL_GRAD.ceil = flags & 1;
	b.AVGPOOL.include = h.AVGPOOL_GRAD.include = flags >> 1;
	case_begin(t, "avgpool");
	m = APPLY(t, OP_AVGPOOL, &b, x);
	h.AVGPOOL_GRAD.out = g.MAXPOOL_GRAD.out;
	APPLY(t, OP_AVGPOOL_GRAD, &h, floats(t, t->g->val[m->out[0]].shape));
}

/* Of equal elements the first is the maximum, as after a ReLU. */
static void
pool_of_equals(struct setup *t)
{
	static const int64_t x[] = { 0, 0, 0, 1, 1, 0,  0, 0, 1, 1, 0, 0,
		2, 2, 2, 2, 0, 0,  0, 2, 2, 0, 0, 3,  3, 3, 3, 3, 3, 3 };
	Attr a = attr_default(OP_MAXPOOL);

	a.MAXPOOL.kernel = list(2, 2, 3, 0);
	a.MAXPOOL.stride = list(2, 1, 1, 0);
	a.MAXPOOL.dilation = list(2, 1, 1, 0);
	a.MAXPOOL.begin = list(2, 0, 0, 0);
	case_begin(t, "maxpool of equals");
	APPLY(t, OP_MAXPOOL, &a, listed(t, DT_F32, SHAPE(1, 1, 5, 6), x));
}

static void
pools(struct setup *t)
{
	static const int64_t v[][4][3] = {
		{ { 3 }, { 2 }, { 1 }, { 1 } },
		{ { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 } },
		{ { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0 } },
		{ { 2, 3 }, { 1, 3 }, { 2, 1 }, { 1, 0 } },
		{ { 2, 3, 2 }, { 1, 2, 2 }, { 1, 1, 2 }, { 1, 1, 0 } },
	};
	const Shape s[] = { SHAPE(3, 4, 17), SHAPE(2, 9, 32, 33),
		SHAPE(2, 3, 8, 7), SHAPE(2, 3, 9, 10), SHAPE(1, 2, 5, 6, 7) };

	for (int i = 0; i < 5; i++)
		for (int flags = 0; flags < 4; flags++)
			pool(t, s[i], v[i], flags);
}

/* ---- resampling ---- */

static void
resize(struct setup *t, Shape s, int axis, int64_t from, int64_t to,
       const Attr *with)
{
	Attr a = *with;
	Shape d;

	s.dim[axis] = from;
	d = s;
	d.dim[axis] = to;
	a.RESIZE.axis = axis;
	a.RESIZE.extent_in = from;
	a.RESIZE.extent_out = to;
	case_begin(t, "resize");
	APPLY(t, OP_RESIZE, &a, floats(t, s));
	a.RESIZE.bwd = 1;
	APPLY(t, OP_RESIZE, &a, floats(t, d));
}

static void
resizes(struct setup *t)
{
	static const int64_t extent[][2] = { { 5, 10 }, { 7, 4 }, { 6, 1 },
		{ 1, 5 }, { 8, 2 } };

	for (int mode = 0; mode < 3; mode++)
		for (int coord = 0; coord < 7; coord++)
			for (int i = 0; i < 5; i++) {
				Attr a = attr_default(OP_RESIZE);

				a.RESIZE.mode = mode;
				a.RESIZE.coord = coord;
				a.RESIZE.round = (i + coord) % 4;
				a.RESIZE.exclude = mode == 2 && i & 1;
				a.RESIZE.antialias = mode && i % 3 == 1;
				a.RESIZE.fill = 0.5;
				a.RESIZE.first = -0.2;
				a.RESIZE.last = 0.9;
				a.RESIZE.scale = i == 0 ? 2.125 : 0;
				resize(t, SHAPE(3, 5, 7), i % 3, extent[i][0],
				       extent[i][1], &a);
			}
}

static void
grid_sample(struct setup *t, Shape s, Shape at, int mode, int padding,
            int align)
{
	Attr a = attr_default(OP_GRID_SAMPLE);
	Attr b = attr_default(OP_GRID_SAMPLE_GRAD);
	ValId x = floats(t, s), grid = given(t, DT_F32, at, -1.7, 1.7), dy;
	Node *n;

	a.GRID_SAMPLE.mode = b.GRID_SAMPLE_GRAD.mode = mode;
	a.GRID_SAMPLE.padding = b.GRID_SAMPLE_GRAD.padding = padding;
	a.GRID_SAMPLE.align = b.GRID_SAMPLE_GRAD.align = align;
	b.GRID_SAMPLE_GRAD.out = list(s.rank - 2, s.dim[2], s.dim[3],
	                              s.dim[4]);
	case_begin(t, "grid_sample");
	t->next_tolerance = 1e-4;
	n = APPLY(t, OP_GRID_SAMPLE, &a, x, grid);
	dy = floats(t, t->g->val[n->out[0]].shape);
	case_begin(t, "grid_sample_grad");
	for (int part = 0; part < 3; part++) {
		t->next_tolerance = 1e-4;
		n = APPLY(t, OP_GRID_SAMPLE_GRAD, &b, dy, grid, x);
		if (part == 0)
			continue;
		t->g->val[n->out[part - 1]].output = false;
		n->out[part - 1] = 0;
		if (part == 2)
			n->nin = 2;
	}
}

static void
grid_samples(struct setup *t)
{
	for (int flags = 0; flags < 18; flags++) {
		int mode = flags / 6, padding = flags / 2 % 3;
		int align = flags % 2;

		grid_sample(t, SHAPE(2, 11, 6, 7), SHAPE(2, 9, 9, 2), mode,
		            padding, align);
		grid_sample(t, SHAPE(3, 1, 1, 4), SHAPE(3, 5, 1, 2), mode,
		            padding, align);
		grid_sample(t, SHAPE(2, 2, 9), SHAPE(2, 7, 1), mode, padding,
		            align);
		if (mode < 2)
			grid_sample(t, SHAPE(2, 3, 4, 3, 5),
			            SHAPE(2, 3, 4, 6, 3), mode, padding,
			            align);
	}
	grid_sample(t, SHAPE(2, 20, 40, 30), SHAPE(2, 33, 37, 2), 1, 0, 0);
	grid_sample(t, SHAPE(2, 20, 40, 30), SHAPE(2, 33, 37, 2), 2, 2, 0);
}

/* ---- 16-bit floats ---- */

/* A few geometries, and images that a CPU copies in slices. */
static void
halves_of_images(struct setup *t, bool large)
{
	static const int64_t window[4][3] = { { 3, 3 }, { 2, 2 }, { 1, 1 },
		{ 1, 1 } };

	batchnorm(t, SHAPE(3, 5, 7, 9), true, 0);
	/* long planes, shorter and longer than a piece */
	batchnorm(t, SHAPE(2, 5, 16, 16), true, 0);
	batchnorm(t, SHAPE(3, 9, 20, 19), true, 0);
	batchnorm(t, SHAPE(2, 3, 41, 57), true, 0);
	pool(t, SHAPE(2, 3, 9, 10), window, 0);
	if (large)
		pool(t, SHAPE(6, 32, 96, 128), window, 2);
}

void
cases_image(struct setup *t)
{
	Attr linear = attr_default(OP_RESIZE);

	linear.RESIZE.mode = 1;
	t->real = DT_F32;
	batchnorms(t);
	pools(t);
	pool_of_equals(t);
	resizes(t);
	grid_samples(t);
	t->real = DT_BF16;
	halves_of_images(t, t->machine == machines);
	t->real = DT_F16;
	halves_of_images(t, false);
	/* copies in float32 of some rows at a time */
	resize(t, SHAPE(7, 0, 4000), 1, 60, 90, &linear);
	t->real = DT_F32;
}
