/* Rewriting rules of pass fold, one per op that has any.
 *
 * absorb_X   takes constant static operands into attributes.  The shape of the
 *            output has been inferred with them, so for most ops the output's
 *            shape says it all.  May turn the node into another op.
 * simplify_X sees a node that could not be computed.
 *
 * Rules that drop arithmetic keep every bit: x * 1, x / 1, x - 0 and x + (-0)
 * are x for all x, x + 0 is not (-0 + 0 is +0).
 */
#include "ir/window.h"
#include "passes/fold.h"
#include "passes/view.h"

#include <math.h>
#include <string.h>

typedef bool Absorb(struct fold *, Node *);
typedef enum step Simplify(struct fold *, NodeId);

static const Val *
in_val(const struct fold *f, const Node *n, int i)
{
	return &f->g->val[n->in[i]];
}

static Val *
out_val(const struct fold *f, const Node *n)
{
	return &f->g->val[n->out[0]];
}

static bool
has_operand(const Node *n, int i)
{
	return i < n->nin && n->in[i] != 0;
}

/* All operands from first on are absent or constant. */
static bool
are_const(const struct fold *f, const Node *n, int first)
{
	for (int i = first; i < n->nin; i++)
		if (n->in[i] && !val_is_const(in_val(f, n, i)))
			return false;
	return true;
}

static bool
complain(struct fold *f, const Node *n, const char *what)
{
	return diag_at(f->p->diag, node_name(f->g, n), node_type(f->g, n),
	               "%s", what);
}

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

/* ---- static operands ---- */

/* reshape and what is a reshape by another name */
static bool
absorb_reshape(struct fold *f, Node *n)
{
	const Val *y = out_val(f, n);

	if (!are_const(f, n, 1) || !shape_known(&y->shape))
		return true;
	n->op = OP_RESHAPE;
	n->attr = attr_default(OP_RESHAPE);
	n->nin = 1;
	fold_shape_list(&n->attr.RESHAPE.shape, &y->shape);
	n->attr.RESHAPE.allowzero = shape_nelem(&y->shape) == 0;
	return true;
}

static bool
absorb_expand(struct fold *f, Node *n)
{
	const Val *y = out_val(f, n);

	if (!are_const(f, n, 1) || !shape_known(&y->shape))
		return true;
	n->nin = 1;
	fold_shape_list(&n->attr.EXPAND.shape, &y->shape);
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
		return complain(f, n, "bad list of starts, axes or steps");
	n->attr.SLICE.step.n = to->n = x->rank;
	for (int d = 0; d < x->rank; d++) {
		to->v[d] = 0;
		n->attr.SLICE.step.v[d] = 1;
	}
	for (int i = 0; i < start.n; i++) {
		int64_t axis = has_operand(n, 3) ? axes.v[i] : i;
		axis += axis < 0 ? x->rank : 0;
		if (y->dim[axis] == 0)
			continue;
		int64_t by = has_operand(n, 4) ? step.v[i] : 1;
		to->v[axis] = clamp_start(start.v[i], by, x->dim[axis]);
		/* a step over the end says nothing but "one element" */
		n->attr.SLICE.step.v[axis] = y->dim[axis] == 1 ? 1 : by;
	}
	n->nin = 1;
	return true;
}

/* Where piece `index` begins. */
static int64_t
part_start(const struct fold *f, const Node *n, int64_t dim)
{
	int64_t index = n->attr.PART.index, chunk = n->attr.PART.chunk, at = 0;
	const Val *sizes = has_operand(n, 1) ? in_val(f, n, 1) : NULL;

	if (sizes && sizes->shape.rank > 0) {
		for (int64_t i = 0; i < index; i++)
			at += val_int(sizes, i);
		return at;
	}
	if (sizes)
		chunk = val_int(sizes, 0);
	else if (!chunk && n->attr.PART.count > 0)
		chunk = dim / n->attr.PART.count
		        + (dim % n->attr.PART.count != 0);
	return index * (chunk ? chunk : 1);
}

/* A piece that keeps its axis is a slice; one that drops it becomes one when
 * it is simplified, because that takes two nodes. */
