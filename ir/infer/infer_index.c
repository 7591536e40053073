/* Shape rules: indexing, and sequences of numbers. */
#include "ir/infer/rules.h"

/* ---- indexing ---- */

bool
infer_gather(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), s = {.rank = 0};
	int axis;

	if (!rule_want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank < 0 || idx.rank < 0)
		return rule_shape(c, unknown(-1));
	if (!rule_want_rank(c, 0, 1)
	    || !rule_axis(c, c->n->attr.GATHER.axis, x.rank, &axis))
		return false;
	return rule_append(c, &s, &x, 0, axis)
	       && rule_append(c, &s, &idx, 0, idx.rank)
	       && rule_append(c, &s, &x, axis + 1, x.rank)
	       && rule_shape(c, s);
}

bool
infer_gather_elements(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1);
	int axis;

	if (!rule_want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank >= 0
	    && !rule_axis(c, c->n->attr.GATHER_ELEMENTS.axis, x.rank, &axis))
		return false;
	if (x.rank >= 0 && idx.rank >= 0 && x.rank != idx.rank)
		return rule_fail(c, "indices of rank %d for data of rank %d",
				 idx.rank, x.rank);
	return rule_shape(c, idx);
}

bool
infer_gather_nd(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), s = {.rank = 0};
	int64_t batch = c->n->attr.GATHER_ND.batch, k;

	if (!rule_want_class(c, 1, "iu", "integers"))
		return false;
	if (x.rank < 0 || idx.rank < 0)
		return rule_shape(c, unknown(-1));
	if (batch < 0 || batch >= idx.rank || batch >= x.rank)
		return rule_fail(c, "%lld batch dims are too many for ranks %d "
		                 "and %d", (long long)batch, x.rank, idx.rank);
	k = idx.dim[idx.rank - 1];
	if (k < 0)
		return rule_shape(c, unknown(-1));
	if (k > x.rank - batch)
		return rule_fail(c, "index tuples of length %lld exceed rank "
		                 "%d of the data", (long long)k, x.rank);
	return rule_append(c, &s, &idx, 0, idx.rank - 1)
	       && rule_append(c, &s, &x, (int)(batch + k), x.rank)
	       && rule_shape(c, s);
}

bool
infer_scatter_add(struct infer *c)
{
	const IntList *l = &c->n->attr.SCATTER_ADD.shape;
	Shape idx = shape_of(c, 0), want = {.rank = 0}, s;
	int axis;

	s = shape_make(l->n, l->v);
	if (!rule_want_class(c, 0, "iu", "integers")
	    || !rule_axis(c, c->n->attr.SCATTER_ADD.axis, s.rank, &axis))
		return false;
	if (s.rank == 0)
		return rule_fail(c, "expected rank 1 or more, found a scalar");
	if (idx.rank >= 0
	    && (!rule_append(c, &want, &s, 0, axis)
		|| !rule_append(c, &want, &idx, 0, idx.rank)
		|| !rule_append(c, &want, &s, axis + 1, s.rank)
		|| !rule_want_shape(c, 1, &want, "updates")))
		return false;
	return rule_want_shape(c, 2, &s, "accumulator")
	       && rule_same_type(c, 1, 2)
	       && rule_result(c, 0, in(c, 1)->dt, s);
}

