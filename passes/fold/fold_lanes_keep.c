/* Pass fold: ops that work lane by lane (fold_lanes.c).
 *
 * Each rule says which dim of the output has the lanes of the input, or why
 * that cannot be.
 */
#include "passes/fold/fold_lanes.h"

/* ---- lane by lane ---- */

/* Inputs that broadcast: dims with lanes meet only their like. */
static bool
broadcast(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int rank = out_val(f, n)->shape.rank, at = -1, sel = 0;
	int last = op_info[was->op].nstat;

	if (last > n->nin)
		last = n->nin;
	for (int i = 0; i < last; i++) {
		const struct lanes *l = lanes_of(f, n->in[i]);
		int axis = lanes_axis(f, n->in[i]);

		if (axis < 0)
			continue;
		axis += rank - rank_of(f, n->in[i]);
		if (sel && (sel != l->id || at != axis))
			return lanes_refuse(f, id, sel,
			                    "combines two different "
			                    "data-dependent sizes");
		at = axis;
		sel = l->id;
	}
	for (int i = 0; sel && i < last; i++) {
		int d = n->in[i] ? at - rank + rank_of(f, n->in[i]) : -1;

		if (n->in[i] && lanes_axis(f, n->in[i]) < 0 && d >= 0
		    && extent(f, n->in[i], d) != 1)
			return lanes_refuse(f, id, sel, "combines a dim of "
			                    "data-dependent size with one of "
			                    "fixed size");
	}
	return !sel || lanes_give(f, id, 0, at, sel);
}

/* How many elements a lane of x has along `axis` and dims after it that make
 * one of that extent together; 0: none do. */
static int64_t
taken_along(struct fold *f, ValId x, int axis, int64_t whole)
{
	int64_t all = extent(f, x, axis);

	for (int d = axis + 1; d < rank_of(f, x) && all < whole; d++)
		all *= extent(f, x, d);
	return all == whole ? whole / extent(f, x, axis) : 0;
}

/* The dim of the output that is dim `axis` of the input, perhaps with dims
 * after it: the same extent with as many elements before it.  It must not be
 * given as a number. */
static bool
reshape(struct fold *f, NodeId id, const Node *was)
{
	const Graph *g = f->g;
	ValId x = was->in[0], y = was->out[0];
	const struct lanes *l = lanes_of(f, x);
	int64_t before = 1, now = 1, times;
	int to = 0;

	if (!l || l->axis < 0)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "reshapes to a data-dependent size");
	for (int d = 0; d < l->axis; d++)
		before *= extent(f, x, d);
	while (to < rank_of(f, y)
	       && !(now == before && extent(f, y, to) != 1))
		now *= extent(f, y, to++);
	times = to < rank_of(f, y) ? taken_along(f, x, l->axis,
	                                         extent(f, y, to)) : 0;
	if (!times)
		return lanes_refuse(f, id, l->id,
		                    "works across a dim of data-dependent "
		                    "size");
	if (was->op == OP_RESHAPE) {
		const int64_t *mark = was->nin > 1
		                    ? lanes_marks(f, was->in[1]) : NULL;
		int64_t want = was->nin > 1 ? val_int(&g->val[was->in[1]], to)
		                            : 1;

		if ((want > 0 && !(mark && mark[to] == l->id && times == 1))
		    || (want == 0 && to != l->axis))
			return lanes_refuse(f, id, l->id, "reshapes a dim of "
			                    "data-dependent size to a fixed "
			                    "size");
		for (int d = 0; mark && d < rank_of(f, y); d++)
			if (d != to && mark[d])
				return lanes_refuse(f, id, l->id,
				                    "has a shape computed from "
				                    "a data-dependent size");
	}
	return lanes_give_flat(f, id, to, l->id, times);
}

static bool
expand(struct fold *f, NodeId id, const Node *was)
{
	const Graph *g = f->g;
	ValId x = was->in[0], y = was->out[0];
	ValId s = was->nin > 1 ? was->in[1] : 0;
	const int64_t *mark = lanes_marks(f, s);
	const struct lanes *l = lanes_of(f, x);
	int n = s ? (int)val_nelem(&g->val[s]) : 0, rank = rank_of(f, y);
	int at = lanes_axis(f, x), sel = at >= 0 ? l->id : 0;

	at += at >= 0 ? rank - rank_of(f, x) : 0;
	for (int i = 0; i < n; i++) {
		int d = rank - n + i, from = d - rank + rank_of(f, x);
		int64_t m = mark ? mark[i] : 0;

		if (m == 0 && d == at && val_int(&g->val[s], i) != 1)
			return lanes_refuse(f, id, sel, "combines a dim of "
			                    "data-dependent size with one of "
			                    "fixed size");
		if (m == 0)
			continue;
		if (m < 0 || (at >= 0 && (d != at || m != sel))
		    || (at < 0 && from >= 0 && extent(f, x, from) != 1))
			return lanes_refuse(f, id, lanes_any(f, was),
			              "expands to a data-dependent size that "
			              "does not match the input");
		at = d;
		sel = (int)m;
	}
	return lanes_give(f, id, 0, at, sel);
}