static bool
absorb_part(struct fold *f, Node *n)
{
	const Shape *x = &in_val(f, n, 0)->shape;
	int64_t axis = n->attr.PART.axis;
	IntList start = { .n = x->rank }, step = { .n = x->rank };

	if (!are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(&out_val(f, n)->shape))
		return true;
	for (int d = 0; d < x->rank; d++)
		step.v[d] = 1;
	start.v[axis] = part_start(f, n, x->dim[axis]);
	if (!n->attr.PART.keepdims)
		return true;
	n->op = OP_SLICE;
	n->attr = attr_default(OP_SLICE);
	n->attr.SLICE.start = start;
	n->attr.SLICE.step = step;
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
			return complain(f, n, "the value to pad with is not "
			                "one number");
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
			return complain(f, n, "bad list of repeats");
		n->nin = 1;
	}
	return true;
}

static bool
absorb_trilu(struct fold *f, Node *n)
{
	if (has_operand(n, 1) && are_const(f, n, 1)) {
		if (val_nelem(in_val(f, n, 1)) != 1)
			return complain(f, n, "k is not one number");
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
			return complain(f, n, "the axis is not one number");
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
		return complain(f, n, "bad list of axes");
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
			return complain(f, n, "the ratio is not one number");
		n->attr.DROPOUT.ratio = val_float(in_val(f, n, 1), 0);
		n->in[1] = 0;
	}
	if (!(n->attr.DROPOUT.ratio >= 0 && n->attr.DROPOUT.ratio < 1))
		return complain(f, n, "the ratio is not in 0..1");
	if (has_operand(n, 2) && val_is_const(in_val(f, n, 2))) {
		if (val_nelem(in_val(f, n, 2)) != 1)
			return complain(f, n, "training_mode is not one value");
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
	n->attr = attr_default(OP_CAST);
	n->attr.CAST.to = to;
	n->nin = 1;
	return true;
}

static Absorb *const absorb[OP_COUNT] = {
	[OP_RESHAPE] = absorb_reshape,
	[OP_SQUEEZE] = absorb_reshape,
	[OP_UNSQUEEZE] = absorb_reshape,
	[OP_FLATTEN] = absorb_reshape,
	[OP_EXPAND] = absorb_expand,
	[OP_TRANSPOSE] = absorb_transpose,
	[OP_SLICE] = absorb_slice,
	[OP_PART] = absorb_part,
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

/* ---- ops that move elements ---- */

/* STEP_FAIL unless v. */
#define TRY(v) do { if (!(v)) return STEP_FAIL; } while (0)

static enum step
simplify_identity(struct fold *f, NodeId id)
{
	return fold_become(f, id, f->g->node[id].in[0]);
}

/* If an array of shape x, row-major, is read as shape y with these strides by
 * a mere permutation of axes, that permutation. */
static bool
as_permutation(const Shape *x, const Shape *y, const int64_t *stride,
               IntList *perm)
{
	int64_t own[MAX_RANK];
	bool used[MAX_RANK] = { false };

	shape_strides(x, own);
	perm->n = y->rank;
	if (x->rank != y->rank)
		return false;
	for (int d = 0; d < y->rank; d++) {
		int k = 0;
		/* axes of one element go in order */
		while (k < x->rank
		       && (used[k] || x->dim[k] != y->dim[d]
		           || (y->dim[d] != 1 && own[k] != stride[d])))
			k++;
		if (k == x->rank)
			return false;
		used[k] = true;
		perm->v[d] = k;
	}
	return true;
}

/* reshape(transpose(reshape(x))) that only moves whole axes of x, the way
 * exporters join batch and heads around a transposition: transpose(x). */
static bool
is_transposition(const struct fold *f, const Node *n, ValId *x, IntList *perm)
{
	const Graph *g = f->g;
	const Val *t = in_val(f, n, 0);
	int64_t own[MAX_RANK], moved[MAX_RANK], stride[MAX_RANK];

	if (!t->def || g->node[t->def].op != OP_TRANSPOSE)
		return false;
	const Val *r = in_val(f, &g->node[t->def], 0);
	if (!r->def || g->node[r->def].op != OP_RESHAPE
	    || g->node[r->def].nin > 1)
		return false;
	*x = g->node[r->def].in[0];
	shape_strides(&r->shape, own);
	for (int d = 0; d < t->shape.rank; d++)
		moved[d] = own[g->node[t->def].attr.TRANSPOSE.perm.v[d]];
	return shape_nelem(&t->shape) > 0
	       && view_reshape(&t->shape, moved, &out_val(f, n)->shape, stride)
	       && as_permutation(&g->val[*x].shape, &out_val(f, n)->shape,
	                         stride, perm);
}

static Simplify simplify_transpose;

static enum step
simplify_reshape(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Val *x = in_val(f, n, 0);

	if (n->nin > 1)
		return STEP_KEEP;
	if (x->def && f->g->node[x->def].op == OP_RESHAPE
	    && f->g->node[x->def].nin == 1) {
		n->in[0] = f->g->node[x->def].in[0];
		f->p->changed = true;
		x = in_val(f, n, 0);
	}
	if (shape_eq(&x->shape, &out_val(f, n)->shape))
		return fold_become(f, id, n->in[0]);
	ValId whole;
	IntList perm;
	if (is_transposition(f, n, &whole, &perm)) {
		fold_turn(f, id, OP_TRANSPOSE, whole);
		n->attr.TRANSPOSE.perm = perm;
		return simplify_transpose(f, id);
	}
	return STEP_KEEP;
}

static enum step
simplify_expand(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->nin == 1 && shape_eq(&in_val(f, n, 0)->shape,
	                            &out_val(f, n)->shape))
		return fold_become(f, id, n->in[0]);
	return STEP_KEEP;
}

static enum step
simplify_transpose(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const IntList *perm = &n->attr.TRANSPOSE.perm;

	for (int d = 0; d < perm->n; d++)
		if (perm->v[d] != d)
			return STEP_KEEP;
	if (in_val(f, n, 0)->shape.rank != perm->n)
		return STEP_KEEP;
	return fold_become(f, id, n->in[0]);
}

static enum step
simplify_slice(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->nin == 1 && shape_known(&out_val(f, n)->shape)
	    && fold_is_whole(&n->attr.SLICE.start, &n->attr.SLICE.step,
	                     &in_val(f, n, 0)->shape, &out_val(f, n)->shape))
		return fold_become(f, id, n->in[0]);
	return STEP_KEEP;
}

