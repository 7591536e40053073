/* ops that keep each row of a padded dim apart (dynamic.c).
 *
 * Each rule maps the padded dim of the input to a dim of the output, or refuses
 * with the reason.
 */
#include "passes/selection/dynamic_rules.h"

/* ---- row by row ---- */

/* Inputs that broadcast: a padded dim meets only dims of the same size. */
static bool
handle_broadcast(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int rank = out_val(f, n)->shape.rank, at = -1, size = 0;
	int last = op_info[was->op].nstat;

	if (last > n->nin)
		last = n->nin;
	for (int i = 0; i < last; i++) {
		const struct padded_dim *p = padded_of(f, n->in[i]);
		int axis = padded_axis(f, n->in[i]);

		if (axis < 0)
			continue;
		axis += rank - rank_of(f, n->in[i]);
		if (size && (size != p->size || at != axis))
			return refuse_dynamic(f, id, size,
			                      "combines two different "
			                      "data-dependent sizes");
		at = axis;
		size = p->size;
	}
	for (int i = 0; size && i < last; i++) {
		int d = n->in[i] ? at - rank + rank_of(f, n->in[i]) : -1;

		if (n->in[i] && padded_axis(f, n->in[i]) < 0 && d >= 0
		    && extent(f, n->in[i], d) != 1)
			return refuse_dynamic(f, id, size, "combines a dim of "
			                      "data-dependent size with one of "
			                      "fixed size");
	}
	return !size || set_padded(f, id, 0, at, size);
}

/* Elements of a row if dims of x from `axis` on merge into one of that extent;
 * 0: they do not. */
static int64_t
merged_row_size(struct fold *f, ValId x, int axis, int64_t whole)
{
	int64_t all = extent(f, x, axis);

	for (int d = axis + 1; d < rank_of(f, x) && all < whole; d++)
		all *= extent(f, x, d);
	return all == whole ? whole / extent(f, x, axis) : 0;
}

/* The dim of the output that holds dim `axis` of the input, perhaps merged with
 * later dims: equal extent, equal number of elements before it.  The shape must
 * not give it as a number. */
static bool
handle_reshape(struct fold *f, NodeId id, const Node *was)
{
	const Graph *g = f->g;
	ValId x = was->in[0], y = was->out[0];
	const struct padded_dim *p = padded_of(f, x);
	int64_t before = 1, now = 1, times;
	int to = 0;

	if (!p || p->axis < 0)
		return refuse_dynamic(f, id, any_size(f, was),
		                      "reshapes to a data-dependent size");
	for (int d = 0; d < p->axis; d++)
		before *= extent(f, x, d);
	while (to < rank_of(f, y)
	       && !(now == before && extent(f, y, to) != 1))
		now *= extent(f, y, to++);
	times = to < rank_of(f, y) ? merged_row_size(f, x, p->axis,
	                                             extent(f, y, to)) : 0;
	if (!times)
		return refuse_dynamic(f, id, p->size,
		                      "works across a dim of data-dependent "
		                      "size");
	if (was->op == OP_RESHAPE) {
		const int64_t *symbol = was->nin > 1
		                    ? symbols_of(f, was->in[1]) : NULL;
		int64_t want = was->nin > 1 ? val_int(&g->val[was->in[1]], to)
		                            : 1;

		if ((want > 0
		     && !(symbol && symbol[to] == p->size && times == 1))
		    || (want == 0 && to != p->axis))
			return refuse_dynamic(f, id, p->size,
			                      "reshapes a dim of "
			                      "data-dependent size to a fixed "
			                      "size");
		for (int d = 0; symbol && d < rank_of(f, y); d++)
			if (d != to && symbol[d])
				return refuse_dynamic(f, id, p->size,
				                    "has a shape computed from "
				                      "a data-dependent size");
	}
	return set_padded_flat(f, id, to, p->size, times);
}

