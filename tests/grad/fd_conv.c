/* Cases of convolutions, batch normalisation, pools and resampling. */
#include "tests/grad/fd.h"

#include <math.h>

/* ---- convolutions ---- */

/* Extents, groups, strides, dilations and pads that differ in every dim. */
static const struct {
	Shape x, w;
	IntList stride, dilation, begin, end;
	int64_t group;
} conv[] = {
	{ { 3, { 2, 2, 5 } }, { 3, { 2, 2, 3 } }, { 0 }, { 0 }, { 0 }, { 0 },
	  1 },
	{ { 4, { 2, 2, 4, 5 } }, { 4, { 2, 2, 3, 2 } }, { 2, { 2, 1 } },
	  { 2, { 1, 2 } }, { 2, { 1, 0 } }, { 2, { 1, 2 } }, 1 },
	{ { 4, { 1, 4, 5, 4 } }, { 4, { 2, 2, 2, 2 } }, { 2, { 3, 2 } },
	  { 0 }, { 0 }, { 0 }, 2 },
	{ { 4, { 2, 3, 3, 4 } }, { 4, { 3, 1, 3, 3 } }, { 0 }, { 0 },
	  { 2, { 1, 1 } }, { 2, { 1, 1 } }, 3 },
	{ { 5, { 1, 1, 3, 3, 4 } }, { 5, { 2, 1, 2, 2, 2 } },
	  { 3, { 1, 1, 2 } }, { 0 }, { 3, { 0, 1, 0 } }, { 3, { 1, 0, 0 } },
	  1 },
};

void
fd_build_conv(struct fd *f, int i)
{
	Attr a = attr_default(OP_CONV);
	ValId in[3];

	a.CONV.stride = conv[i / 2].stride;
	a.CONV.dilation = conv[i / 2].dilation;
	a.CONV.begin = conv[i / 2].begin;
	a.CONV.end = conv[i / 2].end;
	a.CONV.group = conv[i / 2].group;
	in[0] = fd_param(f, conv[i / 2].x);
	in[1] = fd_param(f, conv[i / 2].w);
	in[2] = fd_param(f, SHAPE(conv[i / 2].w.dim[0]));
	fd_loss(f, fd_op(f, OP_CONV, i % 2 ? 3 : 2, in, &a));
}

/* Transposed: the operand has the channels that the weights give. */
void
fd_build_conv_dx(struct fd *f, int i)
{
	Attr a = attr_default(OP_CONV_DX);
	Shape x = conv[i / 2].x;
	ValId in[3];

	a.CONV_DX.stride = conv[i / 2].stride;
	a.CONV_DX.dilation = conv[i / 2].dilation;
	a.CONV_DX.begin = conv[i / 2].begin;
	a.CONV_DX.end = conv[i / 2].end;
	a.CONV_DX.group = conv[i / 2].group;
	if (i % 2 && a.CONV_DX.stride.n)
		a.CONV_DX.extra = LIST(1, 1, 1);
	a.CONV_DX.extra.n = i % 2 ? a.CONV_DX.stride.n : 0;
	x.dim[1] = conv[i / 2].w.dim[0];
	in[0] = fd_param(f, x);
	in[1] = fd_param(f, conv[i / 2].w);
	in[2] = fd_param(f, SHAPE(conv[i / 2].w.dim[1]
	                          * conv[i / 2].group));
	fd_loss(f, fd_op(f, OP_CONV_DX, i % 2 ? 3 : 2, in, &a));
}

/* ---- batch normalisation ---- */

void
fd_build_batchnorm(struct fd *f, int i)
{
	static const Shape s[] = { { 4, { 2, 3, 2, 2 } }, { 2, { 5, 2 } },
		{ 3, { 3, 2, 3 } } };
	Attr a = attr_default(OP_BATCHNORM);
	Shape ch = SHAPE(s[i % 3].dim[1]);
	ValId in[3];

	a.BATCHNORM.eps = .01;
	in[0] = fd_param_in(f, s[i % 3], -2, 3);
	in[1] = fd_param(f, ch);
	in[2] = fd_param(f, ch);
	if (i == 6)
		f->g->val[in[0]].kind = V_INPUT;
	if (i == 7)
		f->g->val[in[1]].kind = V_INPUT;
	fd_loss(f, fd_op(f, OP_BATCHNORM, i >= 3 && i < 6 ? 1 : 3, in, &a));
}

