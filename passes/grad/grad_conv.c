/* Gradient rules of convolutions, batch normalisation, pools and resampling.
 *
 * A convolution, its gradient in the operand and its gradient in the weights
 * are one trilinear form, so each differentiates into the other two.
 */
#include "passes/grad/grad_rules.h"

#include <string.h>

/* Sum over all dims but the channels. */
static ValId
channel_sum(struct grad *c, ValId dy)
{
	Attr a = attr_default(OP_REDUCE_SUM);
	IntList *axes = &a.REDUCE_SUM.axes;

	axes->v[axes->n++] = 0;
	for (int i = 2; i < adj_shape(c, dy)->rank; i++)
		axes->v[axes->n++] = i;
	a.REDUCE_SUM.keepdims = 0;
	return adj_op(c, OP_REDUCE_SUM, 1, &dy, &a);
}

static IntList
spatial_extents(const struct grad *c, ValId v)
{
	const Shape *s = adj_shape(c, v);
	IntList l = { s->rank - 2, { 0 } };

	memcpy(l.v, s->dim + 2, (size_t)l.n * sizeof *l.v);
	return l;
}

/* What the three have in common. */
#define SAME_WINDOWS(to, from) do { \
	(to).stride = (from).stride; \
	(to).dilation = (from).dilation; \
	(to).begin = (from).begin; \
	(to).end = (from).end; \
	(to).group = (from).group; \
	(to).whole_extent = (from).whole_extent; \
} while (0)

static ValId
weight_gradient(struct grad *c, ValId x, ValId dy, const Attr *windows)
{
	Attr a = *windows;

	a.CONV_DW.kernel = spatial_extents(c, c->n.in[1]);
	return adj_op(c, OP_CONV_DW, 2, (ValId[]){ x, dy }, &a);
}

/* Gradients of parameters come first: what was kept for them can die before
 * the adjoint that goes on is written. */
bool
grad_conv(struct grad *c)
{
	Attr a = attr_default(OP_CONV_DX), w = attr_default(OP_CONV_DW);
	ValId x = c->n.in[0], dy = c->dy[0];

	SAME_WINDOWS(a.CONV_DX, c->n.attr.CONV);
	SAME_WINDOWS(w.CONV_DW, c->n.attr.CONV);
	if (adj_in(c, 2) && c->want[2])
		c->dx[2] = channel_sum(c, dy);
	if (c->want[1])
		c->dx[1] = weight_gradient(c, x, dy, &w);
	if (!c->want[0])
		return true;
	a.CONV_DX.out = spatial_extents(c, x);
	c->dx[0] = adj_op(c, OP_CONV_DX, 2, (ValId[]){ dy, c->n.in[1] }, &a);
	return true;
}

bool
grad_conv_dx(struct grad *c)
{
	Attr a = attr_default(OP_CONV), w = attr_default(OP_CONV_DW);
	ValId x = c->n.in[0], dy = c->dy[0];

	SAME_WINDOWS(a.CONV, c->n.attr.CONV_DX);
	SAME_WINDOWS(w.CONV_DW, c->n.attr.CONV_DX);
	if (adj_in(c, 2) && c->want[2])
		c->dx[2] = channel_sum(c, dy);
	if (c->want[1])
		c->dx[1] = weight_gradient(c, dy, x, &w);
	if (!c->want[0])
		return true;
	/* as many windows as there are elements: pads make it so */
	for (int i = 0; i < a.CONV.end.n; i++) {
		int64_t k = adj_shape(c, c->n.in[1])->dim[2 + i];
		int64_t all = (adj_shape(c, x)->dim[2 + i] - 1)
			* a.CONV.stride.v[i] + (k - 1) * a.CONV.dilation.v[i]
			+ 1;
		int64_t end = all - adj_shape(c, dy)->dim[2 + i]
			- a.CONV.begin.v[i];

		a.CONV.end.v[i] = end < 0 ? 0 : end;
	}
	x = adj_op(c, OP_CONV, 2, (ValId[]){ dy, c->n.in[1] }, &a);
	if (x && !shape_eq(adj_shape(c, x), adj_shape(c, c->n.in[0]))) {
		/* windows that only an output padding of the stride's size
		 * or more makes room for */
		const int64_t start[MAX_RANK] = { 0 };
		const Shape want = *adj_shape(c, c->n.in[0]);

		x = adj_slice(c, x, start, want.dim);
	}
	c->dx[0] = x;
	return true;
}

