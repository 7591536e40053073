/* Pass fold: rules of ops that index, by constants that give views, or by
 * values of the run. */
#include "passes/fold/fold_rules.h"

#include <string.h>

/* True if constant indices are start, start + 1, ... along their last axes,
 * repeated over the leading ones; then *lead counts those. */
static bool
is_consecutive(const Val *idx, int *lead)
{
	int64_t n = val_nelem(idx), run = 1;
	int d = idx->shape.rank;

	if (n < 1)
		return false;
	/* the run ends where indices stop growing by one */
	while (run < n && val_int(idx, run) > val_int(idx, run - 1)
	       && val_int(idx, run) - 1 == val_int(idx, run - 1))
		run++;
	for (int64_t i = run; i < n; i++)
		if (val_int(idx, i) != val_int(idx, i - run))
			return false;
	/* the run must end at an axis */
	while (shape_span(&idx->shape, d, idx->shape.rank) < run)
		if (d-- == 0)
			return false;
	*lead = d;
	return shape_span(&idx->shape, d, idx->shape.rank) == run;
}

/* gather by expanded indices: gather by the small ones, then expand. */
static enum step
gather_core(struct fold *f, NodeId id, ValId core)
{
	const Node *n = &f->g->node[id];
	const Attr attr = n->attr;
	const Shape at = fold_aligned(&f->g->val[core].shape,
	                              in_val(f, n, 1)->shape.rank);
	ValId in[2] = { n->in[0], fold_reshape(f, core, &at, id) };

	return fold_set_broadcast(f, id, fold_emit(f, OP_GATHER, 2, in, &attr,
	                                           id));
}

/* Whether v is 0, each, 2 each, ... */
static bool
is_multiples(const Val *v, int64_t each)
{
	for (int64_t i = 0; i < val_nelem(v); i++)
		if (val_int(v, i) != i * each)
			return false;
	return true;
}

/* gather of rows i + {0, T, 2 T, ...}, where x has T rows for each i, becomes a
 * gather_nd with a batch.  TorchScript writes x[arange(n), i] so. */
static enum step
gather_own_rows(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	const Val *sum = in_val(f, n, 1);
	const Node *add = &f->g->node[sum->def];
	Shape x = in_val(f, n, 0)->shape, rows = x, one;
	int64_t many = sum->shape.rank == 1 ? sum->shape.dim[0] : 0;
	int64_t each = many > 1 && x.rank ? x.dim[0] / many : 0;
	Attr attr = attr_default(OP_GATHER_ND);
	ValId in[2] = { n->in[0], 0 };

	if (each < 2 || each * many != x.dim[0] || x.rank == MAX_RANK
	    || !sum->def || add->op != OP_ADD)
		return STEP_KEEP;
	for (int k = 0; k < 2; k++) {
		const Val *v = in_val(f, add, k);

		if (val_is_const(v) && shape_eq(&v->shape, &sum->shape)
		    && shape_eq(&in_val(f, add, !k)->shape, &sum->shape)
		    && is_multiples(v, each))
			in[1] = add->in[!k];
	}
	if (!in[1])
		return STEP_KEEP;
	rows.rank++;
	memmove(&rows.dim[1], &x.dim[0], (size_t)x.rank * sizeof x.dim[0]);
	rows.dim[0] = many;
	rows.dim[1] = each;
	one = SHAPE(many, 1);
	in[0] = fold_reshape(f, in[0], &rows, id);
	in[1] = fold_reshape(f, in[1], &one, id);
	attr.GATHER_ND.batch = 1;
	return fold_set_broadcast(f, id, fold_emit(f, OP_GATHER_ND, 2, in,
	                                           &attr, id));
}

/* gather of consecutive rows: a slice, put into place and broadcast. */
enum step
simplify_gather(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	int rank = in_val(f, n, 1)->shape.rank, lead;
	ValId core = fold_expand_source(f, n->in[1]);
	const Val *idx = &f->g->val[core];
	Shape x = in_val(f, n, 0)->shape, y = out_val(f, n)->shape;
	int axis = (int)n->attr.GATHER.axis;

	if (!core)
		return axis == 0 && shape_known(&x) ? gather_own_rows(f, id)
		                                    : STEP_KEEP;
	if (!shape_known(&x))
		return STEP_KEEP;
	if (!is_consecutive(idx, &lead))
		return core == n->in[1] ? STEP_KEEP
		                        : gather_core(f, id, core);
	int64_t first = val_int(idx, 0);
	int64_t count = shape_span(&idx->shape, lead, idx->shape.rank);
	/* leading axes repeat, and so do expanded ones */
	lead += rank - idx->shape.rank;
	const Shape at = fold_aligned(&idx->shape, rank);
	first += first < 0 ? x.dim[axis] : 0;
	if (first < 0 || count > x.dim[axis] - first) {
		/* also where a run passes from -1 to 0 */
		if (val_int(idx, 0) < 0 && first >= 0)
			return STEP_KEEP;
		complain(f, n, "index out of range");
		return STEP_FAIL;
	}
	ValId v = fold_slice_axis(f, n->in[0], axis, first, count, id);
	/* y with the axes over which the run repeats at 1 */
	Shape placed = y;
	for (int d = 0; d < rank; d++)
		placed.dim[axis + d] = d < lead ? 1 : at.dim[d];
	if (shape_eq(&placed, &y))
		return fold_turn_reshape(f, id, v);
	return fold_set_broadcast(f, id, fold_reshape(f, v, &placed, id));
}

