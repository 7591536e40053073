/* Shape rules: ops that move elements and compute nothing. */
#include "ir/infer/rules.h"

/* ---- layout ---- */

/* Replace -1 in *want by what is left of `total` elements. */
static bool
fill_extent(struct infer *c, Shape *want, int hole, int64_t total)
{
	Shape filled = *want;
	int64_t rest;
	char from[INFER_TEXT], to[INFER_TEXT];

	if (hole >= 0)
		filled.dim[hole] = 1;
	if (!shape_known(&filled) || total < 0)
		return true;
	/* -1 if the product overflows: then it cannot be the total */
	rest = shape_nelem(&filled);
	if (hole < 0 && rest == total)
		return true;
	if (hole >= 0 && rest >= 0 && (rest ? total % rest : total) == 0) {
		want->dim[hole] = rest ? total / rest : 0;
		return true;
	}
	return rule_fail(c, "%s cannot be reshaped to %s",
			 rule_text(from, c, 0),
			 shape_text(to, INFER_TEXT, DT_NONE, want));
}

bool
infer_reshape(struct infer *c)
{
	IntList l = c->n->attr.RESHAPE.shape;
	const Shape *x = &in(c, 0)->shape;
	Shape s = {.rank = 0};
	int hole = -1;

	if (rule_operand(c, 1) == COMPUTED) {
		int64_t n = rule_length(c, 1);

		if (n > MAX_RANK)
			return rule_fail(c, "rank %lld is not supported",
					 (long long)n);
		return rule_shape(c, unknown((int)n));
	}
	if (!rule_list(c, 1, &l))
		return false;
	s.rank = l.n;
	for (int i = 0; i < l.n; i++) {
		s.dim[i] = l.v[i];
		if (l.v[i] == 0 && !c->n->attr.RESHAPE.allowzero) {
			if (x->rank >= 0 && i >= x->rank)
				return rule_fail(c, "dim %d of the new shape "
				                 "is 0 (copy), but the old "
				                 "shape has no such dim", i);
			s.dim[i] = x->rank >= 0 ? x->dim[i] : -1;
		} else if (l.v[i] == -1) {
			if (hole >= 0)
				return rule_fail(c, "more than one -1 in the "
				                 "new shape");
			hole = i;
		} else if (l.v[i] < 0) {
			return rule_fail(c, "invalid extent %lld in the new "
				"shape", (long long)l.v[i]);
		}
	}
	return fill_extent(c, &s, hole, shape_nelem(x))
	       && rule_shape(c, s);
}

bool
infer_squeeze(struct infer *c)
{
	IntList l = c->n->attr.SQUEEZE.axes;
	Shape x = shape_of(c, 0), s = {.rank = 0};
	bool set[MAX_RANK], all;
	char text[INFER_TEXT];

	if (x.rank < 0)
		return rule_shape(c, x);
	if (rule_operand(c, 1) == COMPUTED) {
		int64_t n = rule_length(c, 1);

		return rule_shape(c, unknown(n < 0 || n > x.rank ? -1
		                             : x.rank - (int)n));
	}
	if (!rule_axes(c, 1, &l, x.rank, set))
		return false;
	all = l.n == 0 && rule_operand(c, 1) == ABSENT;
	for (int i = 0; i < x.rank; i++) {
		if (all && x.dim[i] < 0)
			return rule_shape(c, unknown(-1));
		if (set[i] && x.dim[i] >= 0 && x.dim[i] != 1)
			return rule_fail(c, "axis %d of %s has %lld elements, "
			                 "expected one", i,
			                 rule_text(text, c, 0),
			                 (long long)x.dim[i]);
		if (!set[i] && !(all && x.dim[i] == 1))
			s.dim[s.rank++] = x.dim[i];
	}
	return rule_shape(c, s);
}

bool
infer_unsqueeze(struct infer *c)
{
	IntList l = c->n->attr.UNSQUEEZE.axes;
	Shape x = shape_of(c, 0), s;
	int64_t n = rule_operand(c, 1) == ABSENT ? l.n : rule_length(c, 1);
	bool set[MAX_RANK];

	if (x.rank < 0 || n < 0)
		return rule_shape(c, unknown(-1));
	if (n + x.rank > MAX_RANK)
		return rule_fail(c, "rank above %d is not supported", MAX_RANK);
	s = unknown(x.rank + (int)n);
	if (rule_operand(c, 1) == COMPUTED)
		return rule_shape(c, s);
	if (!rule_axes(c, 1, &l, s.rank, set))
		return false;
	for (int i = 0, k = 0; i < s.rank; i++)
		s.dim[i] = set[i] ? 1 : x.dim[k++];
	return rule_shape(c, s);
}

