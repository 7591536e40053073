/* Attributes of sliding windows; pools; batch, instance and group
 * normalisation.
 *
 * Ranks are mostly unknown here, so the graph computes shapes over all spatial
 * dims from the operand's shape.
 */
#include "frontend/import/load_flat.h"
#include "frontend/import/node_import.h"

/* ---- attributes ---- */

bool
imp_windows(struct importer *m, Op op, Attr *to, IntList *kernel)
{
	static const char *const words[] = { "NOTSET", "SAME_UPPER",
		                             "SAME_LOWER", "VALID" };
	int64_t auto_pad = attr_word(&m->r, "auto_pad", 0, words, 4);
	int64_t *same = attr_int_of(op, to, "same");
	IntList *begin = attr_list_of(op, to, "begin");
	IntList *end = attr_list_of(op, to, "end");
	IntList *own = attr_list_of(op, to, "kernel");
	struct attr_ints pads;

	attr_ints(&m->r, "pads", &pads);
	if (pads.n % 2 || pads.n > 2 * MAX_RANK)
		return imp_fail(m, "pads: expected two values per spatial dim, "
		                "found %d values", pads.n);
	for (int i = 0; i < pads.n / 2 && !auto_pad; i++) {
		begin->v[begin->n++] = pads.v[i];
		end->v[end->n++] = pads.v[pads.n / 2 + i];
	}
	if (same)
		*same = auto_pad == 3 ? 0 : auto_pad;
	if (!imp_list(m, "strides", attr_list_of(op, to, "stride"))
	    || !imp_list(m, "dilations", attr_list_of(op, to, "dilation"))
	    || !imp_list(m, "kernel_shape", kernel))
		return false;
	if (own)
		*own = *kernel;
	return true;
}

/* ---- shapes ---- */

static ValId
emit_shape(struct importer *m, ValId x)
{
	return unary(m, OP_SHAPE, x);
}

static ValId
concat_pair(struct importer *m, ValId a, ValId b)
{
	return imp_concat(m, 0, 2, (ValId[]){ a, b });
}

/* Elements from..to-1 of a list. */
static ValId
slice_list(struct importer *m, ValId list, int64_t from, int64_t to)
{
	return EMIT_NODE(m, OP_SLICE, NULL, list, imp_one(m, from),
	                 imp_one(m, to), imp_one(m, 0));
}

/* A list with a one for each spatial dim of x. */
static ValId
spatial_ones(struct importer *m, ValId x)
{
	return imp_ones(m, emit_shape(m, slice_list(m, emit_shape(m, x), 2,
	                                            INT64_MAX)), DT_I64);
}

static ValId
reshape_to(struct importer *m, ValId x, ValId shape)
{
	return binary(m, OP_RESHAPE, x, shape);
}

static ValId
reshape_ints(struct importer *m, ValId x, int n, const int64_t *dim)
{
	return reshape_to(m, x, imp_ints(m, n, dim));
}

/* A vector with one element per channel, to broadcast against x. */
static ValId
channel_vector(struct importer *m, ValId v, ValId x)
{
	return v ? reshape_to(m, v, concat_pair(m, imp_one(m, -1),
	                                        spatial_ones(m, x))) : 0;
}

/* x * scale + bias by channels. */
static ValId
affine(struct importer *m, ValId x, ValId scale, ValId bias, ValId like)
{
	x = binary(m, OP_MUL, x, channel_vector(m, scale, like));
	return binary(m, OP_ADD, x, channel_vector(m, bias, like));
}

/* ---- pools ---- */

/* The product of elements from..to-1 of a list, as a list. */
static ValId
extents(struct importer *m, ValId list, int64_t from, int64_t to)
{
	return imp_reduce(m, OP_REDUCE_PROD, slice_list(m, list, from, to), 0,
	                  &(IntList){ 1, { 0 } }, true, false);
}