/* Source of component c of constant index tuples: COORD_FIXED with the index in
 * *at, or the axis of the result whose coordinate it equals. */
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

/* Source of component c of index tuples, which are one constant, or a Concat of
 * expanded constants. */
static int
tuple_coordinate(const struct fold *f, ValId idx, int c, int64_t extent,
                 int64_t *at)
{
	const Val *v = &f->g->val[idx];
	const Node *n = v->def ? &f->g->node[v->def] : NULL;
	int rank = v->shape.rank;
	ValId core;
	Val part;

	if (val_is_const(v))
		return index_coordinate(v, c, extent, at);
	if (!n || n->op != OP_CONCAT || n->attr.CONCAT.axis != rank - 1
	    || n->nin != v->shape.dim[rank - 1])
		return COORD_NONE;
	core = fold_expand_source(f, n->in[c]);
	if (!core || val_nelem(&f->g->val[core]) < 1)
		return COORD_NONE;
	part = f->g->val[core];
	part.shape = fold_aligned(&part.shape, rank);
	return part.shape.dim[rank - 1] != 1 ? COORD_NONE
		: index_coordinate(&part, 0, extent, at);
}

/* gather_nd whose constant indices are coordinates of the result becomes a
 * transposed, broadcast view.  Exporters so index a padding mask [B, S] by
 * (b, s) for every (b, h, t, s). */
enum step
simplify_gather_nd(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	const Val *idx = in_val(f, n, 1);
	ValId v = n->in[0];
	Shape x = f->g->val[v].shape, y = out_val(f, n)->shape, placed = y;
	int len, axis_of[MAX_RANK], rank = y.rank;
	int64_t at[MAX_RANK];
	bool used[MAX_RANK] = { false };

	if (n->attr.GATHER_ND.batch || !shape_known(&x) || val_nelem(idx) < 1)
		return STEP_KEEP;
	len = (int)idx->shape.dim[idx->shape.rank - 1];
	for (int c = 0; c < len; c++) {
		axis_of[c] = tuple_coordinate(f, n->in[1], c, x.dim[c],
		                              &at[c]);
		if (axis_of[c] == COORD_NONE
		    || (axis_of[c] >= 0 && used[axis_of[c]]))
			return STEP_KEEP;
		if (axis_of[c] >= 0)
			used[axis_of[c]] = true;
	}
	for (int c = 0; c < len; c++)
		if (axis_of[c] == COORD_FIXED)
			v = fold_slice_axis(f, v, c, at[c], 1, id);
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
			placed.dim[d] = 1;
	}
	for (int d = len; d < x.rank; d++)
		perm->v[perm->n++] = d;
	bool moved = false;
	for (int d = 0; d < perm->n; d++)
		moved |= perm->v[d] != d;
	if (moved)
		v = fold_emit(f, OP_TRANSPOSE, 1, &v, &attr, id);
	return fold_set_broadcast(f, id, fold_reshape(f, v, &placed, id));
}

/* one_hot of indices known at run time: where(idx == 0..depth-1, on, off),
 * negative indices counted from the end */
enum step
simplify_one_hot(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	Node *n = &g->node[id];
	ValId idx = n->in[0], depth = n->in[1], values = n->in[2], off, on, at;
	const Shape y = out_val(f, n)->shape, scalar = shape_scalar();
	int axis = (int)n->attr.ONE_HOT.axis;

	if (!val_is_const(&g->val[depth]) || !shape_known(&y))
		return STEP_KEEP;
	if (val_nelem(&g->val[values]) != 2) {
		complain(f, n, "expected two values, off and on");
		return STEP_FAIL;
	}
	int64_t count = y.dim[axis];
	off = fold_slice_axis(f, values, 0, 0, 1, id);
	on = fold_slice_axis(f, values, 0, 1, 1, id);
	off = fold_reshape(f, off, &scalar, id);
	on = fold_reshape(f, on, &scalar, id);
	idx = fold_cast(f, idx, DT_I64, id);
	ValId zero = val_scalar(g, DT_I64, 0);
	ValId extent = val_scalar(g, DT_I64, (double)count);
	idx = fold_wrap_index(f, idx, zero, extent, id);
	Shape placed = y, along = shape_along(y.rank, axis, count);
	placed.dim[axis] = 1;
	idx = fold_reshape(f, idx, &placed, id);
	at = fold_numbers(f, count, &along, id);
	at = fold_binary(f, OP_EQ, idx, at, id);
	return fold_set_broadcast(f, id, fold_where(f, at, on, off, id));
}
