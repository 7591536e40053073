/* Pass fold: constant static operands become attributes.
 *
 * absorb_X takes the operands of op X.  Shape inference has used them, so for
 * most ops the output's shape holds all their information.  May turn the node
 * into another op.
 */
#include "passes/fold/fold_rules.h"

#include <string.h>

static bool
read_list(const Val *v, IntList *l)
{
	int64_t n = val_nelem(v);

	if (n < 0 || n > MAX_RANK)
		return false;
	l->n = (int)n;
	for (int i = 0; i < l->n; i++)
		l->v[i] = val_int(v, i);
	return true;
}

typedef bool Absorb(struct fold *, Node *);

/* ---- static operands ---- */

/* reshape, and ops that are special cases of it */
static bool
absorb_reshape(struct fold *f, Node *n)
{
	const Val *y = out_val(f, n);

	if (!are_const(f, n, 1) || !shape_known(&y->shape))
		return true;
	n->op = OP_RESHAPE;
	n->attr = attr_reshape(&y->shape);
	n->nin = 1;
	return true;
}

static bool
absorb_expand(struct fold *f, Node *n)
{
	const Val *y = out_val(f, n);

	if (!are_const(f, n, 1) || !shape_known(&y->shape))
		return true;
	n->nin = 1;
	n->attr = attr_expand(&y->shape);
	return true;
}

static bool
absorb_random(struct fold *f, Node *n)
{
	const Val *y = out_val(f, n);

	if (n->nin == 0 || !are_const(f, n, 0) || !shape_known(&y->shape))
		return true;
	n->nin = 0;
	n->attr.RANDOM.shape = shape_list(&y->shape);
	return true;
}

static bool
absorb_transpose(struct fold *f, Node *n)
{
	IntList *perm = &n->attr.TRANSPOSE.perm;
	int rank = in_val(f, n, 0)->shape.rank;

	if (perm->n == 0 && rank > 0)
		for (perm->n = 0; perm->n < rank; perm->n++)
			perm->v[perm->n] = rank - 1 - perm->n;
	return true;
}

/* First element of x[start:...:step], clamped as ONNX and numpy do. */
static int64_t
clamp_start(int64_t start, int64_t step, int64_t dim)
{
	int64_t high = step > 0 ? dim : dim - 1;

	start += start < 0 ? dim : 0;
	return start < 0 ? 0 : start > high ? high : start;
}

static bool
absorb_slice(struct fold *f, Node *n)
{
	const Shape *x = &in_val(f, n, 0)->shape;
	const Shape *y = &out_val(f, n)->shape;
	IntList start, axes, step, *to = &n->attr.SLICE.start;

	if (n->nin == 1 || !are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(y))
		return true;
	/* lengths and axes were checked when the shape was inferred */
	if (!read_list(in_val(f, n, 1), &start)
	    || (has_operand(n, 3) && !read_list(in_val(f, n, 3), &axes))
	    || (has_operand(n, 4) && !read_list(in_val(f, n, 4), &step)))
		return complain(f, n, "invalid list of starts, axes or steps");
	*to = list_filled(x->rank, 0);
	n->attr.SLICE.step = list_filled(x->rank, 1);
	for (int i = 0; i < start.n; i++) {
		int64_t axis = has_operand(n, 3) ? axes.v[i] : i;
		axis += axis < 0 ? x->rank : 0;
		if (y->dim[axis] == 0)
			continue;
		int64_t by = has_operand(n, 4) ? step.v[i] : 1;
		to->v[axis] = clamp_start(start.v[i], by, x->dim[axis]);
		/* a step past the end only means "one element" */
		n->attr.SLICE.step.v[axis] = y->dim[axis] == 1 ? 1 : by;
	}
	n->nin = 1;
	return true;
}

