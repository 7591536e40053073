/* Convolutions.  If the kernel is as large as its stride, patches do not
 * overlap (patch embeddings), and the convolution becomes a matrix product.
 *
 *   x [N,C,H,W] -> [N,C,h,kh,w,kw] -> [N,h,w,C,kh,kw] -> [N,hw,C*kh*kw]
 *     -> times [O,C*kh*kw] transposed -> [N,hw,O] -> [N,O,hw] -> [N,O,h,w]
 *
 * The graph computes extents that are known only after binding.  Rows that no
 * stride reaches are cut off first.
 */
#include "frontend/import/node_import.h"

#include <string.h>

enum { MAX_SPATIAL = 3 };               /* 2 + 2 * 3 is MAX_RANK */

struct patch {
	int n;                          /* spatial dims */
	int64_t out, in, k[MAX_SPATIAL];
};

/* Whether all elements of an attribute are x, or it is absent. */
static bool
all_ints_are(const struct flat_node *n, const char *name, int64_t x)
{
	const Onnx__AttributeProto *a = attr_find(n, name);

	for (size_t i = 0; a && i < a->n_ints; i++)
		if (a->ints[i] != x)
			return false;
	return true;
}

static bool
read_patch(const struct flat *f, const struct flat_node *n, struct patch *p)
{
	const Onnx__TensorProto *w = n->nin > 1 ? flat_tensor(f, n->in[1])
	                                        : NULL;
	const Onnx__AttributeProto *s = attr_find(n, "strides");
	const Onnx__AttributeProto *g = attr_find(n, "group");
	const Onnx__AttributeProto *pad = attr_find(n, "auto_pad");
	bool all_ones = true;

	if (!w || w->n_dims < 3 || w->n_dims > 2 + MAX_SPATIAL
	    || (g && g->i != 1) || !all_ints_are(n, "pads", 0)
	    || !all_ints_are(n, "dilations", 1)
	    || (pad && strncmp((const char *)pad->s.data, "SAME", 4) == 0
	        && pad->s.len >= 4))
		return false;
	p->n = (int)w->n_dims - 2;
	p->out = w->dims[0];
	p->in = w->dims[1];
	for (int i = 0; i < p->n; i++) {
		int64_t stride = s && (size_t)i < s->n_ints ? s->ints[i] : 1;

		p->k[i] = w->dims[2 + i];
		if (p->k[i] < 1 || p->k[i] != stride)
			return false;
		all_ones &= stride == 1;
	}
	return p->out > 0 && p->in > 0 && !all_ones;
}

/* Whether kernel_shape, if given, agrees with the weight. */
static bool
check_kernel(struct importer *m, const IntList *kernel)
{
	const Shape *w = &m->g->val[imp_in(m, 1)].shape;

	if (w->rank < 0 || kernel->n == 0)
		return true;
	if (kernel->n != w->rank - 2)
		return imp_fail(m, "kernel_shape has %d extents, but the "
		                "weight has rank %d", kernel->n, w->rank);
	for (int i = 0; i < kernel->n; i++)
		if (w->dim[2 + i] >= 0 && w->dim[2 + i] != kernel->v[i])
			return imp_fail(m, "kernel_shape has extent %jd, but "
			                "the weight has %jd",
			                (intmax_t)kernel->v[i],
			                (intmax_t)w->dim[2 + i]);
	return true;
}

static ValId
shape_extent(struct importer *m, ValId shape, int64_t axis)
{
	return binary(m, OP_GATHER, shape, imp_one(m, axis));
}

/* x without the rows that no patch reaches: ends are counts * k. */
static ValId
crop(struct importer *m, ValId x, const struct patch *p, const ValId *count)
{
	int64_t zero[MAX_SPATIAL] = { 0 }, axes[MAX_SPATIAL];
	ValId ends[MAX_SPATIAL];

	for (int i = 0; i < p->n; i++) {
		axes[i] = 2 + i;
		ends[i] = binary(m, OP_MUL, count[i], imp_one(m, p->k[i]));
	}
	return EMIT_NODE(m, OP_SLICE, NULL, x, imp_ints(m, p->n, zero),
	                 imp_concat(m, 0, p->n, ends),
	                 imp_ints(m, p->n, axes));
}