static int64_t
extent_product(const Shape *s, int first, int last)
{
	Shape part = {.rank = last - first};

	for (int i = 0; i < part.rank; i++)
		part.dim[i] = s->dim[first + i];
	return shape_nelem(&part);
}

bool
infer_flatten(struct infer *c)
{
	int64_t axis = c->n->attr.FLATTEN.axis;
	Shape x = shape_of(c, 0), s = unknown(2);

	if (x.rank >= 0) {
		if (axis < -x.rank || axis > x.rank)
			return rule_fail(c, "axis %lld is out of range for "
			                 "rank %d", (long long)axis, x.rank);
		axis += axis < 0 ? x.rank : 0;
		s.dim[0] = extent_product(&x, 0, (int)axis);
		s.dim[1] = extent_product(&x, (int)axis, x.rank);
	}
	return rule_shape(c, s);
}

bool
infer_expand(struct infer *c)
{
	IntList l = c->n->attr.EXPAND.shape;
	Shape s = shape_of(c, 0), to;
	char from[INFER_TEXT], want[INFER_TEXT];

	if (rule_operand(c, 1) == COMPUTED) {
		int64_t n = rule_length(c, 1);

		to = unknown(n < 0 || n > MAX_RANK ? -1 : (int)n);
		/* an unknown extent here may be 1, and then x decides */
		if (!shape_broadcast(&s, &to))
			return rule_fail(c, "the operand does not broadcast to "
				"the new shape");
		for (int i = 0; i < s.rank; i++)
			if (s.dim[i] == 1)
				s.dim[i] = -1;
		return rule_shape(c, s);
	}
	if (!rule_list(c, 1, &l))
		return false;
	for (int i = 0; i < l.n; i++)
		if (l.v[i] < 0)
			return rule_fail(c, "invalid extent %lld in the new "
				"shape", (long long)l.v[i]);
	to = shape_make(l.n, l.v);
	if (!shape_broadcast(&s, &to))
		return rule_fail(c, "%s cannot be expanded to %s",
				 rule_text(from, c, 0),
				 shape_text(want, INFER_TEXT, DT_NONE, &to));
	return rule_shape(c, s);
}

bool
infer_transpose(struct infer *c)
{
	const IntList *perm = &c->n->attr.TRANSPOSE.perm;
	Shape x = shape_of(c, 0), s = x;
	bool seen[MAX_RANK] = {false};

	if (x.rank < 0)
		return rule_shape(c, unknown(perm->n ? perm->n : -1));
	if (perm->n && perm->n != x.rank)
		return rule_fail(c, "expected a permutation of %d axes, found "
		                 "%d", x.rank,
				 perm->n);
	for (int i = 0; i < x.rank; i++) {
		int64_t from = perm->n ? perm->v[i] : x.rank - 1 - i;

		if (from < 0 || from >= x.rank || seen[from])
			return rule_fail(c, "perm is not a permutation");
		seen[from] = true;
		s.dim[i] = x.dim[from];
	}
	return rule_shape(c, s);
}

int64_t
rule_slice_extent(int64_t dim, int64_t start, int64_t end, int64_t step)
{
	int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;

	start += start < 0 ? dim : 0;
	end += end < 0 ? dim : 0;
	start = start < low ? low : start > high ? high : start;
	end = end < low ? low : end > high ? high : end;
	if (step > 0)
		return end > start ? (end - start - 1) / step + 1 : 0;
	/* -step would overflow for INT64_MIN, step + 1 does not */
	return start > end
		       ? (start - end - 1) / -(step + (step == INT64_MIN)) + 1
		       : 0;
}

/* Slice with its static operands still there. */
static bool
slice_operands(struct infer *c, Shape *s)
{
	IntList start, end, axes = {.n = 0}, step;
	Shape x = shape_of(c, 0);

	*s = unknown(x.rank);
	for (int i = 1; i < c->n->nin; i++)
		if (rule_operand(c, i) == COMPUTED || x.rank < 0)
			return true;
	if (!has(c, 1) || !has(c, 2))
		return rule_fail(c, "expected both starts and ends");
	if (!rule_list(c, 1, &start) || !rule_list(c, 2, &end)
	    || !rule_list(c, 3, &axes) || !rule_list(c, 4, &step))
		return false;
	if (start.n != end.n || (has(c, 3) && axes.n != start.n)
	    || (has(c, 4) && step.n != start.n) || start.n > x.rank)
		return rule_fail(c, "starts, ends, axes and steps have "
				    "different lengths or exceed the rank");
	*s = x;
	for (int i = 0; i < start.n; i++) {
		int axis;

		if (!rule_axis(c, has(c, 3) ? axes.v[i] : i, x.rank, &axis))
			return false;
		if (has(c, 4) && step.v[i] == 0)
			return rule_fail(c, "step must not be 0");
		if (x.dim[axis] >= 0)
			s->dim[axis] = rule_slice_extent(
				x.dim[axis], start.v[i], end.v[i],
				has(c, 4) ? step.v[i] : 1);
	}
	return true;
}