static bool
handle_expand(struct fold *f, NodeId id, const Node *was)
{
	const Graph *g = f->g;
	ValId x = was->in[0], y = was->out[0];
	ValId s = was->nin > 1 ? was->in[1] : 0;
	const int64_t *symbol = symbols_of(f, s);
	const struct padded_dim *p = padded_of(f, x);
	int n = s ? (int)val_nelem(&g->val[s]) : 0, rank = rank_of(f, y);
	int at = padded_axis(f, x), size = at >= 0 ? p->size : 0;

	at += at >= 0 ? rank - rank_of(f, x) : 0;
	for (int i = 0; i < n; i++) {
		int d = rank - n + i, from = d - rank + rank_of(f, x);
		int64_t m = symbol ? symbol[i] : 0;

		if (m == 0 && d == at && val_int(&g->val[s], i) != 1)
			return refuse_dynamic(f, id, size, "combines a dim of "
			                      "data-dependent size with one of "
			                      "fixed size");
		if (m == 0)
			continue;
		if (m < 0 || (at >= 0 && (d != at || m != size))
		    || (at < 0 && from >= 0 && extent(f, x, from) != 1))
			return refuse_dynamic(f, id, any_size(f, was),
			              "expands to a data-dependent size that "
			              "does not match the input");
		at = d;
		size = (int)m;
	}
	return set_padded(f, id, 0, at, size);
}

/* The output's shape is operand 0. */
static bool
handle_of_shape(struct fold *f, NodeId id, const Node *was)
{
	const int64_t *symbol = symbols_of(f, was->in[0]);
	int at = -1, rank = rank_of(f, was->out[0]);

	for (int d = 0; symbol && d < rank; d++) {
		if (symbol[d] && (symbol[d] < 0 || at >= 0))
			return refuse_dynamic(f, id, any_size(f, was),
			                      "has a shape computed from "
			                      "data-dependent sizes");
		if (symbol[d])
			at = d;
	}
	return at < 0 || set_padded(f, id, 0, at, (int)symbol[at]);
}

static bool
handle_range(struct fold *f, NodeId id, const Node *was)
{
	const Val *start = &f->g->val[was->in[0]], *step;
	const int64_t *symbol = symbols_of(f, was->in[1]);

	step = &f->g->val[was->in[2]];
	if (!symbol || symbol[0] < 0 || symbols_of(f, was->in[0])
	    || symbols_of(f, was->in[2]) || !val_is_const(start)
	    || !val_is_const(step) || val_float(start, 0) != 0
	    || val_float(step, 0) != 1)
		return refuse_dynamic(f, id, any_size(f, was),
		              "is a range of data-dependent size that does not "
		              "start at 0 with step 1");
	fold_require_compact(f, (int)symbol[0]);
	return set_padded(f, id, 0, 0, (int)symbol[0]);
}

static bool
handle_shape(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	int64_t many = val_nelem(out_val(f, n));
	int64_t *symbol = arena_array(f->p->scratch, (size_t)many + 1,
	                              sizeof *symbol);
	int first = n->op == OP_SHAPE ? (int)n->attr.SHAPE.start : 0;

	(void)was;
	if (p->axis < 0)
		return true;
	if (n->op == OP_SIZE)
		symbol[0] = rank_of(f, n->in[0]) == 1 ? p->size
			: SYMBOL_DERIVED;
	first += first < 0 ? rank_of(f, n->in[0]) : 0;
	first = first < 0 ? 0 : first;
	if (n->op == OP_SHAPE && p->axis >= first && p->axis - first < many)
		symbol[p->axis - first] = p->size;
	need_padded(f, n->out[0])->symbol = symbol;
	return true;
}

static bool
handle_transpose(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	const IntList *perm = &n->attr.TRANSPOSE.perm;

	(void)was;
	for (int d = 0; d < perm->n; d++)
		if (perm->v[d] == p->axis)
			return set_padded(f, id, 0, d, p->size);
	return refuse_dynamic(f, id, p->size, "not supported in this form");
}

