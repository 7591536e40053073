/* Folding rules of ops that move elements without arithmetic. */
#include "passes/eval/eval_rules.h"

#include <string.h>

/* y[i] = x[start + i . stride] over the shape of y. */
static enum eval_status
move_strided(struct eval *e, int64_t start, const int64_t *stride)
{
	const char *x = eval_in(e, 0)->data;
	Val *y = eval_out(e, 0);
	int size = dtype_info[y->dt].nbytes;
	struct element_walk w = walk_new(&y->shape);
	struct element_rows r;
	char *data = e->data;

	walk_add_array(&w, start, stride);
	r = rows_of_walk(&w);
	for (int64_t i = 0; r.len && i < r.count; i++, walk_next(&r.walk))
		copy_strided(data + i * r.len * size, x + r.walk.at[0] * size,
		             r.step[0], r.len, size);
	return EVAL_DONE;
}

enum eval_status
eval_copy(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);

	if (val_data_bytes(x) != val_data_bytes(y))
		return EVAL_SKIP;
	y->data = x->data;
	return EVAL_DONE;
}

enum eval_status
eval_expand(struct eval *e)
{
	struct element_walk w = walk_new(&eval_out(e, 0)->shape);

	walk_add_broadcast(&w, &eval_in(e, 0)->shape);
	return move_strided(e, 0, w.stride[0]);
}

enum eval_status
eval_transpose(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	const IntList *perm = &e->n->attr.TRANSPOSE.perm;
	int rank = x->shape.rank;
	int64_t own[MAX_RANK] = { 0 }, stride[MAX_RANK] = { 0 };

	shape_strides(&x->shape, own);
	for (int d = 0; d < rank; d++)
		stride[d] = own[perm->n ? perm->v[d] : rank - 1 - d];
	return move_strided(e, 0, stride);
}

enum eval_status
eval_slice(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	const IntList *start = &e->n->attr.SLICE.start;
	const IntList *step = &e->n->attr.SLICE.step;
	int64_t stride[MAX_RANK] = { 0 }, first = 0;

	shape_strides(&x->shape, stride);
	for (int d = 0; d < x->shape.rank; d++) {
		first += start->v[d] * stride[d];
		stride[d] *= step->v[d];
	}
	return move_strided(e, first, stride);
}

enum eval_status
eval_concat(struct eval *e)
{
	Val *y = eval_out(e, 0);
	int axis = (int)e->n->attr.CONCAT.axis;
	int64_t outer = 1, inner = dtype_info[y->dt].nbytes, at = 0;
	char *data = e->data;

	for (int d = 0; d < axis; d++)
		outer *= y->shape.dim[d];
	for (int d = axis + 1; d < y->shape.rank; d++)
		inner *= y->shape.dim[d];
	for (int k = 0; k < e->n->nin; k++) {
		const Val *x = eval_in(e, k);
		int64_t row = x->shape.dim[axis] * inner;
		for (int64_t i = 0; row && i < outer; i++)
			memcpy(data + i * y->shape.dim[axis] * inner + at,
			       (const char *)x->data + i * row, (size_t)row);
		at += row;
	}
	return EVAL_DONE;
}

/* Where element i of a padded axis comes from: -1 for the constant. */
static int64_t
pad_origin(int mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	if (mode == 0 || n == 0)
		return -1;
	if (mode == 2)
		return i < 0 ? 0 : n - 1;
	if (mode == 3) {
		i %= n;
		return i < 0 ? i + n : i;
	}
	if (n == 1)
		return 0;
	int64_t period = 2 * (n - 1);
	i = ((i % period) + period) % period;
	return i < n ? i : period - i;
}

enum eval_status
eval_pad(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	const IntList *begin = &e->n->attr.PAD.begin;
	int mode = (int)e->n->attr.PAD.mode, rank = y->shape.rank;
	int size = dtype_info[y->dt].nbytes;
	int64_t n = val_nelem(y), stride[MAX_RANK] = { 0 };
	void *data = e->data;
	struct element_walk w = walk_new(&y->shape);

	shape_strides(&x->shape, stride);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		int64_t from = 0;
		bool inside = true;
		for (int d = 0; d < rank; d++) {
			int64_t k = pad_origin(mode, w.idx[d] - begin->v[d],
			                       x->shape.dim[d]);
			inside &= k >= 0;
			from += k * stride[d];
		}
		if (inside)
			copy_elem(data, i, x->data, from, size);
		else
			element_set_float(y->dt, data, i, e->n->attr.PAD.value);
	}
	return EVAL_DONE;
}

enum eval_status
eval_tile(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int size = dtype_info[y->dt].nbytes;
	int64_t n = val_nelem(y), stride[MAX_RANK] = { 0 };
	void *data = e->data;
	struct element_walk w = walk_new(&y->shape);

	shape_strides(&x->shape, stride);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		int64_t from = 0;
		for (int d = 0; d < y->shape.rank; d++)
			from += w.idx[d] % x->shape.dim[d] * stride[d];
		copy_elem(data, i, x->data, from, size);
	}
	return EVAL_DONE;
}

