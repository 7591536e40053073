/* Shape rules: convolutions, batch normalisation, pools.
 *
 * Incomplete attributes (empty lists, pads that follow from the extents) are
 * completed here as soon as shapes allow it.
 */
#include "ir/infer/rules.h"

#include "ir/window.h"

struct lists {
	IntList *stride, *dilation, *begin, *end;
	int64_t *same;
};

#define LISTS(c, id) \
	((struct lists){ &(c)->n->attr.id.stride, &(c)->n->attr.id.dilation, \
	                 &(c)->n->attr.id.begin, &(c)->n->attr.id.end, \
	                 &(c)->n->attr.id.same })

/* Complete a list for n dims and check its elements. */
static bool
complete_list(struct infer *c, IntList *l, int n, int64_t otherwise,
	      const char *what)
{
	if (l->n == 0)
		for (; l->n < n; l->n++)
			l->v[l->n] = otherwise;
	if (l->n != n)
		return rule_fail(c, "expected one value per spatial dim in %s: "
		                 "expected %d, found %d", what, n, l->n);
	for (int i = 0; i < n; i++)
		if (l->v[i] < otherwise || l->v[i] > WINDOW_MAX)
			return rule_fail(c, "%s: %lld is out of range", what,
					 (long long)l->v[i]);
	return true;
}

/* Spatial dims of a value of this rank; 0 after a diagnostic. */
static int
count_spatial_dims(struct infer *c, int rank)
{
	if (rank >= 3 && rank <= 2 + WINDOW_DIMS)
		return rank - 2;
	rule_fail(c, "expected shape [N, C, ...] with one to three spatial "
		  "dims, found rank %d", rank);
	return 0;
}

static bool
complete_lists(struct infer *c, const struct lists *l, int n)
{
	return complete_list(c, l->stride, n, 1, "strides")
	       && complete_list(c, l->dilation, n, 1, "dilations")
	       && complete_list(c, l->begin, n, 0, "pads")
	       && complete_list(c, l->end, n, 0, "pads");
}

/* Divide `total` padding between both ends. */
static void
share_padding(const struct lists *l, int i, int64_t total)
{
	if (total < 0)
		total = 0;
	l->begin->v[i] = *l->same == 1 ? total / 2 : total - total / 2;
	l->end->v[i] = total - l->begin->v[i];
}

/* Windows over dims 2.. of x, whose kernels are given.  Resolves `same`. */
static bool
slide(struct infer *c, const struct lists *l, const Shape *x,
      const int64_t *kernel, bool ceil, Shape *y)
{
	int n = x->rank - 2;
	bool known = true;

	for (int i = 0; i < n; i++) {
		int64_t in = x->dim[2 + i], k = kernel[i], out;
		int64_t s = l->stride->v[i], d = l->dilation->v[i], pads;

		y->dim[2 + i] = -1;
		known &= in >= 0 && k >= 0;
		if (in < 0 || k < 0)
			continue;
		if (k == 0)
			return rule_fail(c, "the kernel is empty");
		if (*l->same) {
			y->dim[2 + i] = out = (in + s - 1) / s;
			if (!mul_ok(k - 1, d, &pads)
			    || !add_ok(pads, (out - 1) * s + 1 - in, &pads))
				return rule_fail(c, "the kernel is too large");
			share_padding(l, i, pads);
			continue;
		}
		pads = l->begin->v[i] + l->end->v[i];
		out = window_count(in, k, s, d, pads + (ceil ? s - 1 : 0));
		if (ceil && out > 0
		    && (out - 1) * s >= in + l->begin->v[i])
			out--;
		if (out < 0)
			return rule_fail(c, "axis %d: kernel extent %lld "
					 "exceeds the padded input extent %lld",
					 2 + i,
					 (long long)((k - 1) * d + 1),
					 (long long)(in + pads));
		y->dim[2 + i] = out;
	}
	if (known)
		*l->same = 0;
	return true;
}

/* ---- convolutions ---- */