static bool
run_patches(struct importer *m, const struct patch *p)
{
	Attr mm = attr_default(OP_MATMUL);
	ValId x = imp_in(m, 0), w = imp_in(m, 1), shape, y;
	ValId count[MAX_SPATIAL], split[MAX_RANK], flat[3], dim[MAX_RANK];
	IntList perm = { 2 + 2 * p->n, { 0 } };
	int64_t k = 1;

	attr_has(&m->r, "group");
	if (!mul_ok(k, p->in, &k))
		return imp_fail(m, "the kernel is too large");
	shape = unary(m, OP_SHAPE, x);
	split[0] = dim[0] = flat[0] = shape_extent(m, shape, 0);
	split[1] = imp_one(m, p->in);
	perm.v[p->n + 1] = 1;
	for (int i = 0; i < p->n; i++) {
		if (!mul_ok(k, p->k[i], &k))
			return imp_fail(m, "the kernel is too large");
		count[i] = EMIT_NODE(m, OP_DIV, NULL,
		                     shape_extent(m, shape, 2 + i),
		                     imp_one(m, p->k[i]));
		split[2 + 2 * i] = dim[2 + i] = count[i];
		split[3 + 2 * i] = imp_one(m, p->k[i]);
		perm.v[1 + i] = 2 + 2 * i;
		perm.v[p->n + 2 + i] = 3 + 2 * i;
	}
	y = imp_reshape(m, crop(m, x, p, count), 2 + 2 * p->n, split);
	y = imp_transpose(m, y, perm);
	flat[1] = imp_one(m, -1);
	flat[2] = imp_one(m, k);
	y = imp_reshape(m, y, 3, flat);
	flat[0] = dim[1] = imp_one(m, p->out);
	flat[1] = flat[2];
	mm.MATMUL.tb = 1;
	y = EMIT_NODE(m, OP_MATMUL, &mm, y, imp_reshape(m, w, 2, flat),
	              imp_in(m, 2));
	y = imp_transpose(m, y, (IntList){ 3, { 0, 2, 1 } });
	return set_output(m, imp_reshape(m, y, 2 + p->n, dim));
}

bool
run_conv(struct importer *m)
{
	Attr a = attr_default(OP_CONV);
	IntList kernel;
	struct patch p;

	if (!imp_windows(m, OP_CONV, &a, &kernel) || !check_kernel(m, &kernel))
		return false;
	if (read_patch(m->f, m->n, &p))
		return run_patches(m, &p);
	a.CONV.group = attr_int(&m->r, "group", 1);
	return imp_same(m, OP_CONV, &a);
}

/* output_shape fixes the extents and so the pads; an odd one goes in front
 * unless auto_pad is SAME_UPPER. */
bool
run_conv_transpose(struct importer *m)
{
	Attr a = attr_default(OP_CONV_DX);
	IntList kernel;

	if (!imp_windows(m, OP_CONV_DX, &a, &kernel)
	    || !check_kernel(m, &kernel)
	    || !imp_list(m, "output_padding", &a.CONV_DX.extra)
	    || !imp_list(m, "output_shape", &a.CONV_DX.out))
		return false;
	if (a.CONV_DX.out.n && !a.CONV_DX.same)
		a.CONV_DX.same = 2;
	a.CONV_DX.group = attr_int(&m->r, "group", 1);
	return imp_same(m, OP_CONV_DX, &a);
}

bool
run_col2im(struct importer *m)
{
	Attr a = attr_default(OP_COL2IM);
	IntList kernel;

	return imp_windows(m, OP_COL2IM, &a, &kernel)
	       && imp_same(m, OP_COL2IM, &a);
}
