/* Cases of convolutions, batch normalisation, pools and resampling. */
#include "tests/codegen/harness.h"

#include <string.h>

void cases_conv(struct setup *);

static ValId
floats(struct setup *t, Shape s)
{
	return given(t, t->real, s, -1, 1);
}

static IntList
list(int n, int64_t a, int64_t b, int64_t c)
{
	return (IntList){ n, { a, b, c } };
}

/* ---- convolutions ---- */

struct conv {
	Shape x, w;
	int64_t group;
	int64_t stride[3], dilation[3], begin[3], end[3];
	bool bias;
};

#define COPY_WINDOWS(a, id, from) do { \
	(a).id.stride = (from).CONV.stride; \
	(a).id.dilation = (from).CONV.dilation; \
	(a).id.begin = (from).CONV.begin; \
	(a).id.end = (from).CONV.end; \
	(a).id.group = (from).CONV.group; \
	(a).id.patches = (from).CONV.patches; \
} while (0)

/* All three products of one geometry, with so many bytes of patches at a time;
 * 0: as the machine likes. */
static void
conv(struct setup *t, const struct conv *c, int64_t patches)
{
	Attr a = attr_default(OP_CONV), dx = attr_default(OP_CONV_DX);
	Attr dw = attr_default(OP_CONV_DW);
	int n = c->x.rank - 2;
	ValId x = floats(t, c->x), w = floats(t, c->w), dy, y;
	ValId bias = c->bias ? floats(t, SHAPE(c->w.dim[0])) : 0;
	ValId back = c->bias ? floats(t, SHAPE(c->x.dim[1])) : 0;

	a.CONV.stride = list(n, c->stride[0], c->stride[1], c->stride[2]);
	a.CONV.dilation = list(n, c->dilation[0], c->dilation[1],
	                       c->dilation[2]);
	a.CONV.begin = list(n, c->begin[0], c->begin[1], c->begin[2]);
	a.CONV.end = list(n, c->end[0], c->end[1], c->end[2]);
	a.CONV.group = c->group;
	a.CONV.patches = patches;
	COPY_WINDOWS(dx, CONV_DX, a);
	COPY_WINDOWS(dw, CONV_DW, a);
	case_begin(t, "conv");
	t->next_tolerance = 1e-4;
	y = apply(t, OP_CONV, &a, bias ? 3 : 2, (ValId[]){ x, w, bias })
		->out[0];
	dy = floats(t, t->g->val[y].shape);
	case_begin(t, "conv_dx");
	t->next_tolerance = 1e-4;
	dx.CONV_DX.out = list(n, c->x.dim[2], c->x.dim[3], c->x.dim[4]);
	apply(t, OP_CONV_DX, &dx, back ? 3 : 2, (ValId[]){ dy, w, back });
	case_begin(t, "conv_dw");
	t->next_tolerance = 1e-4;
	dw.CONV_DW.kernel = list(n, c->w.dim[2], c->w.dim[3], c->w.dim[4]);
	APPLY(t, OP_CONV_DW, &dw, x, dy);
}