/* Where each plane of [N, C, d...] begins in the whole tensor. */
static ValId
plane_starts(struct importer *m, ValId shape)
{
	ValId count = imp_scalar_of(m, extents(m, shape, 0, 2));

	return binary(m, OP_MUL, imp_range(m, count),
	              extents(m, shape, 2, INT64_MAX));
}

/* ONNX counts positions over the whole tensor. */
static void
out_indices(struct importer *m, ValId x, ValId idx, bool columns)
{
	ValId s = emit_shape(m, x), w, h, base = plane_starts(m, s);

	idx = imp_cast(m, idx, DT_I64);
	if (columns) {
		h = slice_list(m, s, 2, 3);
		w = slice_list(m, s, 3, 4);
		idx = binary(m, OP_ADD, binary(m, OP_DIV, idx, w),
		             binary(m, OP_MUL, binary(m, OP_MOD, idx, w), h));
	}
	base = reshape_to(m, base, concat_pair(m, slice_list(m, s, 0, 2),
	                                       spatial_ones(m, x)));
	imp_out(m, 1, binary(m, OP_ADD, idx, base));
}

bool
run_maxpool(struct importer *m)
{
	Attr a = imp_attrs(m, OP_MAXPOOL);
	bool columns = attr_int(&m->r, "storage_order", 0) != 0;
	ValId x = imp_in(m, 0), y;
	IntList kernel;

	if (!imp_windows(m, OP_MAXPOOL, &a, &kernel))
		return false;
	if (columns && kernel.n != 2 && imp_is_used(m, 1))
		return imp_fail(m, "storage_order=1 is supported only for two "
		                "spatial dims");
	y = EMIT_NODE(m, OP_MAXPOOL, &a, x);
	imp_out(m, 0, y);
	if (imp_is_used(m, 1))
		out_indices(m, x, imp_output(m, y, 1), columns);
	return true;
}

/* The shape of the pool's input: given as an operand, or the smallest. */
static ValId
unpooled_shape(struct importer *m, const Attr *pool)
{
	ValId s = emit_shape(m, imp_in(m, 0)), d = slice_list(m, s, 2,
	                                                      INT64_MAX);
	const IntList *kernel = &pool->MAXPOOL.kernel;
	const IntList *begin = &pool->MAXPOOL.begin;
	const IntList *stride = &pool->MAXPOOL.stride;
	int n = kernel->n;
	int64_t more[MAX_RANK];

	if (imp_has(m, 2))
		return imp_in(m, 2);
	for (int i = 0; i < n; i++)
		more[i] = kernel->v[i]
			- (begin->n ? begin->v[i] + pool->MAXPOOL.end.v[i] : 0);
	d = binary(m, OP_SUB, d, imp_one(m, 1));
	if (stride->n)
		d = binary(m, OP_MUL, d, imp_ints(m, n, stride->v));
	d = binary(m, OP_ADD, d, imp_ints(m, n, more));
	return concat_pair(m, slice_list(m, s, 0, 2), d);
}

/* Each element goes to its index, which counts over the whole output, even an
 * output larger than necessary, as in ONNX Runtime and PyTorch.  The index must
 * lie in the element's own plane. */