/* The output's shape is operand 0. */
static bool
of_shape(struct fold *f, NodeId id, const Node *was)
{
	const int64_t *mark = lanes_marks(f, was->in[0]);
	int at = -1, rank = rank_of(f, was->out[0]);

	for (int d = 0; mark && d < rank; d++) {
		if (mark[d] && (mark[d] < 0 || at >= 0))
			return lanes_refuse(f, id, lanes_any(f, was),
			              "has a shape computed from "
			              "data-dependent sizes");
		if (mark[d])
			at = d;
	}
	return at < 0 || lanes_give(f, id, 0, at, (int)mark[at]);
}

static bool
range(struct fold *f, NodeId id, const Node *was)
{
	const Val *start = &f->g->val[was->in[0]], *step;
	const int64_t *mark = lanes_marks(f, was->in[1]);

	step = &f->g->val[was->in[2]];
	if (!mark || mark[0] < 0 || lanes_marks(f, was->in[0])
	    || lanes_marks(f, was->in[2]) || !val_is_const(start)
	    || !val_is_const(step) || val_float(start, 0) != 0
	    || val_float(step, 0) != 1)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "is a range of data-dependent size that does not "
		              "start at 0 with step 1");
	fold_compact(f, (int)mark[0]);
	return lanes_give(f, id, 0, 0, (int)mark[0]);
}

static bool
shape(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	int64_t many = val_nelem(out_val(f, n));
	int64_t *mark = arena_array(f->p->scratch, (size_t)many + 1,
	                            sizeof *mark);
	int first = n->op == OP_SHAPE ? (int)n->attr.SHAPE.start : 0;

	(void)was;
	if (l->axis < 0)
		return true;
	if (n->op == OP_SIZE)
		mark[0] = rank_of(f, n->in[0]) == 1 ? l->id : MARK_LOST;
	first += first < 0 ? rank_of(f, n->in[0]) : 0;
	first = first < 0 ? 0 : first;
	if (n->op == OP_SHAPE && l->axis >= first && l->axis - first < many)
		mark[l->axis - first] = l->id;
	lanes_room(f, n->out[0])->mark = mark;
	return true;
}

static bool
transpose(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	const IntList *perm = &n->attr.TRANSPOSE.perm;

	(void)was;
	for (int d = 0; d < perm->n; d++)
		if (perm->v[d] == l->axis)
			return lanes_give(f, id, 0, d, l->id);
	return lanes_refuse(f, id, l->id, "not supported in this form");
}

/* The axis that ends where a selection does, which goes into *sel; -1. */
static int
cut_axis(struct fold *f, const Node *was, int *sel)
{
	const int64_t *mark = was->nin > 2 ? lanes_marks(f, was->in[2]) : NULL;
	const Graph *g = f->g;
	int64_t axis = -1;

	for (int64_t k = 0; mark && k < val_nelem(&g->val[was->in[2]]); k++) {
		if (mark[k] == 0)
			continue;
		if (mark[k] < 0 || axis >= 0)
			return -1;
		axis = has_operand(was, 3) ? val_int(&g->val[was->in[3]], k)
		                           : k;
		axis += axis < 0 ? rank_of(f, was->in[0]) : 0;
		*sel = (int)mark[k];
	}
	return (int)axis;
}

/* The first elements along axis, as many as selection sel finds. */
static bool
cut(struct fold *f, NodeId id, int axis, int sel)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	Shape s = out_val(f, n)->shape, x = in_val(f, n, 0)->shape;
	ValId y;

	s.dim[axis] = x.dim[axis];
	if ((l && (l->axis != axis || l->mark))
	    || !fold_is_whole(&n->attr.SLICE.start, &n->attr.SLICE.step, &x,
	                      &s))
		return lanes_refuse(f, id, sel,
		                    "slices up to a data-dependent size");
	if (l && fold_see_as(f, n->in[0], sel))
		return lanes_give(f, id, 0, axis, sel);
	if (!l && x.dim[axis] < f->selection[sel - 1].bound)
		diag_warn(f->p->diag, "node '%s' (%s): slices %jd elements to "
		          "a data-dependent size of up to %jd; the step fails "
		          "if the size is larger than the number of elements; "
		          "for h[mask] = value, export with dynamo=True, "
		          "because TorchScript does not broadcast the value",
		          node_label(f->g, n), node_type(f->g, n),
		          (intmax_t)x.dim[axis],
		          (intmax_t)f->selection[sel - 1].bound);
	y = fold_cut(f, n->in[0], axis, sel, false, id);
	if (!y)
		return false;
	fold_turn(f, id, OP_IDENTITY, y);
	out_val(f, &f->g->node[id])->shape = f->g->val[y].shape;
	return lanes_give(f, id, 0, axis, sel);
}