/* scatter_elements, scatter_nd: what x, idx and upd owe each other. */
static bool
check_scatter(struct infer *c)
{
	Shape x = shape_of(c, 0), idx = shape_of(c, 1), want = idx;
	int64_t how = *attr_int_of(c->n->op, &c->n->attr, "add");
	int axis;

	if (!rule_want_class(c, 1, "iu", "integers")
	    || !rule_same_type(c, 0, 2))
		return false;
	if (how < 0 || how > 4)
		return rule_fail(c, "add: expected 0 to 4, found %lld",
				 (long long)how);
	if (c->n->op == OP_SCATTER_ELEMENTS) {
		if (x.rank >= 0
		    && !rule_axis(c, c->n->attr.SCATTER_ELEMENTS.axis, x.rank,
				  &axis))
			return false;
		if (x.rank >= 0 && idx.rank >= 0 && x.rank != idx.rank)
			return rule_fail(c, "indices of rank %d for data of "
			                 "rank %d", idx.rank, x.rank);
		return rule_want_shape(c, 2, &want, "updates");
	}
	if (x.rank < 0 || idx.rank < 0)
		return true;
	if (idx.rank == 0 || idx.dim[idx.rank - 1] > x.rank)
		return rule_fail(c, "indices do not match data of rank %d",
				 x.rank);
	if (idx.dim[idx.rank - 1] < 0)
		return true;
	want.rank = idx.rank - 1;
	for (int i = (int)idx.dim[idx.rank - 1]; i < x.rank; i++) {
		if (want.rank == MAX_RANK)
			return rule_fail(c, "rank above %d is not supported",
					 MAX_RANK);
		want.dim[want.rank++] = x.dim[i];
	}
	return rule_want_shape(c, 2, &want, "updates");
}

bool
infer_scatter(struct infer *c)
{
	return check_scatter(c)
	       && rule_shape(c, shape_of(c, 0));
}

bool
infer_one_hot(struct infer *c)
{
	Shape idx = shape_of(c, 0), s = {.rank = 0}, depth = unknown(1);
	int axis;

	if (idx.rank < 0)
		return rule_result(c, 0, in(c, 2)->dt, unknown(-1));
	if (rule_operand(c, 1) == KNOWN) {
		if (rule_length(c, 1) != 1 || val_int(in(c, 1), 0) < 0)
			return rule_fail(c, "depth: expected one number >= 0");
		depth.dim[0] = val_int(in(c, 1), 0);
	}
	if (!rule_axis(c, c->n->attr.ONE_HOT.axis, idx.rank + 1, &axis))
		return false;
	return rule_append(c, &s, &idx, 0, axis)
	       && rule_append(c, &s, &depth, 0, 1)
	       && rule_append(c, &s, &idx, axis, idx.rank)
	       && rule_result(c, 0, in(c, 2)->dt, s);
}

bool
infer_topk(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int64_t k = c->n->attr.TOPK.k;
	int axis;

	if (s.rank < 0)
		return rule_shape(c, s)
		       && rule_result(c, 1, DT_I64, s);
	if (!rule_want_rank(c, 0, 1)
	    || !rule_axis(c, c->n->attr.TOPK.axis, s.rank, &axis))
		return false;
	if (has(c, 1)) {
		if (rule_operand(c, 1) == KNOWN && rule_length(c, 1) != 1)
			return rule_fail(c, "k: expected one number");
		k = rule_operand(c, 1) == KNOWN ? val_int(in(c, 1), 0) : -1;
		if (rule_operand(c, 1) == KNOWN && k < 0)
			return rule_fail(c, "k: expected a number >= 0, found "
				"%lld", (long long)k);
	}
	if (s.dim[axis] >= 0 && k > s.dim[axis])
		return rule_fail(c, "k is %lld, but the axis has %lld elements",
				 (long long)k, (long long)s.dim[axis]);
	s.dim[axis] = k;
	return rule_shape(c, s) && rule_result(c, 1, DT_I64, s);
}

/* ---- shapes and sequences of numbers ---- */

bool
infer_shape(struct infer *c)
{
	int64_t r = in(c, 0)->shape.rank, n;

	if (r < 0)
		return rule_result(c, 0, DT_I64, unknown(1));
	n = rule_slice_extent(r, c->n->attr.SHAPE.start, c->n->attr.SHAPE.end,
			      1);
	return rule_result(c, 0, DT_I64, SHAPE(n));
}

bool
infer_size(struct infer *c)
{
	return rule_result(c, 0, DT_I64, shape_scalar());
}