/* Element `at` of axis `axis` as a slice with that axis kept. */
static ValId
slice_one(struct fold *f, ValId x, int axis, int64_t at, NodeId like)
{
	Shape s = f->g->val[x].shape;
	IntList start = { .n = s.rank }, step = { .n = s.rank };

	for (int d = 0; d < s.rank; d++)
		step.v[d] = 1;
	start.v[axis] = at;
	s.dim[axis] = 1;
	return fold_slice(f, x, &start, &step, &s, like);
}

static enum step
simplify_part(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Shape *x = &in_val(f, n, 0)->shape;
	int axis = (int)n->attr.PART.axis;
	ValId v;

	if (!are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(&out_val(f, n)->shape))
		return STEP_KEEP;
	v = slice_one(f, n->in[0], axis, part_start(f, n, x->dim[axis]), id);
	TRY(v);
	return fold_turn_reshape(f, id, v);
}

/* Negative widths cut; what is left only adds. */
static enum step
simplify_pad(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	IntList *begin = &n->attr.PAD.begin, *end = &n->attr.PAD.end;
	ValId x = n->in[0];
	Shape s = f->g->val[x].shape;
	IntList start = { .n = s.rank }, step = { .n = s.rank };
	bool cuts = false, adds = false;

	if (n->nin > 1 || !shape_known(&s))
		return STEP_KEEP;
	for (int d = 0; d < s.rank; d++) {
		cuts |= begin->v[d] < 0 || end->v[d] < 0;
		adds |= begin->v[d] > 0 || end->v[d] > 0;
		step.v[d] = 1;
		start.v[d] = begin->v[d] < 0 ? -begin->v[d] : 0;
		s.dim[d] += (begin->v[d] < 0 ? begin->v[d] : 0)
		            + (end->v[d] < 0 ? end->v[d] : 0);
		if (s.dim[d] < 0) {
			complain(f, n, "cuts more than there is");
			return STEP_FAIL;
		}
	}
	if (cuts) {
		x = fold_slice(f, x, &start, &step, &s, id);
		TRY(x);
		n = &f->g->node[id];
		n->in[0] = x;
		begin = &n->attr.PAD.begin;
		end = &n->attr.PAD.end;
		for (int d = 0; d < s.rank; d++) {
			begin->v[d] = begin->v[d] < 0 ? 0 : begin->v[d];
			end->v[d] = end->v[d] < 0 ? 0 : end->v[d];
		}
	}
	return adds ? STEP_KEEP : fold_become(f, id, x);
}

