/* Pass fold: rules of ops that move elements. */
#include "passes/fold/fold_rules.h"

/* ---- ops that move elements ---- */

enum step
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
	       && shape_view(&t->shape, moved, &out_val(f, n)->shape, stride)
	       && as_permutation(&g->val[*x].shape, &out_val(f, n)->shape,
	                         stride, perm);
}

enum step
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

enum step
fold_turn_reshape(struct fold *f, NodeId id, ValId x)
{
	Node *n = &f->g->node[id];
	const Shape *s = &f->g->val[n->out[0]].shape;

	fold_turn(f, id, OP_RESHAPE, x);
	n->attr = attr_reshape(s);
	return simplify_reshape(f, id);
}

enum step
simplify_expand(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];

	if (n->nin == 1 && shape_eq(&in_val(f, n, 0)->shape,
	                            &out_val(f, n)->shape))
		return fold_become(f, id, n->in[0]);
	return STEP_KEEP;
}

enum step
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

enum step
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

enum step
simplify_part(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Shape *x = &in_val(f, n, 0)->shape;
	int axis = (int)n->attr.PART.axis;
	ValId v;

	if (!are_const(f, n, 1) || !shape_known(x)
	    || !shape_known(&out_val(f, n)->shape))
		return STEP_KEEP;
	v = slice_one(f, n->in[0], axis,
	              fold_part_start(f, n, x->dim[axis]), id);
	TRY(v);
	return fold_turn_reshape(f, id, v);
}

/* Negative widths cut; what is left only adds. */
enum step
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
enum step
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

enum step
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

enum step
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
enum step
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
enum step
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
enum step
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