/* With attributes alone the extents are the output's own; they must stay
 * within x. */
static bool
slice_dense(struct infer *c, Shape *s)
{
	const IntList *start = &c->n->attr.SLICE.start;
	const IntList *step = &c->n->attr.SLICE.step;
	Shape x = shape_of(c, 0);
	const Shape *y = &c->g->val[c->n->out[0]].shape;

	*s = unknown(x.rank);
	if (x.rank < 0)
		return true;
	if (start->n != x.rank || step->n != x.rank)
		return rule_fail(c, "found %d starts and %d steps for rank %d",
				 start->n, step->n, x.rank);
	for (int i = 0; i < x.rank && c->n->out[0]; i++) {
		int64_t last, n = y->rank == x.rank ? y->dim[i] : -1;

		if (n <= 0 || x.dim[i] < 0)
			continue;
		if (!mul_ok(n - 1, step->v[i], &last)
		    || !add_ok(last, start->v[i], &last) || start->v[i] < 0
		    || start->v[i] >= x.dim[i] || last < 0 || last >= x.dim[i])
			return rule_fail(c, "axis %d: slice of %lld elements "
			                 "from %lld with step %lld leaves the "
			                 "range 0..%lld", i,
			                 (long long)n, (long long)start->v[i],
			                 (long long)step->v[i],
			                 (long long)x.dim[i] - 1);
	}
	return true;
}

bool
infer_slice(struct infer *c)
{
	Shape s;

	return (c->n->nin > 1 ? slice_operands(c, &s) : slice_dense(c, &s))
	       && rule_shape(c, s);
}

/* Extent of piece `index` when `dim` is cut into chunks. */
static bool
chunk_extent(struct infer *c, int64_t dim, int64_t chunk, int64_t *n)
{
	int64_t index = c->n->attr.SPLIT.index, at;

	if (chunk <= 0)
		return rule_fail(c, "chunk size must be positive, found %lld",
				 (long long)chunk);
	if (!mul_ok(index, chunk, &at) || at > dim)
		return rule_fail(c, "chunk %lld does not exist: the axis has "
		                 "%lld elements in chunks of %lld",
				 (long long)index, (long long)dim,
				 (long long)chunk);
	*n = dim - at < chunk ? dim - at : chunk;
	return true;
}

static bool
part_extent(struct infer *c, int64_t dim, int64_t *n)
{
	int64_t index = c->n->attr.SPLIT.index, count = c->n->attr.SPLIT.count;
	int64_t sum = 0, chunk = c->n->attr.SPLIT.chunk;
	const Val *sizes = has(c, 1) ? in(c, 1) : NULL;

	if (index < 0)
		return rule_fail(c, "chunk index must not be negative, found "
		                 "%lld", (long long)index);
	if (rule_operand(c, 1) == COMPUTED || (dim < 0 && !sizes))
		return true;
	if (sizes && sizes->shape.rank == 0)
		chunk = val_int(sizes, 0);
	else if (sizes) {
		if (index >= val_nelem(sizes))
			return rule_fail(c, "chunk %lld does not exist: there "
				"are %lld chunks", (long long)index,
					 (long long)val_nelem(sizes));
		for (int64_t i = 0; i < val_nelem(sizes); i++)
			if (val_int(sizes, i) < 0
			    || !add_ok(sum, val_int(sizes, i), &sum))
				return rule_fail(c, "invalid size of chunk "
					"%lld", (long long)i);
		if (dim >= 0 && sum != dim)
			return rule_fail(c, "chunk sizes do not add up to the "
			                 "extent: expected %lld, found %lld",
			                 (long long)dim,
			                 (long long)sum);
		*n = val_int(sizes, index);
		return true;
	}
	if (dim < 0)
		return true;
	if (!chunk && count > 0)
		chunk = dim / count + (dim % count != 0);
	return chunk_extent(c, dim, chunk ? chunk : 1, n);
}

bool
infer_split(struct infer *c)
{
	Shape x = shape_of(c, 0);
	int axis;

	if (x.rank < 0)
		return rule_shape(c, x);
	if (x.rank == 0)
		return rule_fail(c, "cannot split a scalar");
	if (!rule_axis(c, c->n->attr.SPLIT.axis, x.rank, &axis))
		return false;
	int64_t n = -1;

	if (!part_extent(c, x.dim[axis], &n))
		return false;
	x.dim[axis] = n;
	if (!c->n->attr.SPLIT.keepdims) {
		if (n > 1)
			return rule_fail(c, "keepdims=0 needs chunks of 1 "
			                 "element, found %lld", (long long)n);
		x.rank--;
		for (int i = axis; i < x.rank; i++)
			x.dim[i] = x.dim[i + 1];
	}
	return rule_shape(c, x);
}