/* tile = reshape, expand, reshape: [a, b] -> [ra, a, rb, b] */
static enum step
simplify_tile(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const IntList *repeats = &n->attr.TILE.repeats;
	ValId x = n->in[0], v;
	const Shape *s = &f->g->val[x].shape;
	Shape apart = { .rank = 0 }, wide = { .rank = 0 };

	if (n->nin > 1 || !shape_known(s))
		return STEP_KEEP;
	for (int d = 0; d < s->rank; d++) {
		bool split = repeats->v[d] != 1 && s->dim[d] != 1;
		if (apart.rank + 1 + split > MAX_RANK) {
			complain(f, n, "so many repeated axes are not "
			         "supported");
			return STEP_FAIL;
		}
		if (split) {
			wide.dim[wide.rank++] = repeats->v[d];
			apart.dim[apart.rank++] = 1;
		}
		wide.dim[wide.rank++] = s->dim[d] == 1 ? repeats->v[d]
		                                       : s->dim[d];
		apart.dim[apart.rank++] = s->dim[d];
	}
	v = fold_reshape(f, x, &apart, id);
	TRY(v);
	v = fold_expand(f, v, &wide, id);
	TRY(v);
	return fold_turn_reshape(f, id, v);
}

static enum step
simplify_concat(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	int kept = 0;

	for (int i = 0; i < n->nin; i++)
		if (val_nelem(in_val(f, n, i)) != 0)
			n->in[kept++] = n->in[i];
	if (kept > 0)
		n->nin = kept;
	return n->nin == 1 ? fold_become(f, id, n->in[0]) : STEP_KEEP;
}

static enum step
simplify_constant_of_shape(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Val *y = out_val(f, n);
	double value = n->attr.CONSTANT_OF_SHAPE.value;

	/* too large to compute: one element that repeats */
	if (!val_is_const(in_val(f, n, 0)) || !shape_known(&y->shape))
		return STEP_KEEP;
	ValId one = val_scalar(f->g, y->dt, value);
	return fold_become(f, id, one);
}

/* ---- indexing ---- */

/* True if constant indices are start, start + 1, ... along their last axes,
 * repeated over the leading ones; then *lead counts those. */
static bool
is_consecutive(const Val *idx, int *lead)
{
	int64_t n = val_nelem(idx), run = 1;
	int d = idx->shape.rank;

	if (n < 1)
		return false;
	/* the run is as long as indices keep growing by one */
	while (run < n && val_int(idx, run) > val_int(idx, run - 1)
	       && val_int(idx, run) - 1 == val_int(idx, run - 1))
		run++;
	for (int64_t i = run; i < n; i++)
		if (val_int(idx, i) != val_int(idx, i - run))
			return false;
	/* it must end at an axis */
	for (int64_t inner = 1; inner < run; inner *= idx->shape.dim[d])
		if (d-- == 0)
			return false;
	int64_t inner = 1;
	for (int i = d; i < idx->shape.rank; i++)
		inner *= idx->shape.dim[i];
	*lead = d;
	return inner == run;
}

