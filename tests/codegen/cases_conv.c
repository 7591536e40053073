/* Cases of convolutions. */
#include "tests/codegen/harness.h"

void cases_conv(struct setup *);

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
		/* one plane, which no window reaches */
		{ { 5, { 2, 16, 1, 6, 7 } }, { 5, { 16, 16, 1, 3, 3 } }, 1,
		  { 2, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 1, 1 }, true },
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		conv(t, &c[i], 0);
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

/* 16-bit floats: a few geometries, and images that a CPU copies in slices. */
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

	for (int i = 0; i < (large ? 4 : 2); i++)
		conv(t, &c[i], 0);
}

void
cases_conv(struct setup *t)
{
	t->real = DT_F32;
	convs(t);
	t->real = DT_BF16;
	halves(t, t->machine == machines);
	if (t->machine == machines) {
		convs(t);
		cut_convs(t);
	}
	t->real = DT_F16;
	halves(t, false);
	cut_convs(t);
	t->real = DT_F32;
	cut_convs(t);
}