/* Channels of x (or w) against what the weights say. */
static bool
check_channels(struct infer *c, int64_t found, int64_t each, int64_t group,
	       const char *what)
{
	int64_t want;

	if (each < 0 || found < 0)
		return true;
	if (!mul_ok(each, group, &want) || want != found)
		return rule_fail(c, "%s has the wrong number of channels: "
				 "expected %lld in each of %lld group%s, found "
				 "%lld", what, (long long)each,
				 (long long)group, group == 1 ? "" : "s",
				 (long long)found);
	return true;
}

static bool
check_group(struct infer *c, int64_t group, int64_t outputs)
{
	if (group < 1 || (outputs >= 0 && outputs % group))
		return rule_fail(c, "%lld output channels are not divisible "
		                 "into %lld groups",
				 (long long)outputs, (long long)group);
	return true;
}

/* Operands 0 and 1, which have the same rank; unknown if nothing is known. */
static bool
conv_operands(struct infer *c, Shape *a, Shape *b)
{
	*a = shape_of(c, 0);
	*b = shape_of(c, 1);
	if (!rule_want_class(c, 0, "f", "floats") || !rule_same_type(c, 0, 1))
		return false;
	if (a->rank >= 0 && b->rank >= 0 && a->rank != b->rank)
		return rule_fail(c, "operands have different ranks: %d and %d",
		                 a->rank,
		                 b->rank);
	if (a->rank < 0)
		*a = unknown(b->rank);
	if (b->rank < 0)
		*b = unknown(a->rank);
	return a->rank < 0 || count_spatial_dims(c, a->rank) > 0;
}

static bool
check_bias(struct infer *c, int64_t channels)
{
	Shape s = SHAPE(channels);

	return rule_want_shape(c, 2, &s, "bias") && rule_same_type(c, 0, 2);
}

bool
infer_conv(struct infer *c)
{
	struct lists l = LISTS(c, CONV);
	int64_t group = c->n->attr.CONV.group;
	Shape x, w, y;

	if (!conv_operands(c, &x, &w))
		return false;
	if (x.rank < 0)
		return rule_shape(c, x);
	y = unknown(x.rank);
	y.dim[0] = x.dim[0];
	y.dim[1] = w.dim[0];
	return check_group(c, group, w.dim[0])
	       && check_channels(c, x.dim[1], w.dim[1], group, "the operand")
	       && complete_lists(c, &l, x.rank - 2) && check_bias(c, w.dim[0])
	       && slide(c, &l, &x, w.dim + 2, false, &y)
	       && rule_shape(c, y);
}

/* Extent i of the side that windows slide over, -1 if unknown. */
static bool
unslide(struct infer *c, const struct lists *l, int i, int64_t count,
	int64_t k, int64_t *extent)
{
	const IntList *out = &c->n->attr.CONV_DX.out;
	int64_t s = l->stride->v[i], reach, all, full;

	*extent = out->n ? out->v[i] : -1;
	if (count < 0 || k < 0)
		return true;
	if (k == 0 || !mul_ok(k - 1, l->dilation->v[i], &reach)
	    || !mul_ok(count, s, &full) || !add_ok(full, reach + 1 - s, &all)
	    || !add_ok(all, c->n->attr.CONV_DX.extra.v[i], &all))
		return rule_fail(c, "the kernel is empty or too large");
	if (*extent < 0)
		*extent = *l->same ? full
			: all - l->begin->v[i] - l->end->v[i];
	if (*extent < 0 || *extent > (int64_t)1 << 40)
		return rule_fail(c, "axis %d: extent %lld is out of range",
		                 2 + i,
				 (long long)*extent);
	if (*l->same)
		share_padding(l, i, all - *extent);
	return true;
}