bool
run_maxunpool(struct importer *m)
{
	Attr a = attr_default(OP_SCATTER_ELEMENTS);
	Attr pool = attr_default(OP_MAXPOOL);
	ValId x = imp_in(m, 0), idx, shape, rows, planes, plane, in[3];
	int strides, pads;
	IntList kernel;

	if (!imp_windows(m, OP_MAXPOOL, &pool, &kernel))
		return false;
	strides = pool.MAXPOOL.stride.n;
	pads = pool.MAXPOOL.begin.n;
	if (kernel.n < 1 || (strides && strides != kernel.n)
	    || (pads && pads != kernel.n))
		return imp_fail(m, "kernel_shape, strides and pads have "
		                "different lengths");
	shape = unpooled_shape(m, &pool);
	rows = extents(m, shape, 0, 2);
	plane = extents(m, shape, 2, INT64_MAX);
	planes = concat_pair(m, rows, plane);
	idx = reshape_to(m, imp_cast(m, imp_in(m, 1), DT_I64),
	                 concat_pair(m, rows, imp_one(m, -1)));
	idx = binary(m, OP_SUB, idx, reshape_to(m, plane_starts(m, shape),
	             concat_pair(m, rows, imp_one(m, 1))));
	in[0] = EMIT_NODE(m, OP_CAST_LIKE, NULL, EMIT_NODE(m,
	                  OP_CONSTANT_OF_SHAPE, NULL, planes), x);
	in[1] = EMIT_NODE(m, OP_WHERE, NULL, binary(m, OP_LT, idx,
	                  imp_scalar(m, 0)), plane, idx);
	in[2] = reshape_to(m, x, concat_pair(m, rows, imp_one(m, -1)));
	a.SCATTER_ELEMENTS.axis = 1;
	x = imp_node(m, OP_SCATTER_ELEMENTS, &a, 3, in);
	return set_output(m, reshape_to(m, x, shape));
}

bool
run_avgpool(struct importer *m)
{
	Attr a = imp_attrs(m, OP_AVGPOOL);
	IntList kernel;

	return imp_windows(m, OP_AVGPOOL, &a, &kernel)
	       && imp_same(m, OP_AVGPOOL, &a);
}

/* GlobalAveragePool, GlobalMaxPool: over all spatial dims merged into one. */
bool
run_global_pool(struct importer *m)
{
	static const int64_t flat[] = { 0, 0, -1 };
	ValId x = imp_in(m, 0), y = reshape_ints(m, x, 3, flat);

	y = imp_reduce(m, m->n->op->ir, y, 0, &(IntList){ 1, { 2 } }, true,
	               false);
	return set_output(m, reshape_to(m, y, concat_pair(m,
		slice_list(m, emit_shape(m, x), 0, 2), spatial_ones(m, x))));
}

/* LpPool: the root of a mean of powers times the size of the window, which is
 * the mean's divisor if padding counts. */
bool
run_lppool(struct importer *m)
{
	Attr a = attr_default(OP_AVGPOOL);
	int64_t p = attr_int(&m->r, "p", 2);
	double volume = 1;
	ValId x = EMIT_NODE(m, OP_ABS, NULL, imp_in(m, 0));
	IntList kernel;

	if (!imp_windows(m, OP_AVGPOOL, &a, &kernel))
		return false;
	if (attr_int(&m->r, "ceil_mode", 0) || p < 1)
		return imp_fail(m, "ceil_mode and p < 1 are not supported");
	a.AVGPOOL.include = 1;
	for (int i = 0; i < kernel.n; i++)
		volume *= (double)kernel.v[i];
	x = EMIT_NODE(m, OP_AVGPOOL, &a, with(m, OP_POW, x, (double)p));
	x = with(m, OP_MUL, x, volume);
	return set_output(m, with(m, OP_POW, x, 1 / (double)p));
}

/* LRN: x / (bias + alpha * mean of squares over nearby channels)^beta.  The
 * mean is a pool over channels and (all spatial dims as one). */