/* gather of consecutive rows: a slice, put into place and broadcast. */
static enum step
simplify_gather(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Val *idx = in_val(f, n, 1);
	Shape x = in_val(f, n, 0)->shape, y = out_val(f, n)->shape;
	int axis = (int)n->attr.GATHER.axis, rank = idx->shape.rank, lead;
	IntList start = { .n = x.rank }, step = { .n = x.rank };

	if (!val_is_const(idx) || !shape_known(&x)
	    || !is_consecutive(idx, &lead))
		return STEP_KEEP;
	int64_t first = val_int(idx, 0), count = 1;
	for (int d = lead; d < rank; d++)
		count *= idx->shape.dim[d];
	first += first < 0 ? x.dim[axis] : 0;
	if (first < 0 || count > x.dim[axis] - first) {
		/* also where a run passes from -1 to 0 */
		if (val_int(idx, 0) < 0 && first >= 0)
			return STEP_KEEP;
		complain(f, n, "index out of range");
		return STEP_FAIL;
	}
	for (int d = 0; d < x.rank; d++)
		step.v[d] = 1;
	start.v[axis] = first;
	x.dim[axis] = count;
	ValId v = fold_slice(f, n->in[0], &start, &step, &x, id);
	TRY(v);
	/* y with the axes over which the run repeats at 1 */
	Shape put = y;
	for (int d = 0; d < lead; d++)
		put.dim[axis + d] = 1;
	if (shape_eq(&put, &y))
		return fold_turn_reshape(f, id, v);
	v = fold_reshape(f, v, &put, id);
	TRY(v);
	return fold_become(f, id, v);
}

/* What component c of constant index tuples follows: COORD_FIXED with the
 * index in *at, or the axis of the result whose coordinate it equals. */
enum { COORD_FIXED = -1, COORD_NONE = -2 };

static int
index_coordinate(const Val *idx, int c, int64_t extent, int64_t *at)
{
	int rank = idx->shape.rank - 1, len = (int)idx->shape.dim[rank];
	int64_t n = val_nelem(idx) / len, inner = 1;
	bool same = true;

	*at = val_int(idx, c);
	for (int64_t i = 1; same && i < n; i++)
		same = val_int(idx, i * len + c) == *at;
	*at += *at < 0 ? extent : 0;
	if (same)
		return *at >= 0 && *at < extent ? COORD_FIXED : COORD_NONE;
	for (int d = rank; d-- > 0; inner *= idx->shape.dim[d]) {
		int64_t i = 0;
		if (idx->shape.dim[d] != extent)
			continue;
		while (i < n && val_int(idx, i * len + c)
		                == i / inner % idx->shape.dim[d])
			i++;
		if (i == n)
			return d;
	}
	return COORD_NONE;
}

/* gather_nd with constant indices that are coordinates of the result, the way
 * exporters index a padding mask [B, S] by (b, s) for every (b, h, t, s): a
 * transposed, broadcast view. */
static enum step
simplify_gather_nd(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Val *idx = in_val(f, n, 1);
	ValId v = n->in[0];
	Shape x = f->g->val[v].shape, y = out_val(f, n)->shape, put = y;
	int len, axis_of[MAX_RANK], rank = y.rank;
	int64_t at[MAX_RANK];
	bool used[MAX_RANK] = { false };

	if (!val_is_const(idx) || n->attr.GATHER_ND.batch || !shape_known(&x)
	    || val_nelem(idx) < 1)
		return STEP_KEEP;
	len = (int)idx->shape.dim[idx->shape.rank - 1];
	for (int c = 0; c < len; c++) {
		axis_of[c] = index_coordinate(idx, c, x.dim[c], &at[c]);
		if (axis_of[c] == COORD_NONE
		    || (axis_of[c] >= 0 && used[axis_of[c]]))
			return STEP_KEEP;
		if (axis_of[c] >= 0)
			used[axis_of[c]] = true;
	}
	for (int c = 0; c < len; c++)
		if (axis_of[c] == COORD_FIXED) {
			v = slice_one(f, v, c, at[c], id);
			TRY(v);
		}
	/* axes in the order of the result, fixed ones first */
	Attr attr = attr_default(OP_TRANSPOSE);
	IntList *perm = &attr.TRANSPOSE.perm;
	for (int c = 0; c < len; c++)
		if (axis_of[c] == COORD_FIXED)
			perm->v[perm->n++] = c;
	for (int d = 0; d < rank - (x.rank - len); d++) {
		for (int c = 0; c < len; c++)
			if (axis_of[c] == d)
				perm->v[perm->n++] = c;
		if (!used[d])
			put.dim[d] = 1;
	}
	for (int d = len; d < x.rank; d++)
		perm->v[perm->n++] = d;
	bool moved = false;
	for (int d = 0; d < perm->n; d++)
		moved |= perm->v[d] != d;
	if (moved)
		v = fold_emit(f, OP_TRANSPOSE, 1, &v, &attr, id);
	TRY(v);
	v = fold_reshape(f, v, &put, id);
	TRY(v);
	return fold_become(f, id, v);
}