bool
infer_range(struct infer *c)
{
	Shape s = unknown(1);

	if (!rule_same_type(c, 0, 1) || !rule_same_type(c, 0, 2))
		return false;
	for (int i = 0; i < 3; i++) {
		if (rule_operand(c, i) != KNOWN)
			return rule_shape(c, s);
		if (rule_length(c, i) != 1)
			return rule_fail(c, "operand %d: expected a scalar", i);
	}
	if (class_of(c, 0) == 'f') {
		double a = val_float(in(c, 0), 0),
		       step = val_float(in(c, 2), 0);
		double n = (val_float(in(c, 1), 0) - a) / step;

		/* also refuses NaN */
		if (!(n < 0x1p60))
			return rule_fail(c, "range does not end: the step is "
				"zero or too small");
		s.dim[0] = n > 0 ? (int64_t)n + (n > (double)(int64_t)n) : 0;
		return rule_shape(c, s);
	}
	int64_t a = val_int(in(c, 0), 0), b = val_int(in(c, 1), 0);
	int64_t step = val_int(in(c, 2), 0), span;

	if (step == 0 || step == INT64_MIN
	    || __builtin_sub_overflow(b, a, &span) || span == INT64_MIN)
		return rule_fail(c, "range does not end: the step is zero or "
		                 "too small");
	if (step < 0) {
		step = -step;
		span = -span;
	}
	s.dim[0] = span > 0 ? (span - 1) / step + 1 : 0;
	return rule_shape(c, s);
}

/* Output 0 has the shape that operand 0 lists; or the list, if it is absent. */
static bool
result_of_list(struct infer *c, DType dt, IntList l)
{
	int64_t n = rule_length(c, 0);

	if (rule_operand(c, 0) == COMPUTED)
		return rule_result(c, 0, dt, unknown(n < 0 || n > MAX_RANK ? -1
		                                     : (int)n));
	if (!rule_list(c, 0, &l))
		return false;
	for (int i = 0; i < l.n; i++)
		if (l.v[i] < 0)
			return rule_fail(c, "extent %lld is out of range",
				(long long)l.v[i]);
	return rule_result(c, 0, dt, shape_make(l.n, l.v));
}

bool
infer_constant_of_shape(struct infer *c)
{
	int64_t to = c->n->attr.CONSTANT_OF_SHAPE.dt;
	DType dt = to > DT_NONE && to < DT_COUNT ? (DType)to : DT_F32;

	return result_of_list(c, dt, (IntList){ 0 });
}

bool
infer_random(struct infer *c)
{
	int64_t to = c->n->attr.RANDOM.dt;

	if (to <= DT_NONE || to >= DT_COUNT || dtype_info[to].cls != 'f')
		return rule_fail(c, "expected a float dtype for random "
		                 "numbers");
	return result_of_list(c, (DType)to, c->n->attr.RANDOM.shape);
}

bool
infer_extent(struct infer *c)
{
	int64_t to = c->n->attr.EXTENT.dt;
	const IntList *l = &c->n->attr.EXTENT.shape;

	if (to <= DT_NONE || to >= DT_COUNT || dtype_is_blocks((DType)to))
		return rule_fail(c, "missing dtype");
	for (int i = 0; i < l->n; i++)
		if (l->v[i] != 1)
			return rule_fail(c, "extent %lld is out of range",
				(long long)l->v[i]);
	return rule_result(c, 0, (DType)to, shape_make(l->n, l->v));
}

bool
infer_selected(struct infer *c)
{
	const Val *x = in(c, 0);
	Shape s = unknown(2);

	if (x->shape.rank == 0)
		return rule_fail(c, "expected rank 1 or more, found a scalar");
	if (x->shape.rank > 0)
		s.dim[0] = x->shape.rank;
	if (shape_known(&x->shape))
		s.dim[1] = shape_nelem(&x->shape);
	return rule_result(c, 0, DT_I64, s)
		&& rule_result(c, 1, DT_I64, shape_scalar());
}

bool
infer_nonzero(struct infer *c)
{
	const Val *x = in(c, 0);
	Shape s = unknown(2);

	if (x->shape.rank >= 0)
		s.dim[0] = x->shape.rank ? x->shape.rank : 1;
	if (val_is_const(x)) {
		s.dim[1] = 0;
		for (int64_t i = 0; i < val_nelem(x); i++)
			s.dim[1] += val_float(x, i) != 0;
	}
	return rule_result(c, 0, DT_I64, s);
}