bool
run_lrn(struct importer *m)
{
	static const IntList turn = { 3, { 0, 2, 1 } };
	Attr a = attr_default(OP_AVGPOOL);
	int64_t size = attr_int(&m->r, "size", 0);
	double alpha = attr_float(&m->r, "alpha", 1e-4f);
	double beta = attr_float(&m->r, "beta", 0.75f);
	double bias = attr_float(&m->r, "bias", 1);
	static const int64_t flat[] = { 0, 0, -1 };
	ValId x = imp_in(m, 0), s;

	if (size < 1 || size > 1 << 20)
		return imp_fail(m, "size %jd is out of range", (intmax_t)size);
	a.AVGPOOL.kernel = (IntList){ 2, { 1, size } };
	a.AVGPOOL.begin = (IntList){ 2, { 0, (size - 1) / 2 } };
	a.AVGPOOL.end = (IntList){ 2, { 0, size / 2 } };
	a.AVGPOOL.include = 1;
	/* [N, C, S] -> [N, S, C] -> [N, 1, S, C] and back */
	s = reshape_ints(m, binary(m, OP_MUL, x, x), 3, flat);
	s = imp_transpose(m, s, turn);
	s = reshape_to(m, s, concat_pair(m,
		concat_pair(m, slice_list(m, emit_shape(m, s), 0, 1),
		            imp_one(m, 1)),
		slice_list(m, emit_shape(m, s), 1, 3)));
	s = EMIT_NODE(m, OP_AVGPOOL, &a, s);
	s = reshape_to(m, s, concat_pair(m,
		slice_list(m, emit_shape(m, s), 0, 1),
		slice_list(m, emit_shape(m, s), 2, 4)));
	s = imp_transpose(m, s, turn);
	s = reshape_to(m, s, emit_shape(m, x));
	s = binary(m, OP_MUL, s, imp_like(m, x, alpha));
	s = binary(m, OP_ADD, s, imp_like(m, x, bias));
	s = binary(m, OP_POW, s, imp_like(m, x, beta));
	return set_output(m, binary(m, OP_DIV, x, s));
}

/* ---- normalisation ---- */

/* The newest value of a running statistic: a module called twice updates its
 * statistics twice. */
static ValId
newest(const struct importer *m, ValId v)
{
	FOR_NODES (n, m->g)
		if (n->op == OP_BN_UPDATE && n->in[0] == v)
			v = n->out[0];
	return v;
}

/* The batch variance that PyTorch stores: n / (n - 1) times the variance that
 * it normalises by. */
static ValId
unbiased(struct importer *m, ValId x, ValId var)
{
	ValId n = binary(m, OP_DIV, unary(m, OP_SIZE, x),
	                 unary(m, OP_SIZE, var));
	ValId less = binary(m, OP_MAX, binary(m, OP_SUB, n, imp_scalar(m, 1)),
	                    imp_scalar(m, 1));

	n = binary(m, OP_CAST_LIKE, n, var);
	less = binary(m, OP_CAST_LIKE, less, var);
	return binary(m, OP_MUL, var, binary(m, OP_DIV, n, less));
}

/* momentum * stat + (1 - momentum) * new: in place if it is a buffer. */
static void
update_statistic(struct importer *m, int i, ValId stat, ValId new,
                 double momentum)
{
	Attr a = attr_default(OP_BN_UPDATE);

	a.BN_UPDATE.momentum = momentum;
	if (m->g->val[stat].kind == V_BUFFER) {
		imp_out(m, i, EMIT_NODE(m, OP_BN_UPDATE, &a, newest(m, stat),
		                        new));
		return;
	}
	if (!imp_is_used(m, i))
		return;
	stat = with(m, OP_MUL, stat, momentum);
	new = with(m, OP_MUL, new, 1 - momentum);
	if (m->g->val[stat].dt != DT_F32)
		new = binary(m, OP_CAST_LIKE, new, stat);
	imp_out(m, i, binary(m, OP_ADD, stat, new));
}

/* By given statistics: (x - mean) * (scale / sqrt(var + eps)) + bias. */
static ValId
with_statistics(struct importer *m, double eps)
{
	ValId x = imp_in(m, 0), mean = imp_in(m, 3), var = imp_in(m, 4), k;

	k = with(m, OP_ADD, var, eps);
	k = unary(m, OP_RECIP, unary(m, OP_SQRT, k));
	k = binary(m, OP_MUL, imp_in(m, 1), k);
	return affine(m, binary(m, OP_SUB, x, channel_vector(m, mean, x)), k,
	              imp_in(m, 2), x);
}

/* --batchnorm batch means PyTorch's train(), which stores unbiased variances.
 * A node in training form stores biased ones, as ONNX specifies. */