/* Start of piece `index`. */
int64_t
fold_part_start(const struct fold *f, const Node *n, int64_t dim)
{
	int64_t index = n->attr.SPLIT.index, chunk = n->attr.SPLIT.chunk,
		at = 0;
	const Val *sizes = has_operand(n, 1) ? in_val(f, n, 1) : NULL;

	if (sizes && sizes->shape.rank > 0) {
		for (int64_t i = 0; i < index; i++)
			at += val_int(sizes, i);
		return at;
	}
	if (sizes)
		chunk = val_int(sizes, 0);
	else if (!chunk && n->attr.SPLIT.count > 0)
		chunk = dim / n->attr.SPLIT.count
		        + (dim % n->attr.SPLIT.count != 0);
	return index * (chunk ? chunk : 1);
}

/* A piece that keeps its axis becomes a slice.  One that drops it takes two
 * nodes, so simplification rewrites it. */
static bool
absorb_split(struct fold *f, Node *n)
{
	const Shape *x = &in_val(f, n, 0)->shape;
	int64_t axis = n->attr.SPLIT.axis;
	IntList start = { .n = x->rank };

	if (!are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(&out_val(f, n)->shape))
		return true;
	start.v[axis] = fold_part_start(f, n, x->dim[axis]);
	if (!n->attr.SPLIT.keepdims)
		return true;
	n->op = OP_SLICE;
	n->attr = attr_default(OP_SLICE);
	n->attr.SLICE.start = start;
	n->attr.SLICE.step = list_filled(x->rank, 1);
	n->nin = 1;
	return true;
}

static bool
absorb_topk(struct fold *f, Node *n)
{
	if (n->nin < 2 || !are_const(f, n, 1))
		return true;
	n->attr.TOPK.k = val_int(in_val(f, n, 1), 0);
	n->nin = 1;
	return true;
}

static bool
absorb_pad(struct fold *f, Node *n)
{
	int rank = in_val(f, n, 0)->shape.rank;
	IntList *begin = &n->attr.PAD.begin, *end = &n->attr.PAD.end;

	if (!are_const(f, n, 1) || rank < 0 || n->nin == 1)
		return true;
	if (has_operand(n, 2)) {
		if (val_nelem(in_val(f, n, 2)) != 1)
			return complain(f, n, "the padding value is not a "
			                "scalar");
		n->attr.PAD.value = val_float(in_val(f, n, 2), 0);
	}
	if (has_operand(n, 1)) {
		const Val *pads = in_val(f, n, 1);
		int naxes = (int)val_nelem(pads) / 2;
		begin->n = end->n = rank;
		memset(begin->v, 0, sizeof begin->v);
		memset(end->v, 0, sizeof end->v);
		for (int i = 0; i < naxes; i++) {
			int64_t axis = has_operand(n, 3)
			               ? val_int(in_val(f, n, 3), i) : i;
			axis += axis < 0 ? rank : 0;
			begin->v[axis] = val_int(pads, i);
			end->v[axis] = val_int(pads, naxes + i);
		}
	}
	n->nin = 1;
	return true;
}

static bool
absorb_tile(struct fold *f, Node *n)
{
	if (n->nin > 1 && are_const(f, n, 1)) {
		if (!read_list(in_val(f, n, 1), &n->attr.TILE.repeats))
			return complain(f, n, "invalid list of repeats");
		n->nin = 1;
	}
	return true;
}

static bool
absorb_trilu(struct fold *f, Node *n)
{
	if (has_operand(n, 1) && are_const(f, n, 1)) {
		if (val_nelem(in_val(f, n, 1)) != 1)
			return complain(f, n, "k is not a scalar");
		n->attr.TRILU.k = val_int(in_val(f, n, 1), 0);
		n->nin = 1;
	}
	return true;
}

static bool
absorb_cumsum(struct fold *f, Node *n)
{
	int rank = in_val(f, n, 0)->shape.rank;

	if (has_operand(n, 1) && are_const(f, n, 1) && rank >= 0) {
		if (val_nelem(in_val(f, n, 1)) != 1)
			return complain(f, n, "the axis is not a scalar");
		int64_t axis = val_int(in_val(f, n, 1), 0);
		if (axis < -rank || axis >= rank)
			return complain(f, n, "the axis is out of range");
		n->attr.CUMSUM.axis = axis < 0 ? axis + rank : axis;
		n->nin = 1;
	}
	return true;
}