enum eval_status
eval_trilu(struct eval *e)
{
	const Val *x = eval_in(e, 0);
	Val *y = eval_out(e, 0);
	int size = dtype_info[y->dt].nbytes, rank = y->shape.rank;
	int64_t k = e->n->attr.TRILU.k, n = val_nelem(y), rows, cols;
	bool upper = e->n->attr.TRILU.upper;
	char *data = e->data;

	if (rank < 2)
		return eval_fail(e, "trilu requires rank 2 or more");
	rows = y->shape.dim[rank - 2];
	cols = y->shape.dim[rank - 1];
	/* k may be any 64-bit number; the sum may not wrap */
	k = k < -rows ? -rows - 1 : k > cols ? cols : k;
	for (int64_t r = 0; cols && r < n / cols; r++) {
		/* columns below `edge` are on one side of the diagonal */
		int64_t edge = r % rows + k + !upper, from, to;

		edge = edge < 0 ? 0 : edge > cols ? cols : edge;
		from = upper ? edge : 0;
		to = upper ? cols : edge;
		memcpy(data + (r * cols + from) * size,
		       (const char *)x->data + (r * cols + from) * size,
		       (size_t)((to - from) * size));
	}
	return EVAL_DONE;
}

/* ---- indexing ---- */

/* Reads index i and makes it non-negative; false if out of 0..extent-1. */
static bool
index_at(const Val *idx, int64_t i, int64_t extent, int64_t *k)
{
	*k = val_int(idx, i);
	if (*k < 0)
		*k += extent;
	return *k >= 0 && *k < extent;
}

static enum eval_status
bad_index(struct eval *e, const Val *idx, int64_t i, int64_t extent)
{
	return eval_fail(e, "index %lld is out of range for an axis of %lld",
	                 (long long)val_int(idx, i), (long long)extent);
}

enum eval_status
eval_gather(struct eval *e)
{
	const Val *x = eval_in(e, 0), *idx = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int axis = (int)e->n->attr.GATHER.axis;
	int64_t nidx = val_nelem(idx), extent = x->shape.dim[axis];
	int64_t outer = 1, inner = dtype_info[y->dt].nbytes, k;
	char *data = e->data;

	for (int d = 0; d < axis; d++)
		outer *= x->shape.dim[d];
	for (int d = axis + 1; d < x->shape.rank; d++)
		inner *= x->shape.dim[d];
	for (int64_t i = 0; i < nidx; i++) {
		if (!index_at(idx, i, extent, &k))
			return bad_index(e, idx, i, extent);
		for (int64_t o = 0; inner && o < outer; o++)
			memcpy(data + (o * nidx + i) * inner,
			       (const char *)x->data + (o * extent + k) * inner,
			       (size_t)inner);
	}
	return EVAL_DONE;
}

enum eval_status
eval_gather_elements(struct eval *e)
{
	const Val *x = eval_in(e, 0), *idx = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int axis = (int)e->n->attr.GATHER_ELEMENTS.axis;
	int size = dtype_info[y->dt].nbytes;
	int64_t n = val_nelem(y), stride[MAX_RANK] = { 0 }, k;
	int64_t extent = x->shape.dim[axis];
	void *data = e->data;
	struct element_walk w = walk_new(&y->shape);

	shape_strides(&x->shape, stride);
	walk_add_array(&w, 0, stride);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		if (!index_at(idx, i, extent, &k))
			return bad_index(e, idx, i, extent);
		copy_elem(data, i, x->data,
		          w.at[0] + (k - w.idx[axis]) * stride[axis], size);
	}
	return EVAL_DONE;
}

/* Offset of the slice that index tuple `row` names within dims b.. of x. */
static bool
tuple_offset(struct eval *e, const Val *x, const Val *idx, int64_t row,
             int batch, const int64_t *stride, int64_t *at)
{
	int len = (int)idx->shape.dim[idx->shape.rank - 1];
	int64_t k;

	for (int d = 0; d < len; d++) {
		int64_t extent = x->shape.dim[batch + d];
		if (!index_at(idx, row * len + d, extent, &k)) {
			bad_index(e, idx, row * len + d, extent);
			return false;
		}
		*at += k * stride[batch + d];
	}
	return true;
}