bool
grad_batchnorm(struct grad *c)
{
	Attr a = attr_default(OP_BATCHNORM_GRAD);
	Shape s = SHAPE(adj_shape(c, c->n.in[0])->dim[1]);
	ValId scale = adj_in(c, 1);
	bool bias = adj_in(c, 2) && c->want[2];
	const bool keep[3] = { c->want[0], scale && c->want[1], bias };
	ValId in[5] = { c->dy[0], c->n.in[0] };
	const ValId *out;

	if (c->dy[1] || c->dy[2])
		return grad_refuse(c, "its statistics outputs are used");
	in[2] = adj_out(c, 1, DT_F32, s);
	in[3] = adj_out(c, 2, DT_F32, s);
	in[4] = scale;
	a.BATCHNORM_GRAD.eps = c->n.attr.BATCHNORM.eps;
	out = adj_node(c, OP_BATCHNORM_GRAD, scale ? 5 : 4, in, &a, 3, keep);
	for (int k = 0; out && k < 3; k++)
		if (out[k])
			c->dx[k] = out[k];
	return true;
}

bool
grad_maxpool(struct grad *c)
{
	Attr a = attr_default(OP_MAXPOOL_GRAD);
	ValId in[2] = { c->dy[0] };

	in[1] = adj_out(c, 1, DT_I32, *adj_shape(c, c->n.out[0]));
	a.MAXPOOL_GRAD.out = spatial_extents(c, c->n.in[0]);
	c->dx[0] = adj_op(c, OP_MAXPOOL_GRAD, 2, in, &a);
	return true;
}

bool
grad_avgpool(struct grad *c)
{
	Attr a = attr_default(OP_AVGPOOL_GRAD);

	a.AVGPOOL_GRAD.stride = c->n.attr.AVGPOOL.stride;
	a.AVGPOOL_GRAD.dilation = c->n.attr.AVGPOOL.dilation;
	a.AVGPOOL_GRAD.begin = c->n.attr.AVGPOOL.begin;
	a.AVGPOOL_GRAD.end = c->n.attr.AVGPOOL.end;
	a.AVGPOOL_GRAD.kernel = c->n.attr.AVGPOOL.kernel;
	a.AVGPOOL_GRAD.ceil = c->n.attr.AVGPOOL.ceil;
	a.AVGPOOL_GRAD.include = c->n.attr.AVGPOOL.include;
	a.AVGPOOL_GRAD.out = spatial_extents(c, c->n.in[0]);
	c->dx[0] = adj_op(c, OP_AVGPOOL_GRAD, 1, c->dy, &a);
	return true;
}

bool
grad_resize(struct grad *c)
{
	Attr a = c->n.attr;

	a.RESIZE.bwd = !a.RESIZE.bwd;
	a.RESIZE.fill = 0;
	c->dx[0] = adj_op(c, OP_RESIZE, 1, c->dy, &a);
	return true;
}

bool
grad_grid_sample(struct grad *c)
{
	Attr a = attr_default(OP_GRID_SAMPLE_GRAD);
	bool moves = c->want[1] && c->n.attr.GRID_SAMPLE.mode != 0;
	const bool keep[2] = { c->want[0], moves };
	ValId in[3] = { c->dy[0], c->n.in[1], c->n.in[0] };
	const ValId *out;

	if (c->want[1] && !moves)
		c->dx[1] = adj_zeros(c, adj_dt(c, c->n.in[1]),
		                     adj_shape(c, c->n.in[1]));
	if (!keep[0] && !keep[1])
		return true;
	a.GRID_SAMPLE_GRAD.mode = c->n.attr.GRID_SAMPLE.mode;
	a.GRID_SAMPLE_GRAD.padding = c->n.attr.GRID_SAMPLE.padding;
	a.GRID_SAMPLE_GRAD.align = c->n.attr.GRID_SAMPLE.align;
	a.GRID_SAMPLE_GRAD.out = spatial_extents(c, c->n.in[0]);
	out = adj_node(c, OP_GRID_SAMPLE_GRAD, moves ? 3 : 2, in, &a, 2, keep);
	for (int k = 0; out && k < 2; k++)
		if (out[k])
			c->dx[k] = out[k];
	return true;
}