/* one_hot of indices known at run time: where(idx == 0..depth-1, on, off),
 * negative indices counted from the end */
static enum step
simplify_one_hot(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	Node *n = &g->node[id];
	ValId idx = n->in[0], depth = n->in[1], v[3];
	ValId values = n->in[2], off, on;
	Shape y = out_val(f, n)->shape;
	int axis = (int)n->attr.ONE_HOT.axis;
	DType dt = g->val[idx].dt;
	Attr attr = attr_default(OP_CAST);

	if (!val_is_const(&g->val[depth]) || !shape_known(&y))
		return STEP_KEEP;
	if (val_nelem(&g->val[values]) != 2) {
		complain(f, n, "values are not off and on");
		return STEP_FAIL;
	}
	int64_t count = y.dim[axis];
	Shape scalar = shape_scalar();
	off = slice_one(f, values, 0, 0, id);
	on = slice_one(f, values, 0, 1, id);
	TRY(off && on);
	off = fold_reshape(f, off, &scalar, id);
	on = fold_reshape(f, on, &scalar, id);
	TRY(off && on);
	if (dt != DT_I64) {
		attr.CAST.to = DT_I64;
		idx = fold_emit(f, OP_CAST, 1, &idx, &attr, id);
		TRY(idx);
	}
	ValId zero = val_scalar(g, DT_I64, 0);
	ValId extent = val_scalar(g, DT_I64, (double)count);
	ValId below = fold_emit(f, OP_LT, 2, (ValId[]){ idx, zero }, NULL, id);
	ValId moved = fold_emit(f, OP_ADD, 2, (ValId[]){ idx, extent }, NULL,
	                        id);
	TRY(below && moved);
	idx = fold_emit(f, OP_WHERE, 3, (ValId[]){ below, moved, idx }, NULL,
	                id);
	TRY(idx);
	Shape put = y, along = y;
	put.dim[axis] = 1;
	for (int d = 0; d < y.rank; d++)
		along.dim[d] = d == axis ? count : 1;
	idx = fold_reshape(f, idx, &put, id);
	TRY(idx);
	int64_t *numbers = arena_array(f->mem, (size_t)count + 1, 8);
	for (int64_t i = 0; i < count; i++)
		numbers[i] = i;
	v[0] = idx;
	v[1] = val_const(g, NULL, DT_I64, along, numbers);
	v[0] = fold_emit(f, OP_EQ, 2, v, NULL, id);
	TRY(v[0]);
	v[1] = on;
	v[2] = off;
	v[0] = fold_emit(f, OP_WHERE, 3, v, NULL, id);
	TRY(v[0]);
	return fold_become(f, id, v[0]);
}

/* ---- arithmetic that changes nothing ---- */

/* The other operand of a two-operand node if operand k is the number x
 * everywhere (-0 and 0 are told apart). */
static ValId
beside(const struct fold *f, const Node *n, int k, double x)
{
	double found;

	if (!val_splat(f->g, n->in[k], &found) || found != x
	    || signbit(found) != signbit(x))
		return 0;
	return f->g->val[n->in[1 - k]].dt == f->g->val[n->out[0]].dt
	       ? n->in[1 - k] : 0;
}

static enum step
become_if(struct fold *f, NodeId id, ValId x)
{
	return x ? fold_become(f, id, x) : STEP_KEEP;
}

static enum step
simplify_add(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	bool floats = dtype_info[out_val(f, n)->dt].cls == 'f';
	double zero = floats ? -0.0 : 0;
	ValId x = beside(f, n, 0, zero);

	return become_if(f, id, x ? x : beside(f, n, 1, zero));
}