/* The five reductions have the same attributes in the same order. */
static bool
absorb_reduce(struct fold *f, Node *n)
{
	IntList *axes = &n->attr.REDUCE_SUM.axes, sorted = { .n = 0 };
	int rank = in_val(f, n, 0)->shape.rank;
	bool set[MAX_RANK] = { false };

	if (!are_const(f, n, 1) || rank < 0)
		return true;
	if (has_operand(n, 1) && !read_list(in_val(f, n, 1), axes))
		return complain(f, n, "invalid list of axes");
	for (int i = 0; i < axes->n; i++)
		set[axes->v[i] < 0 ? axes->v[i] + rank : axes->v[i]] = true;
	for (int d = 0; d < rank; d++)
		if (set[d] || (axes->n == 0 && !n->attr.REDUCE_SUM.noop))
			sorted.v[sorted.n++] = d;
	/* no axes left: noop, or a scalar */
	n->attr.REDUCE_SUM.noop = sorted.n == 0;
	*axes = sorted;
	n->nin = 1;
	return true;
}

static bool
absorb_dropout(struct fold *f, Node *n)
{
	if (has_operand(n, 1) && val_is_const(in_val(f, n, 1))) {
		if (val_nelem(in_val(f, n, 1)) != 1)
			return complain(f, n, "the ratio is not a scalar");
		n->attr.DROPOUT.ratio = val_float(in_val(f, n, 1), 0);
		n->in[1] = 0;
	}
	if (!(n->attr.DROPOUT.ratio >= 0 && n->attr.DROPOUT.ratio < 1))
		return complain(f, n, "the ratio is not in [0, 1)");
	if (has_operand(n, 2) && val_is_const(in_val(f, n, 2))) {
		if (val_nelem(in_val(f, n, 2)) != 1)
			return complain(f, n, "training_mode is not a scalar");
		if (!val_int(in_val(f, n, 2), 0))
			n->attr.DROPOUT.ratio = 0;
		n->in[2] = 0;
	}
	while (n->nin > 1 && n->in[n->nin - 1] == 0)
		n->nin--;
	return true;
}

static bool
absorb_cast_like(struct fold *f, Node *n)
{
	DType to = out_val(f, n)->dt;

	if (to == DT_NONE)
		return true;
	n->op = OP_CAST;
	n->attr = attr_cast(to);
	n->nin = 1;
	return true;
}

static Absorb *const absorb[OP_COUNT] = {
	[OP_RESHAPE] = absorb_reshape,
	[OP_SQUEEZE] = absorb_reshape,
	[OP_UNSQUEEZE] = absorb_reshape,
	[OP_FLATTEN] = absorb_reshape,
	[OP_EXPAND] = absorb_expand,
	[OP_RANDOM] = absorb_random,
	[OP_TRANSPOSE] = absorb_transpose,
	[OP_SLICE] = absorb_slice,
	[OP_SPLIT] = absorb_split,
	[OP_PAD] = absorb_pad,
	[OP_TILE] = absorb_tile,
	[OP_TOPK] = absorb_topk,
	[OP_TRILU] = absorb_trilu,
	[OP_CUMSUM] = absorb_cumsum,
	[OP_REDUCE_SUM] = absorb_reduce,
	[OP_REDUCE_MEAN] = absorb_reduce,
	[OP_REDUCE_MAX] = absorb_reduce,
	[OP_REDUCE_MIN] = absorb_reduce,
	[OP_REDUCE_PROD] = absorb_reduce,
	[OP_DROPOUT] = absorb_dropout,
	[OP_CAST_LIKE] = absorb_cast_like,
};

bool
fold_absorb(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	return !absorb[n->op] || absorb[n->op](f, n);
}