/* The axis whose end is a data-dependent size, stored in *size; -1: none. */
static int
end_axis(struct fold *f, const Node *was, int *size)
{
	const int64_t *symbol = was->nin > 2 ? symbols_of(f, was->in[2]) : NULL;
	const Graph *g = f->g;
	int64_t axis = -1;

	for (int64_t k = 0; symbol && k < val_nelem(&g->val[was->in[2]]); k++) {
		if (symbol[k] == 0)
			continue;
		if (symbol[k] < 0 || axis >= 0)
			return -1;
		axis = has_operand(was, 3) ? val_int(&g->val[was->in[3]], k)
		                           : k;
		axis += axis < 0 ? rank_of(f, was->in[0]) : 0;
		*size = (int)symbol[k];
	}
	return (int)axis;
}

/* Take the first elements along axis, up to the size. */
static bool
slice_valid_rows(struct fold *f, NodeId id, int axis, int size)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	Shape s = out_val(f, n)->shape, x = in_val(f, n, 0)->shape;
	ValId y;

	s.dim[axis] = x.dim[axis];
	if ((p && (p->axis != axis || p->symbol))
	    || !fold_is_whole(&n->attr.SLICE.start, &n->attr.SLICE.step, &x,
	                      &s))
		return refuse_dynamic(f, id, size,
		                      "slices up to a data-dependent size");
	if (p && fold_unify_size(f, n->in[0], size))
		return set_padded(f, id, 0, axis, size);
	if (!p && x.dim[axis] < f->size[size - 1].bound)
		diag_warn(f->p->diag, "node '%s' (%s): slices %jd elements to "
		          "a data-dependent size of up to %jd; the step fails "
		          "if the size is larger than the number of elements; "
		          "for h[mask] = value, export with dynamo=True, "
		          "because TorchScript does not broadcast the value",
		          node_label(f->g, n), node_type(f->g, n),
		          (intmax_t)x.dim[axis],
		          (intmax_t)f->size[size - 1].bound);
	y = fold_first_rows(f, n->in[0], axis, size, false, id);
	if (!y)
		return false;
	fold_set_op(f, id, OP_IDENTITY, y);
	out_val(f, &f->g->node[id])->shape = f->g->val[y].shape;
	return set_padded(f, id, 0, axis, size);
}

static bool
handle_slice(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	int axis = padded_axis(f, n->in[0]), size = 0;
	bool plain = n->op == OP_SLICE && n->nin == 1;
	int end = plain ? end_axis(f, was, &size) : -1;

	if (end >= 0 && (axis != end || p->size != size || p->row_size > 1))
		return slice_valid_rows(f, id, end, size);
	if (axis >= 0 && p->row_size > 1)
		return refuse_dynamic(f, id, p->size,
		                      "works across a dim of data-dependent "
		                      "size");
	if (axis < 0 || !plain)
		return refuse_dynamic(f, id, any_size(f, was),
		                      "slices up to a data-dependent size");
	for (int i = 1; i < was->nin; i++)
		for (int64_t k = 0; symbols_of(f, was->in[i])
		     && k < val_nelem(&f->g->val[was->in[i]]); k++)
			if (symbols_of(f, was->in[i])[k] < 0)
				return refuse_dynamic(f, id, p->size,
				                      "slices at an index "
				                      "computed from "
				                      "data-dependent sizes");
	if (n->attr.SLICE.start.v[axis] != 0 || n->attr.SLICE.step.v[axis] != 1)
		return refuse_dynamic(f, id, p->size, "slices a dim of "
		                      "data-dependent size");
	return set_padded(f, id, 0, axis, p->size);
}

/* Rows keep their dim, which is not `axis`; `gone`: the op removes axis. */
static bool
keep_padded_axis(struct fold *f, NodeId id, int64_t axis, bool gone)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);

	if (p->axis == axis)
		return refuse_dynamic(f, id, p->size, "works along a dim of "
		                      "data-dependent size");
	for (int k = 0; k < n->nout; k++)
		if (!set_padded(f, id, k, p->axis - (gone && axis < p->axis),
		                p->size))
			return false;
	return true;
}