bool
infer_conv_dx(struct infer *c)
{
	struct lists l = LISTS(c, CONV_DX);
	IntList *out = &c->n->attr.CONV_DX.out, known = { 0 };
	int64_t group = c->n->attr.CONV_DX.group;
	Shape dy, w, x;
	int n;

	if (!conv_operands(c, &dy, &w))
		return false;
	if (dy.rank < 0)
		return rule_shape(c, dy);
	n = dy.rank - 2;
	x = unknown(dy.rank);
	x.dim[0] = dy.dim[0];
	if (w.dim[1] >= 0 && !mul_ok(w.dim[1], group, &x.dim[1]))
		return rule_fail(c, "too many channels");
	if (!check_group(c, group, w.dim[0])
	    || !check_channels(c, dy.dim[1], w.dim[0], 1, "the operand")
	    || !complete_lists(c, &l, n)
	    || !complete_list(c, &c->n->attr.CONV_DX.extra, n, 0,
	                      "output padding")
	    || !check_bias(c, x.dim[1]))
		return false;
	if (out->n && out->n != n)
		return rule_fail(c, "expected %d spatial extents, found %d", n,
				 out->n);
	for (int i = 0; i < n; i++) {
		if (!unslide(c, &l, i, dy.dim[2 + i], w.dim[2 + i],
			     &x.dim[2 + i]))
			return false;
		if (x.dim[2 + i] >= 0 && dy.dim[2 + i] >= 0
		    && w.dim[2 + i] >= 0)
			known.v[known.n++] = x.dim[2 + i];
	}
	if (known.n == n) {
		*out = known;
		*l.same = 0;
	}
	return rule_shape(c, x);
}

bool
infer_conv_dw(struct infer *c)
{
	struct lists l = LISTS(c, CONV_DW);
	const IntList *k = &c->n->attr.CONV_DW.kernel;
	int64_t group = c->n->attr.CONV_DW.group;
	Shape x, dy, w;
	int n;

	if (!conv_operands(c, &x, &dy))
		return false;
	if (x.rank < 0)
		return rule_shape(c, x);
	n = x.rank - 2;
	w = unknown(x.rank);
	if (k->n != n || group < 1)
		return rule_fail(c, "expected a kernel of %d dims, found %d", n,
				 k->n);
	if (x.dim[0] >= 0 && dy.dim[0] >= 0 && x.dim[0] != dy.dim[0])
		return rule_fail(c, "batch sizes differ: %lld images and %lld "
		                 "gradients",
				 (long long)x.dim[0], (long long)dy.dim[0]);
	w.dim[0] = dy.dim[1];
	w.dim[1] = x.dim[1] < 0 ? -1 : x.dim[1] / group;
	for (int i = 0; i < n; i++)
		w.dim[2 + i] = k->v[i];
	return check_group(c, group, dy.dim[1])
	       && check_channels(c, x.dim[1], w.dim[1], group, "the operand")
	       && complete_lists(c, &l, n)
	       && rule_shape(c, w);
}

/* ---- batch normalisation ---- */

/* Channels of operand x as a shape. */
static bool
channels_of(struct infer *c, int x, Shape *s)
{
	*s = SHAPE(-1);
	if (!rule_want_rank(c, x, 2) || !rule_want_class(c, x, "f", "floats"))
		return false;
	if (in(c, x)->shape.rank >= 2)
		s->dim[0] = in(c, x)->shape.dim[1];
	return true;
}

bool
infer_batchnorm(struct infer *c)
{
	Shape s;

	return channels_of(c, 0, &s)
	       && rule_want_shape(c, 1, &s, "scale")
	       && rule_want_shape(c, 2, &s, "bias")
	       && rule_shape(c, shape_of(c, 0))
	       && rule_result(c, 1, DT_F32, s) && rule_result(c, 2, DT_F32, s);
}

bool
infer_batchnorm_grad(struct infer *c)
{
	Shape s, x = shape_of(c, 1);

	if (!channels_of(c, 1, &s) || !rule_want_shape(c, 0, &x, "adjoint")
	    || !rule_want_shape(c, 2, &s, "mean")
	    || !rule_want_shape(c, 3, &s, "variance")
	    || !rule_want_shape(c, 4, &s, "scale"))
		return false;
	return rule_result(c, 0, in(c, 1)->dt, x)
	       && rule_result(c, 1, has(c, 4) ? in(c, 4)->dt : DT_F32, s)
	       && rule_result(c, 2, has(c, 4) ? in(c, 4)->dt : DT_F32, s);
}