static enum step
simplify_sub(struct fold *f, NodeId id)
{
	return become_if(f, id, beside(f, &f->g->node[id], 1, 0));
}

static enum step
simplify_mul(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	ValId x = beside(f, n, 0, 1);

	return become_if(f, id, x ? x : beside(f, n, 1, 1));
}

/* div and pow */
static enum step
simplify_by_one(struct fold *f, NodeId id)
{
	return become_if(f, id, beside(f, &f->g->node[id], 1, 1));
}

/* and, or: a constant operand decides or drops out. */
static enum step
simplify_logic(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	bool is_and = n->op == OP_AND;
	double x;

	if (n->in[0] == n->in[1])
		return fold_become(f, id, n->in[0]);
	for (int k = 0; k < 2; k++) {
		if (!val_splat(f->g, n->in[k], &x))
			continue;
		if ((x != 0) == is_and)
			return fold_become(f, id, n->in[1 - k]);
		/* decided: false & x, true | x */
		return fold_become(f, id, n->in[k]);
	}
	return STEP_KEEP;
}

static enum step
simplify_xor(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	ValId x = beside(f, n, 0, 0);

	return become_if(f, id, x ? x : beside(f, n, 1, 0));
}

static enum step
simplify_not(struct fold *f, NodeId id)
{
	const Val *x = in_val(f, &f->g->node[id], 0);

	if (x->def && f->g->node[x->def].op == OP_NOT)
		return fold_become(f, id, f->g->node[x->def].in[0]);
	return STEP_KEEP;
}

static enum step
simplify_where(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	double c;

	if (n->in[1] == n->in[2])
		return fold_become(f, id, n->in[1]);
	if (val_splat(f->g, n->in[0], &c))
		return fold_become(f, id, n->in[c != 0 ? 1 : 2]);
	return STEP_KEEP;
}

static enum step
simplify_cast(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (in_val(f, n, 0)->dt == (DType)n->attr.CAST.to)
		return fold_become(f, id, n->in[0]);
	return STEP_KEEP;
}

static enum step
simplify_dropout(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->attr.DROPOUT.ratio == 0 && n->nin == 1)
		return fold_become(f, id, n->in[0]);
	return STEP_KEEP;
}

static enum step
simplify_isnan(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (dtype_info[in_val(f, n, 0)->dt].cls == 'f')
		return STEP_KEEP;
	return fold_become(f, id, val_scalar(f->g, DT_BOOL, 0));
}

/* A reduction over axes of one element each moves nothing. */
static enum step
simplify_reduce(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Shape *x = &in_val(f, n, 0)->shape;
	const IntList *axes = &n->attr.REDUCE_SUM.axes;

	if (n->nin > 1 || !shape_known(x))
		return STEP_KEEP;
	for (int i = 0; i < axes->n; i++)
		if (x->dim[axes->v[i]] != 1)
			return STEP_KEEP;
	return fold_turn_reshape(f, id, n->in[0]);
}

/* numpy's rule for vectors: a row on the left, a column on the right. */
static enum step
simplify_matmul(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Shape a = in_val(f, n, 0)->shape, b = in_val(f, n, 1)->shape;
	ValId v[2] = { n->in[0], n->in[1] };

	if ((a.rank != 1 && b.rank != 1) || n->nin > 2)
		return STEP_KEEP;
	Attr attr = n->attr;
	if (a.rank == 1) {
		a = SHAPE(1, a.dim[0]);
		attr.MATMUL.ta = 0;
		v[0] = fold_reshape(f, v[0], &a, id);
	}
	if (b.rank == 1) {
		b = SHAPE(b.dim[0], 1);
		attr.MATMUL.tb = 0;
		v[1] = fold_reshape(f, v[1], &b, id);
	}
	TRY(v[0] && v[1]);
	ValId y = fold_emit(f, OP_MATMUL, 2, v, &attr, id);
	TRY(y);
	return fold_turn_reshape(f, id, y);
}

/* ---- convolutions and resampling ---- */

/* Exporters give convolutions without a bias one of zeros. */
static enum step
simplify_conv(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	double x;

	if (has_operand(n, 2) && val_splat(f->g, n->in[2], &x) && x == 0)
		n->nin = 2;
	return STEP_KEEP;
}