static bool
handle_split(struct fold *f, NodeId id, const Node *was)
{
	return keep_padded_axis(f, id, was->attr.SPLIT.axis,
	                        !was->attr.SPLIT.keepdims);
}

static bool
handle_argmax(struct fold *f, NodeId id, const Node *was)
{
	return keep_padded_axis(f, id, was->attr.ARGMAX.axis,
	                        !was->attr.ARGMAX.keepdims);
}

static bool
handle_axis_kept(struct fold *f, NodeId id, const Node *was)
{
	Attr a = f->g->node[id].attr;

	return keep_padded_axis(f, id, *attr_int_of(was->op, &a, "axis"),
	                        false);
}

static bool
handle_norm(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);
	int axis = (int)(n->op == OP_LAYERNORM ? n->attr.LAYERNORM.axis
	                                       : n->attr.RMSNORM.axis);

	(void)was;
	if (p->axis >= axis)
		return refuse_dynamic(f, id, p->size,
		                      "normalises over a dim of data-dependent "
		                      "size");
	for (int k = 0; k < n->nout; k++)
		if (!set_padded(f, id, k, p->axis, p->size))
			return false;
	return true;
}

static bool
handle_pad(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);

	(void)was;
	if (n->nin > 1 || n->attr.PAD.begin.v[p->axis] != 0
	    || n->attr.PAD.end.v[p->axis] != 0)
		return refuse_dynamic(f, id, p->size, "pads a dim of "
		                      "data-dependent size");
	return set_padded(f, id, 0, p->axis, p->size);
}

static bool
handle_one_hot(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct padded_dim *p = padded_of(f, n->in[0]);

	(void)was;
	if (padded_axis(f, n->in[0]) < 0 || padded_of(f, n->in[1])
	    || padded_of(f, n->in[2]))
		return refuse_dynamic(f, id, any_size(f, n),
		                    "has a depth computed from data-dependent "
		                      "sizes");
	return set_padded(f, id, 0, p->axis + (n->attr.ONE_HOT.axis <= p->axis),
	                  p->size);
}

static bool
handle_none(struct fold *f, NodeId id, const Node *was)
{
	return refuse_dynamic(f, id, any_size(f, was), "not supported");
}

/* ---- the rules ---- */

const struct dynamic_rule
	dynamic_none = { handle_none, .may = 1 },
	dynamic_tile = { handle_none, .may = 1, .moves = 1 },
	dynamic_shape = { handle_shape, .may = 1, .shape = ~0u },
	dynamic_ew = { handle_broadcast, .may = 7 },
	dynamic_move = { handle_broadcast, .may = 1, .moves = 1 },
	dynamic_where = { handle_broadcast, .may = 7, .moves = 6 },
	dynamic_reshape = { handle_reshape, .may = 3, .shape = 2, .moves = 1 },
	dynamic_flatten = { handle_reshape, .may = 1 },
	dynamic_expand = { handle_expand, .may = 3, .shape = 2, .moves = 1 },
	dynamic_of_shape = { handle_of_shape, .may = 1, .shape = ~0u },
	dynamic_range = { handle_range, .may = 7, .shape = 2 },
	dynamic_transpose = { handle_transpose, .may = 1, .moves = 1 },
	dynamic_slice = { handle_slice, .may = ~0u, .shape = ~1u, .moves = 1,
	                .flat = 1 },
	dynamic_split = { handle_split, .may = ~0u },
	dynamic_axis_kept = { handle_axis_kept, .may = 1 },
	dynamic_argmax = { handle_argmax, .may = 1 },
	dynamic_norm = { handle_norm, .may = 1 },
	dynamic_pad = { handle_pad, .may = 1 },
	dynamic_one_hot = { handle_one_hot, .may = 1 };