bool
run_batchnorm(struct importer *m)
{
	Attr a = attr_default(OP_BATCHNORM);
	double eps = attr_float(&m->r, "epsilon", 1e-5f);
	double momentum = attr_float(&m->r, "momentum", 0.9f);
	enum batchnorm asked = batchnorm_asked(m->f, m->opt, m->n);
	bool given = batchnorm_trains(m->n), training = given;
	ValId y;

	attr_int(&m->r, "training_mode", 0);
	if (attr_int(&m->r, "spatial", 1) != 1)
		return imp_fail(m, "spatial=0 is not supported");
	if (asked != BATCHNORM_GRAPH)
		training = asked == BATCHNORM_BATCH;
	if (!training) {
		if (imp_is_used(m, 1) || imp_is_used(m, 2))
			return imp_fail(m, "running statistics are outputs "
			                "only with training_mode=1");
		imp_out(m, 0, with_statistics(m, eps));
		for (int k = 1; k < 3; k++)
			imp_out(m, k, imp_in(m, 2 + k));
		return true;
	}
	if (imp_is_used(m, 3) || imp_is_used(m, 4))
		return imp_fail(m, "saved statistics are not supported as "
		                "outputs");
	a.BATCHNORM.eps = eps;
	y = EMIT_NODE(m, OP_BATCHNORM, &a, imp_in(m, 0), imp_in(m, 1),
	              imp_in(m, 2));
	imp_out(m, 0, y);
	for (int k = 1; k < 3; k++) {
		ValId new = imp_output(m, y, k);

		m->g->val[new].dt = DT_F32;
		if (k == 2 && !given)
			new = unbiased(m, imp_in(m, 0), new);
		update_statistic(m, k, imp_in(m, 2 + k), new, momentum);
	}
	return true;
}

/* Batch normalisation of one image whose channels are the rows of [-1, S]. */
static ValId
normalise(struct importer *m, ValId x, ValId shape, ValId rows, double eps)
{
	Attr a = attr_default(OP_BATCHNORM);
	ValId y;

	a.BATCHNORM.eps = eps;
	y = reshape_to(m, x, concat_pair(m, concat_pair(m, imp_one(m, 1), rows),
	                                 imp_one(m, -1)));
	return reshape_to(m, EMIT_NODE(m, OP_BATCHNORM, &a, y), shape);
}

bool
run_instancenorm(struct importer *m)
{
	double eps = attr_float(&m->r, "epsilon", 1e-5f);
	ValId x = imp_in(m, 0), s = emit_shape(m, x), y;

	y = normalise(m, x, s, binary(m, OP_MUL, slice_list(m, s, 0, 1),
	                              slice_list(m, s, 1, 2)), eps);
	return set_output(m, affine(m, y, imp_in(m, 1), imp_in(m, 2), x));
}

/* Scale and bias are per group in version 18, per channel since 21. */
bool
run_groupnorm(struct importer *m)
{
	double eps = attr_float(&m->r, "epsilon", 1e-5f);
	int64_t groups = attr_int(&m->r, "num_groups", 0);
	const int64_t by_group[3] = { 0, groups, -1 };
	ValId x = imp_in(m, 0), s = emit_shape(m, x), y;

	attr_int(&m->r, "stash_type", 1);       /* ckc always uses f32 */
	if (groups < 1)
		return imp_fail(m, "num_groups: expected a positive number, "
		                "found %jd", (intmax_t)groups);
	y = normalise(m, x, s, binary(m, OP_MUL, slice_list(m, s, 0, 1),
	                              imp_one(m, groups)), eps);
	if (m->n->opset < 21) {
		y = reshape_ints(m, y, 3, by_group);
		y = affine(m, y, imp_in(m, 1), imp_in(m, 2), y);
		y = reshape_to(m, y, s);
	} else {
		y = affine(m, y, imp_in(m, 1), imp_in(m, 2), x);
	}
	return set_output(m, y);
}