bool
infer_concat(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int axis = 0;
	char a[INFER_TEXT], b[INFER_TEXT];

	for (int i = 1; i < c->n->nin; i++)
		if (s.rank < 0)
			s = unknown(shape_of(c, i).rank);
	if (s.rank < 0)
		return rule_shape(c, s);
	if (s.rank == 0)
		return rule_fail(c, "cannot concatenate scalars");
	if (!rule_axis(c, c->n->attr.CONCAT.axis, s.rank, &axis))
		return false;
	s.dim[axis] = 0;
	for (int i = 0; i < c->n->nin; i++) {
		Shape x = shape_of(c, i);
		int64_t n = x.rank < 0 ? -1 : x.dim[axis];

		if (!rule_same_type(c, 0, i))
			return false;
		if (s.dim[axis] < 0 || n < 0)
			s.dim[axis] = -1;
		else if (!add_ok(s.dim[axis], n, &s.dim[axis]))
			return rule_fail(c, "extent overflows");
		if (x.rank < 0)
			continue;
		x.dim[axis] = s.dim[axis];
		if (!rule_dims_fit(&s, &x))
			return rule_fail(c, "cannot concatenate along axis %d: "
			                 "%s and %s", axis, rule_text(a, c, 0),
			                 rule_text(b, c, i));
		for (int k = 0; k < s.rank; k++)
			if (k != axis && s.dim[k] < 0)
				s.dim[k] = x.dim[k];
	}
	return rule_shape(c, s);
}

/* What pad adds on each axis, from operands or attributes. */
static bool
pad_widths(struct infer *c, int rank, int64_t width[MAX_RANK])
{
	const IntList *begin = &c->n->attr.PAD.begin;
	const IntList *end = &c->n->attr.PAD.end;
	IntList axes = {.n = rank};
	bool set[MAX_RANK];

	memset(width, 0, MAX_RANK * sizeof *width);
	if (rule_operand(c, 1) == ABSENT) {
		if (begin->n != rank || end->n != rank)
			return rule_fail(c, "found %d and %d pad widths for "
				"rank %d", begin->n, end->n, rank);
		for (int i = 0; i < rank; i++)
			if (!add_ok(begin->v[i], end->v[i], &width[i]))
				return rule_fail(c, "extent overflows");
		return true;
	}
	for (int i = 0; i < rank; i++)
		axes.v[i] = i;
	if (!rule_axes(c, 3, &axes, rank, set))
		return false;
	if (rule_length(c, 1) != 2 * axes.n)
		return rule_fail(c, "found %lld pad widths for %d axes",
				 (long long)rule_length(c, 1), axes.n);
	for (int i = 0; i < axes.n; i++) {
		int64_t axis = axes.v[i] + (axes.v[i] < 0 ? rank : 0);

		if (!add_ok(val_int(in(c, 1), i), val_int(in(c, 1), axes.n + i),
			    &width[axis]))
			return rule_fail(c, "extent overflows");
	}
	return true;
}

bool
infer_pad(struct infer *c)
{
	Shape s = shape_of(c, 0);
	int64_t width[MAX_RANK];

	if (s.rank < 0 || rule_operand(c, 1) == COMPUTED
	    || rule_operand(c, 3) == COMPUTED)
		return rule_shape(c, unknown(s.rank));
	if (!pad_widths(c, s.rank, width))
		return false;
	for (int i = 0; i < s.rank; i++)
		if (s.dim[i] >= 0
		    && (!add_ok(s.dim[i], width[i], &s.dim[i]) || s.dim[i] < 0))
			return rule_fail(c, "axis %d: extent after padding is "
			                 "%lld", i, (long long)s.dim[i]);
	return rule_shape(c, s);
}

bool
infer_tile(struct infer *c)
{
	IntList l = c->n->attr.TILE.repeats;
	Shape s = shape_of(c, 0);

	if (s.rank < 0 || rule_operand(c, 1) == COMPUTED)
		return rule_shape(c, unknown(s.rank));
	if (!rule_list(c, 1, &l))
		return false;
	if (l.n != s.rank)
		return rule_fail(c, "expected %d repeats, found %d", s.rank,
				 l.n);
	for (int i = 0; i < s.rank; i++)
		if (l.v[i] < 0
		    || (s.dim[i] >= 0 && !mul_ok(s.dim[i], l.v[i], &s.dim[i])))
			return rule_fail(c, "axis %d: %lld repeats are out of "
				"range", i, (long long)l.v[i]);
	return rule_shape(c, s);
}