/* ---- pools ---- */

void
fd_build_pool(struct fd *f, int i)
{
	Attr m = attr_default(OP_MAXPOOL), a = attr_default(OP_AVGPOOL);
	bool wide = i / 2 % 2;
	ValId x = fd_param_in(f, wide ? SHAPE(2, 2, 5, 4) : SHAPE(1, 2, 7),
	                      -3, 3);

	m.MAXPOOL.kernel = wide ? LIST(3, 2) : LIST(3);
	m.MAXPOOL.stride = wide ? LIST(2, 1) : LIST(2);
	m.MAXPOOL.dilation = wide ? LIST(1, 2) : LIST(1);
	m.MAXPOOL.begin = wide ? LIST(1, 0) : LIST(1);
	m.MAXPOOL.end = wide ? LIST(0, 1) : LIST(1);
	m.MAXPOOL.ceil = i / 4 % 2;
	a.AVGPOOL.kernel = m.MAXPOOL.kernel;
	a.AVGPOOL.stride = m.MAXPOOL.stride;
	a.AVGPOOL.dilation = m.MAXPOOL.dilation;
	a.AVGPOOL.begin = m.MAXPOOL.begin;
	a.AVGPOOL.end = m.MAXPOOL.end;
	a.AVGPOOL.ceil = i / 4 % 2;
	a.AVGPOOL.include = i / 8;
	fd_loss(f, i % 2 ? fd_op(f, OP_AVGPOOL, 1, &x, &a)
	                 : fd_op(f, OP_MAXPOOL, 1, &x, &m));
}

/* ---- resampling ---- */

void
fd_build_resize(struct fd *f, int i)
{
	Attr a = attr_default(OP_RESIZE);
	ValId x = fd_param(f, SHAPE(2, 4, 3));

	a.RESIZE.mode = i % 3;
	a.RESIZE.coord = i / 3 % 7;
	a.RESIZE.round = i % 4;
	a.RESIZE.axis = 1;
	a.RESIZE.extent_in = 4;
	a.RESIZE.extent_out = i < 21 ? 7 : 3;
	a.RESIZE.antialias = i >= 21;
	a.RESIZE.exclude = i % 2;
	a.RESIZE.first = -.2;
	a.RESIZE.fill = 2;
	fd_loss(f, fd_op(f, OP_RESIZE, 1, &x, &a));
}

/* A grid whose positions are no kinks: within one element before to one after
 * the n of each dim, away from halves and wholes. */
static ValId
between(struct fd *f, Shape s, const Shape *x, bool align)
{
	int dims = x->rank - 2;
	double at[128];

	for (int i = 0; i < shape_nelem(&s); i++) {
		double n = (double)x->dim[x->rank - 1 - i % dims];
		double p = floor(fd_random(f, -1, n)) + fd_random(f, .15, .35);

		p += fd_random(f, 0, 1) < .5 ? .5 : 0;
		at[i] = align ? 2 * p / (n - 1) - 1 : (2 * p + 1) / n - 1;
	}
	return fd_param_at(f, s, at);
}

void
fd_build_grid_sample(struct fd *f, int i)
{
	Attr a = attr_default(OP_GRID_SAMPLE);
	bool cubic = i >= 24, volume = i >= 12 && !cubic;
	Shape s = volume ? SHAPE(2, 2, 3, 2, 4) : SHAPE(2, 3, 4, 5);
	Shape t = volume ? SHAPE(2, 2, 3, 2, 3) : SHAPE(2, 3, 4, 2);
	int align = cubic ? i / 3 % 2 : i / 6 % 2;
	ValId in[2];

	a.GRID_SAMPLE.mode = cubic ? 2 : i % 2;
	a.GRID_SAMPLE.padding = cubic ? i % 3 : i / 2 % 3;
	a.GRID_SAMPLE.align = align;
	in[0] = fd_param(f, s);
	in[1] = between(f, t, &s, align);
	fd_loss(f, fd_op(f, OP_GRID_SAMPLE, 2, in, &a));
}