static void
convs(struct setup *t)
{
	static const struct conv c[] = {
		{ { 3, { 2, 3, 17 } }, { 3, { 5, 3, 3 } }, 1, { 1 }, { 1 },
		  { 1 }, { 1 }, true },
		{ { 3, { 3, 4, 30 } }, { 3, { 6, 2, 5 } }, 2, { 3 }, { 2 },
		  { 4 }, { 1 }, false },
		{ { 4, { 3, 3, 20, 21 } }, { 4, { 8, 3, 7, 7 } }, 1, { 2, 2 },
		  { 1, 1 }, { 3, 3 }, { 3, 3 }, false },
		{ { 4, { 2, 40, 14, 13 } }, { 4, { 24, 40, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 4, { 2, 40, 14, 13 } }, { 4, { 24, 40, 1, 1 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 0, 0 }, { 0, 0 }, true },
		{ { 4, { 2, 12, 9, 13 } }, { 4, { 7, 12, 1, 1 } }, 1,
		  { 2, 2 }, { 1, 1 }, { 0, 0 }, { 0, 0 }, false },
		{ { 4, { 2, 12, 9, 13 } }, { 4, { 6, 4, 3, 2 } }, 3,
		  { 2, 1 }, { 1, 3 }, { 0, 2 }, { 2, 1 }, true },
		/* one input channel per group */
		{ { 4, { 2, 6, 11, 12 } }, { 4, { 6, 1, 3, 3 } }, 6,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 4, { 2, 6, 11, 12 } }, { 4, { 12, 1, 3, 5 } }, 6,
		  { 2, 2 }, { 1, 2 }, { 1, 3 }, { 0, 4 }, false },
		/* ... of all images at once, skipping, of some that do not
		 * divide */
		{ { 4, { 6, 3, 7, 5 } }, { 4, { 3, 1, 7, 7 } }, 3,
		  { 1, 1 }, { 1, 1 }, { 3, 3 }, { 3, 3 }, true },
		{ { 4, { 3, 2, 9, 8 } }, { 4, { 2, 1, 1, 2 } }, 2,
		  { 3, 3 }, { 1, 1 }, { 0, 1 }, { 0, 0 }, false },
		{ { 4, { 5, 2, 30, 32 } }, { 4, { 4, 1, 5, 5 } }, 2,
		  { 1, 1 }, { 1, 1 }, { 2, 2 }, { 2, 2 }, true },
		{ { 4, { 1, 2, 6, 7 } }, { 4, { 2, 2, 2, 2 } }, 1,
		  { 2, 2 }, { 1, 1 }, { 5, 4 }, { 4, 5 }, true },
		{ { 4, { 1, 1, 40, 300 } }, { 4, { 3, 1, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 4, { 40, 3, 8, 8 } }, { 4, { 4, 3, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
		/* in blocks of channels: padded, grouped, sampled, cut */
		{ { 4, { 2, 20, 9, 11 } }, { 4, { 36, 20, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
		{ { 4, { 3, 32, 8, 8 } }, { 4, { 34, 16, 3, 3 } }, 2,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 4, { 2, 24, 13, 12 } }, { 4, { 40, 24, 3, 2 } }, 1,
		  { 2, 1 }, { 1, 2 }, { 0, 2 }, { 2, 1 }, true },
		{ { 4, { 4, 20, 15, 16 } }, { 4, { 24, 20, 1, 1 } }, 1,
		  { 2, 3 }, { 1, 1 }, { 0, 1 }, { 1, 0 }, true },
		{ { 4, { 6, 32, 7, 7 } }, { 4, { 48, 32, 1, 1 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 0, 0 }, { 0, 0 }, true },
		{ { 4, { 1, 128, 6, 3 } }, { 4, { 256, 128, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
		{ { 4, { 1, 16, 221, 80 } }, { 4, { 16, 16, 3, 1 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 0 }, { 1, 0 }, true },
		{ { 4, { 1, 16, 333, 90 } }, { 4, { 16, 16, 5, 1 } }, 1,
		  { 2, 1 }, { 1, 1 }, { 1, 0 }, { 2, 0 }, false },
		{ { 3, { 2, 32, 40 } }, { 3, { 24, 32, 3 } }, 1,
		  { 2 }, { 1 }, { 1 }, { 1 }, true },
		{ { 5, { 2, 3, 5, 6, 7 } }, { 5, { 4, 3, 3, 2, 3 } }, 1,
		  { 1, 2, 1 }, { 1, 1, 2 }, { 1, 0, 2 }, { 1, 1, 2 }, true },
		{ { 5, { 2, 4, 5, 6, 7 } }, { 5, { 4, 1, 2, 2, 2 } }, 4,
		  { 2, 2, 2 }, { 1, 1, 1 }, { 0, 0, 1 }, { 0, 0, 0 }, false },
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		conv(t, &c[i], 0);
}

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
	apply(t, OP_BATCHNORM_GRAD, &b, affine ? 5 : 4, in);
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

/* Patches of some of the images, windows, channels and groups. */
static void
cut_convs(struct setup *t)
{
	static const struct conv c[] = {
		{ { 4, { 5, 16, 6, 7 } }, { 4, { 16, 16, 3, 3 } }, 1,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 4, { 2, 20, 9, 11 } }, { 4, { 17, 20, 3, 3 } }, 1,
		  { 2, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, true },
		{ { 5, { 2, 42, 4, 5, 6 } }, { 5, { 48, 14, 2, 3, 2 } }, 3,
		  { 1, 1, 1 }, { 1, 1, 2 }, { 1, 1, 0 }, { 0, 1, 2 }, false },
		{ { 3, { 3, 16, 33 } }, { 3, { 16, 16, 3 } }, 1,
		  { 1 }, { 1 }, { 1 }, { 1 }, true },
		/* lines that are cut */
		{ { 3, { 2, 24, 2100 } }, { 3, { 16, 24, 9 } }, 1,
		  { 1 }, { 1 }, { 4 }, { 4 }, true },
		{ { 4, { 1, 20, 3, 4100 } }, { 4, { 16, 20, 2, 5 } }, 1,
		  { 1, 2 }, { 1, 3 }, { 1, 2 }, { 0, 9 }, true },
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		conv(t, &c[i], 1);
		conv(t, &c[i], 20000);
		conv(t, &c[i], 60000);
	}
}

/* 16-bit floats: a few geometries; large: images that are copied in slices. */
static void
halves(struct setup *t, bool large)
{
	static const struct conv c[] = {
		{ { 4, { 2, 12, 9, 13 } }, { 4, { 6, 4, 3, 2 } }, 3,
		  { 2, 1 }, { 1, 3 }, { 0, 2 }, { 2, 1 }, true },
		{ { 4, { 2, 24, 13, 12 } }, { 4, { 40, 24, 3, 2 } }, 1,
		  { 2, 1 }, { 1, 2 }, { 0, 2 }, { 2, 1 }, true },
		{ { 4, { 6, 16, 128, 120 } }, { 4, { 16, 1, 3, 3 } }, 16,
		  { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
		{ { 4, { 7, 40, 96, 96 } }, { 4, { 6, 40, 1, 1 } }, 1,
		  { 2, 2 }, { 1, 1 }, { 0, 0 }, { 0, 0 }, true },
	};
	static const int64_t window[4][3] = { { 3, 3 }, { 2, 2 }, { 1, 1 },
		{ 1, 1 } };

	for (int i = 0; i < (large ? 4 : 2); i++)
		conv(t, &c[i], 0);
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
cases_conv(struct setup *t)
{
	Attr linear = attr_default(OP_RESIZE);

	linear.RESIZE.mode = 1;
	t->real = DT_F32;
	convs(t);
	batchnorms(t);
	pools(t);
	pool_of_equals(t);
	resizes(t);
	grid_samples(t);
	t->real = DT_BF16;
	halves(t, true);
	t->real = DT_F16;
	halves(t, false);
	cut_convs(t);
	/* copies in float32 of some rows at a time */
	resize(t, SHAPE(7, 0, 4000), 1, 60, 90, &linear);
	t->real = DT_F32;
	cut_convs(t);
}