/* One resize for every axis that changes. */
static enum step
simplify_interpolate(struct fold *f, NodeId id)
{
	Attr from = f->g->node[id].attr, a = attr_default(OP_RESIZE);
	ValId x = f->g->node[id].in[0];
	Shape s = f->g->val[x].shape;
	struct resized r[MAX_RANK];

	if (!are_const(f, &f->g->node[id], 1)
	    || interpolate_axes(f->g, &f->g->node[id], r))
		return STEP_KEEP;
	a.RESIZE.mode = from.INTERPOLATE.mode;
	a.RESIZE.coord = from.INTERPOLATE.coord;
	a.RESIZE.round = from.INTERPOLATE.round;
	a.RESIZE.cubic = from.INTERPOLATE.cubic;
	a.RESIZE.exclude = from.INTERPOLATE.exclude;
	a.RESIZE.antialias = from.INTERPOLATE.antialias;
	a.RESIZE.fill = from.INTERPOLATE.fill;
	for (int d = 0; d < s.rank; d++) {
		bool cropped = a.RESIZE.coord == 4
			&& (r[d].first != 0 || r[d].last != 1);

		/* nearest of a half pixel further is another pixel */
		if (r[d].to == s.dim[d] && !cropped && a.RESIZE.coord != 6
		    && (r[d].scale == 0 || r[d].scale == 1))
			continue;
		a.RESIZE.axis = d;
		a.RESIZE.extent_in = s.dim[d];
		a.RESIZE.extent_out = r[d].to;
		a.RESIZE.scale = r[d].scale;
		a.RESIZE.first = r[d].first;
		a.RESIZE.last = r[d].last;
		x = fold_emit(f, OP_RESIZE, 1, &x, &a, id);
		TRY(x);
	}
	return fold_become(f, id, x);
}

static Simplify *const simplify[OP_COUNT] = {
	[OP_IDENTITY] = simplify_identity,
	[OP_RESHAPE] = simplify_reshape,
	[OP_EXPAND] = simplify_expand,
	[OP_TRANSPOSE] = simplify_transpose,
	[OP_SLICE] = simplify_slice,
	[OP_PART] = simplify_part,
	[OP_PAD] = simplify_pad,
	[OP_TILE] = simplify_tile,
	[OP_CONCAT] = simplify_concat,
	[OP_CONSTANT_OF_SHAPE] = simplify_constant_of_shape,
	[OP_GATHER] = simplify_gather,
	[OP_GATHER_ND] = simplify_gather_nd,
	[OP_ONE_HOT] = simplify_one_hot,
	[OP_ADD] = simplify_add,
	[OP_SUB] = simplify_sub,
	[OP_MUL] = simplify_mul,
	[OP_DIV] = simplify_by_one,
	[OP_POW] = simplify_by_one,
	[OP_AND] = simplify_logic,
	[OP_OR] = simplify_logic,
	[OP_XOR] = simplify_xor,
	[OP_NOT] = simplify_not,
	[OP_WHERE] = simplify_where,
	[OP_CAST] = simplify_cast,
	[OP_DROPOUT] = simplify_dropout,
	[OP_ISNAN] = simplify_isnan,
	[OP_REDUCE_SUM] = simplify_reduce,
	[OP_REDUCE_MEAN] = simplify_reduce,
	[OP_REDUCE_MAX] = simplify_reduce,
	[OP_REDUCE_MIN] = simplify_reduce,
	[OP_REDUCE_PROD] = simplify_reduce,
	[OP_MATMUL] = simplify_matmul,
	[OP_RNN] = fold_rnn,
	[OP_CONV] = simplify_conv,
	[OP_CONV_DX] = simplify_conv,
	[OP_INTERPOLATE] = simplify_interpolate,
};

enum step
fold_simplify(struct fold *f, NodeId id)
{
	Op op = f->g->node[id].op;

	/* what is shaped by an unknown value is reported at the end */
	if (!simplify[op]
	    || !shape_known(&f->g->val[f->g->node[id].out[0]].shape))
		return STEP_KEEP;
	return simplify[op](f, id);
}