enum eval_status
eval_gather_nd(struct eval *e)
{
	const Val *x = eval_in(e, 0), *idx = eval_in(e, 1);
	Val *y = eval_out(e, 0);
	int batch = (int)e->n->attr.GATHER_ND.batch;
	int len = (int)idx->shape.dim[idx->shape.rank - 1];
	int64_t size = dtype_info[y->dt].nbytes, stride[MAX_RANK] = { 0 };
	int64_t rows = 1, per_batch = 1, block = 1;
	char *data = e->data;

	shape_strides(&x->shape, stride);
	for (int d = 0; d < idx->shape.rank - 1; d++) {
		rows *= idx->shape.dim[d];
		per_batch *= d < batch ? 1 : idx->shape.dim[d];
	}
	for (int d = batch + len; d < x->shape.rank; d++)
		block *= x->shape.dim[d];
	for (int64_t r = 0; block && r < rows; r++) {
		int64_t at = batch ? r / per_batch * stride[batch - 1] : 0;
		if (!tuple_offset(e, x, idx, r, batch, stride, &at))
			return EVAL_FAIL;
		memcpy(data + r * block * size,
		       (const char *)x->data + at * size,
		       (size_t)(block * size));
	}
	return EVAL_DONE;
}

/* What attribute `add` of the scatters stands for. */
static Op
combine_op(int64_t how)
{
	return how == 1 ? OP_REDUCE_SUM : how == 2 ? OP_REDUCE_PROD
		: how == 3 ? OP_REDUCE_MAX : OP_REDUCE_MIN;
}

/* Element j of `upd` into element i of y. */
static void
scatter_elem(DType dt, int64_t how, void *y, int64_t i, Val *view,
             const Val *upd, int64_t j)
{
	view->data = y;
	if (how == 0)
		copy_elem(y, i, upd->data, j, dtype_info[dt].nbytes);
	else if (dt_is_float(dt))
		element_set_float(dt, y, i, eval_reduced(combine_op(how),
			val_float(view, i), val_float(upd, j)));
	else
		element_set_int(dt, y, i, eval_reduced_int(combine_op(how), dt,
			val_int(view, i), val_int(upd, j)));
}

enum eval_status
eval_scatter_elements(struct eval *e)
{
	const Val *x = eval_in(e, 0), *idx = eval_in(e, 1);
	const Val *upd = eval_in(e, 2);
	Val *y = eval_out(e, 0), view = *y;
	int axis = (int)e->n->attr.SCATTER_ELEMENTS.axis;
	int64_t how = e->n->attr.SCATTER_ELEMENTS.add;
	int64_t n = val_nelem(idx), stride[MAX_RANK] = { 0 }, k;
	int64_t extent = x->shape.dim[axis];
	void *data = e->data;
	struct element_walk w = walk_new(&idx->shape);

	view.kind = V_CONST;
	memcpy(data, x->data, (size_t)val_data_bytes(x));
	shape_strides(&x->shape, stride);
	walk_add_array(&w, 0, stride);
	for (int64_t i = 0; i < n; i++, walk_next(&w)) {
		if (!index_at(idx, i, extent, &k))
			return bad_index(e, idx, i, extent);
		int64_t at = w.at[0] + (k - w.idx[axis]) * stride[axis];
		scatter_elem(y->dt, how, data, at, &view, upd, i);
	}
	return EVAL_DONE;
}

enum eval_status
eval_scatter_nd(struct eval *e)
{
	const Val *x = eval_in(e, 0), *idx = eval_in(e, 1);
	const Val *upd = eval_in(e, 2);
	Val *y = eval_out(e, 0), view = *y;
	int len = (int)idx->shape.dim[idx->shape.rank - 1];
	int64_t rows = 1, block = 1, stride[MAX_RANK] = { 0 };
	void *data = e->data;

	view.kind = V_CONST;
	memcpy(data, x->data, (size_t)val_data_bytes(x));
	shape_strides(&x->shape, stride);
	for (int d = 0; d < idx->shape.rank - 1; d++)
		rows *= idx->shape.dim[d];
	for (int d = len; d < x->shape.rank; d++)
		block *= x->shape.dim[d];
	for (int64_t r = 0; r < rows; r++) {
		int64_t at = 0;
		if (!tuple_offset(e, x, idx, r, 0, stride, &at))
			return EVAL_FAIL;
		for (int64_t j = 0; j < block; j++)
			scatter_elem(y->dt, e->n->attr.SCATTER_ND.add, data,
			             at + j, &view, upd, r * block + j);
	}
	return EVAL_DONE;
}

/* one_hot(idx, depth, values): the new axis may be the last + 1. */
enum eval_status
eval_one_hot(struct eval *e)
{
	const Val *idx = eval_in(e, 0), *values = eval_in(e, 2);
	Val *y = eval_out(e, 0);
	int rank = y->shape.rank, axis = (int)e->n->attr.ONE_HOT.axis;
	int64_t n = val_nelem(y), depth, inner = 1;
	int size = dtype_info[y->dt].nbytes;
	void *data = e->data;

	if (axis < 0)
		axis += rank;
	depth = y->shape.dim[axis];
	for (int d = axis + 1; d < rank; d++)
		inner *= y->shape.dim[d];
	for (int64_t i = 0; i < n; i++) {
		int64_t at = i / (inner * depth) * inner + i % inner;
		int64_t k = val_int(idx, at);
		if (k < 0)
			k += depth;
		copy_elem(data, i, values->data, i / inner % depth == k, size);
	}
	return EVAL_DONE;
}