static bool
slice(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	int axis = lanes_axis(f, n->in[0]), sel = 0;
	bool plain = n->op == OP_SLICE && n->nin == 1;
	int end = plain ? cut_axis(f, was, &sel) : -1;

	if (end >= 0 && (axis != end || l->id != sel || l->times > 1))
		return cut(f, id, end, sel);
	if (axis >= 0 && l->times > 1)
		return lanes_refuse(f, id, l->id,
		                    "works across a dim of data-dependent "
		                    "size");
	if (axis < 0 || !plain)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "slices up to a data-dependent size");
	for (int i = 1; i < was->nin; i++)
		for (int64_t k = 0; lanes_marks(f, was->in[i])
		     && k < val_nelem(&f->g->val[was->in[i]]); k++)
			if (lanes_marks(f, was->in[i])[k] < 0)
				return lanes_refuse(f, id, l->id,
				                    "slices at an index "
				                    "computed from "
				                    "data-dependent sizes");
	if (n->attr.SLICE.start.v[axis] != 0 || n->attr.SLICE.step.v[axis] != 1)
		return lanes_refuse(f, id, l->id, "slices a dim of "
		                    "data-dependent size");
	return lanes_give(f, id, 0, axis, l->id);
}

/* Lanes stay on their dim, none of which is `axis`; `gone`: the dims after
 * axis move down by one. */
static bool
beside_axis(struct fold *f, NodeId id, int64_t axis, bool gone)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);

	if (l->axis == axis)
		return lanes_refuse(f, id, l->id, "works along a dim of "
		                    "data-dependent size");
	for (int k = 0; k < n->nout; k++)
		if (!lanes_give(f, id, k, l->axis - (gone && axis < l->axis),
		                l->id))
			return false;
	return true;
}

static bool
part(struct fold *f, NodeId id, const Node *was)
{
	return beside_axis(f, id, was->attr.PART.axis,
	                   !was->attr.PART.keepdims);
}

static bool
argmax(struct fold *f, NodeId id, const Node *was)
{
	return beside_axis(f, id, was->attr.ARGMAX.axis,
	                   !was->attr.ARGMAX.keepdims);
}

static bool
along_axis(struct fold *f, NodeId id, const Node *was)
{
	Attr a = f->g->node[id].attr;

	return beside_axis(f, id, *attr_int_of(was->op, &a, "axis"), false);
}

static bool
norm(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	int axis = (int)(n->op == OP_LAYERNORM ? n->attr.LAYERNORM.axis
	                                       : n->attr.RMSNORM.axis);

	(void)was;
	if (l->axis >= axis)
		return lanes_refuse(f, id, l->id,
		                    "normalises over a dim of data-dependent "
		                    "size");
	for (int k = 0; k < n->nout; k++)
		if (!lanes_give(f, id, k, l->axis, l->id))
			return false;
	return true;
}

static bool
pad(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);

	(void)was;
	if (n->nin > 1 || n->attr.PAD.begin.v[l->axis] != 0
	    || n->attr.PAD.end.v[l->axis] != 0)
		return lanes_refuse(f, id, l->id, "pads a dim of "
		                    "data-dependent size");
	return lanes_give(f, id, 0, l->axis, l->id);
}

static bool
one_hot(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);

	(void)was;
	if (lanes_axis(f, n->in[0]) < 0 || lanes_of(f, n->in[1])
	    || lanes_of(f, n->in[2]))
		return lanes_refuse(f, id, lanes_any(f, n),
		                    "has a depth computed from data-dependent "
		                    "sizes");
	return lanes_give(f, id, 0, l->axis + (n->attr.ONE_HOT.axis <= l->axis),
	            l->id);
}

static bool
refuse(struct fold *f, NodeId id, const Node *was)
{
	return lanes_refuse(f, id, lanes_any(f, was), "not supported");
}

/* ---- the rules ---- */

const struct lanes_rule
	lanes_none = { refuse, .may = 1 },
	lanes_tile = { refuse, .may = 1, .moves = 1 },
	lanes_shape = { shape, .may = 1, .shape = ~0u },
	lanes_ew = { broadcast, .may = 7 },
	lanes_move = { broadcast, .may = 1, .moves = 1 },
	lanes_where = { broadcast, .may = 7, .moves = 6 },
	lanes_reshape = { reshape, .may = 3, .shape = 2, .moves = 1 },
	lanes_flatten = { reshape, .may = 1 },
	lanes_expand = { expand, .may = 3, .shape = 2, .moves = 1 },
	lanes_of_shape = { of_shape, .may = 1, .shape = ~0u },
	lanes_range = { range, .may = 7, .shape = 2 },
	lanes_transpose = { transpose, .may = 1, .moves = 1 },
	lanes_slice = { slice, .may = ~0u, .shape = ~1u, .moves = 1,
	                .flat = 1 },
	lanes_part = { part, .may = ~0u },
	lanes_axis_kept = { along_axis, .may = 1 },
	lanes_argmax = { argmax, .may = 1 },
	lanes_norm = { norm, .may = 1 },
	lanes_pad = { pad, .may = 1 },
	lanes_one_hot = { one_hot, .may = 1 };