/* ---- pools ---- */

static bool
pool(struct infer *c, const struct lists *l, IntList *kernel, bool ceil,
     Shape *y)
{
	Shape x = shape_of(c, 0);
	int n;

	*y = unknown(-1);
	if (!rule_want_class(c, 0, "f", "floats"))
		return false;
	if (x.rank < 0)
		return true;
	n = count_spatial_dims(c, x.rank);
	if (!n || !complete_lists(c, l, n))
		return false;
	if (kernel->n != n)
		return rule_fail(c, "expected a kernel of %d dims, found %d", n,
				 kernel->n);
	for (int i = 0; i < n; i++)
		if (kernel->v[i] < 1 || kernel->v[i] > WINDOW_MAX)
			return rule_fail(c, "kernel extent %lld is out of "
				"range", (long long)kernel->v[i]);
	*y = unknown(x.rank);
	y->dim[0] = x.dim[0];
	y->dim[1] = x.dim[1];
	return slide(c, l, &x, kernel->v, ceil, y);
}

bool
infer_maxpool(struct infer *c)
{
	struct lists l = LISTS(c, MAXPOOL);
	Shape y, x = shape_of(c, 0);

	if (!pool(c, &l, &c->n->attr.MAXPOOL.kernel, c->n->attr.MAXPOOL.ceil,
		  &y))
		return false;
	if (shape_known(&x)) {
		x.dim[0] = x.dim[1] = 1;
		if (shape_nelem(&x) < 0 || shape_nelem(&x) > INT32_MAX)
			return rule_fail(c, "images of more than 2^31 - 1 "
				"elements per channel are not supported");
	}
	return rule_shape(c, y) && rule_result(c, 1, DT_I32, y);
}

bool
infer_avgpool(struct infer *c)
{
	struct lists l = LISTS(c, AVGPOOL);
	Shape y;

	return pool(c, &l, &c->n->attr.AVGPOOL.kernel,
		    c->n->attr.AVGPOOL.ceil, &y)
	       && rule_shape(c, y);
}

/* The adjoint's shape with other spatial extents. */
static bool
unpooled(struct infer *c, const IntList *out, Shape *x)
{
	*x = shape_of(c, 0);
	if (x->rank < 0)
		return true;
	if (!count_spatial_dims(c, x->rank))
		return false;
	if (out->n != x->rank - 2)
		return rule_fail(c, "expected %d spatial extents, found %d",
				 x->rank - 2, out->n);
	for (int i = 0; i < out->n; i++) {
		if (out->v[i] < 0)
			return rule_fail(c, "extent %lld is out of range",
					 (long long)out->v[i]);
		x->dim[2 + i] = out->v[i];
	}
	return true;
}

bool
infer_maxpool_grad(struct infer *c)
{
	Shape x, dy = shape_of(c, 0);

	return rule_want_class(c, 0, "f", "floats")
	       && rule_want_shape(c, 1, &dy, "positions")
	       && rule_want_class(c, 1, "i", "positions")
	       && unpooled(c, &c->n->attr.MAXPOOL_GRAD.out, &x)
	       && rule_shape(c, x);
}

bool
infer_avgpool_grad(struct infer *c)
{
	struct lists l = LISTS(c, AVGPOOL_GRAD);
	Shape x, dy = shape_of(c, 0);
	int n = dy.rank - 2;

	if (!rule_want_class(c, 0, "f", "floats")
	    || !unpooled(c, &c->n->attr.AVGPOOL_GRAD.out, &x))
		return false;
	if (dy.rank >= 0 && (!complete_lists(c, &l, n)
	    || c->n->attr.AVGPOOL_GRAD.kernel.n != n))
		return rule_fail(c, "kernel, strides and pads do not match the "
		                 "rank of the operand");
	return rule_shape(c, x);
}
