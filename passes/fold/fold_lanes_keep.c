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
			                    "meets another selection");
		at = axis;
		sel = l->id;
	}
	for (int i = 0; sel && i < last; i++) {
		int d = n->in[i] ? at - rank + rank_of(f, n->in[i]) : -1;

		if (n->in[i] && lanes_axis(f, n->in[i]) < 0 && d >= 0
		    && extent(f, n->in[i], d) != 1)
			return lanes_refuse(f, id, sel, "meets a fixed extent");
	}
	return !sel || lanes_give(f, id, 0, at, sel);
}

/* The dim of the output that is dim `axis` of the input: the same extent with
 * as many elements before it.  It must not be given as a number. */
static bool
reshape(struct fold *f, NodeId id, const Node *was)
{
	const Graph *g = f->g;
	ValId x = was->in[0], y = was->out[0];
	const struct lanes *l = lanes_of(f, x);
	int64_t before = 1, now = 1;
	int to = 0;

	if (!l || l->axis < 0)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "takes the shape of a selection");
	for (int d = 0; d < l->axis; d++)
		before *= extent(f, x, d);
	while (to < rank_of(f, y)
	       && !(now == before && extent(f, y, to) != 1))
		now *= extent(f, y, to++);
	if (to == rank_of(f, y) || extent(f, y, to) != extent(f, x, l->axis))
		return lanes_refuse(f, id, l->id,
		                    "mixes the lanes of a selection");
	if (was->op == OP_RESHAPE) {
		const int64_t *mark = was->nin > 1
		                    ? lanes_marks(f, was->in[1]) : NULL;
		int64_t want = was->nin > 1 ? val_int(&g->val[was->in[1]], to)
		                            : 1;

		if ((want > 0 && !(mark && mark[to] == l->id))
		    || (want == 0 && to != l->axis))
			return lanes_refuse(f, id, l->id, "has a fixed extent");
		for (int d = 0; mark && d < rank_of(f, y); d++)
			if (d != to && mark[d])
				return lanes_refuse(f, id, l->id,
				                    "has a shape made of its "
				                    "count");
	}
	return lanes_give(f, id, 0, to, l->id);
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
			return lanes_refuse(f, id, sel, "meets a fixed extent");
		if (m == 0)
			continue;
		if (m < 0 || (at >= 0 && (d != at || m != sel))
		    || (at < 0 && from >= 0 && extent(f, x, from) != 1))
			return lanes_refuse(f, id, lanes_any(f, was),
			              "does not fit the lanes of a selection");
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
			              "has a shape made of counts");
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
		              "is not a range from 0");
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

static bool
slice(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);
	int axis = lanes_axis(f, n->in[0]);

	if (axis < 0 || n->op != OP_SLICE || n->nin > 1)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "cuts at the end of a selection");
	for (int i = 1; i < was->nin; i++)
		for (int64_t k = 0; lanes_marks(f, was->in[i])
		     && k < val_nelem(&f->g->val[was->in[i]]); k++)
			if (lanes_marks(f, was->in[i])[k] < 0)
				return lanes_refuse(f, id, l->id,
				                    "cuts at a place made of "
				                    "counts");
	if (n->attr.SLICE.start.v[axis] != 0 || n->attr.SLICE.step.v[axis] != 1)
		return lanes_refuse(f, id, l->id, "cuts a selection");
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
		return lanes_refuse(f, id, l->id, "works along a selection");
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
		                    "normalises over a selection");
	for (int k = 0; k < n->nout; k++)
		if (!lanes_give(f, id, k, l->axis, l->id))
			return false;
	return true;
}

static bool
concat(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int at = -1, sel = 0;

	(void)was;
	for (int i = 0; i < n->nin; i++)
		if (lanes_axis(f, n->in[i]) >= 0) {
			at = lanes_axis(f, n->in[i]);
			sel = lanes_of(f, n->in[i])->id;
		}
	for (int i = 0; i < n->nin; i++)
		if (lanes_axis(f, n->in[i]) != at
		    || lanes_of(f, n->in[i])->id != sel
		    || n->attr.CONCAT.axis == at)
			return lanes_refuse(f, id, lanes_any(f, n),
			              "joins a selection with something else");
	return lanes_give(f, id, 0, at, sel);
}

static bool
pad(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[0]);

	(void)was;
	if (n->nin > 1 || n->attr.PAD.begin.v[l->axis] != 0
	    || n->attr.PAD.end.v[l->axis] != 0)
		return lanes_refuse(f, id, l->id, "pads a selection");
	return lanes_give(f, id, 0, l->axis, l->id);
}

/* ---- picking by a selection ---- */

/* Node id now picks between what it was, as a node before it, and 1: where
 * nothing is selected there may be nothing that is safe to compute with. */
static bool
or_one(struct fold *f, NodeId id, int sel)
{
	Node *n = &f->g->node[id];
	Attr a = n->attr;
	ValId in[3];

	if (dtype_info[out_val(f, n)->dt].cls != 'f')
		return true;
	in[1] = fold_emit(f, n->op, n->nin, n->in, &a, id);
	in[0] = fold_any(f, sel, id);
	if (!in[0] || !in[1])
		return false;
	in[2] = val_scalar(f->g, f->g->val[in[1]].dt, 1);
	n = &f->g->node[id];
	n->op = OP_WHERE;
	n->attr = attr_default(OP_WHERE);
	n->in = arena_copy(f->g->arena, in, sizeof in);
	n->nin = 3;
	return true;
}

static bool
gather(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = lanes_axis(f, n->in[0]), ia = lanes_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER.axis, sel;

	(void)was;
	if (lanes_marks(f, n->in[0]) || lanes_marks(f, n->in[1])
	    || (xa >= 0 && ia >= 0) || (xa >= 0 && xa == axis))
		return lanes_refuse(f, id, lanes_any(f, n),
		              "picks lanes of a selection");
	if (xa >= 0)
		return lanes_give(f, id, 0, xa < axis ? xa
		            : xa + rank_of(f, n->in[1]) - 1,
		            lanes_of(f, n->in[0])->id);
	sel = lanes_of(f, n->in[1])->id;
	return lanes_give(f, id, 0, axis + ia, sel) && or_one(f, id, sel);
}

static bool
gather_nd(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[1]);
	int ia = lanes_axis(f, n->in[1]);

	(void)was;
	if (lanes_of(f, n->in[0]) || ia < 0 || l->mark
	    || ia == rank_of(f, n->in[1]) - 1 || n->attr.GATHER_ND.batch)
		return lanes_refuse(f, id, lanes_any(f, n),
		              "picks lanes of a selection");
	return lanes_give(f, id, 0, ia, l->id) && or_one(f, id, l->id);
}

/* x and idx have the same lanes, not along the axis that is picked from. */
static bool
gather_elements(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = lanes_axis(f, n->in[0]), ia = lanes_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER_ELEMENTS.axis;

	(void)was;
	if (xa < 0 || xa != ia || xa == axis
	    || lanes_of(f, n->in[0])->id != lanes_of(f, n->in[1])->id)
		return lanes_refuse(f, id, lanes_any(f, n),
		              "picks lanes of a selection");
	return lanes_give(f, id, 0, xa, lanes_of(f, n->in[0])->id);
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
		                    "has a depth made of counts");
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
	lanes_slice = { slice, .may = ~0u, .shape = ~1u, .moves = 1 },
	lanes_part = { part, .may = ~0u },
	lanes_axis_kept = { along_axis, .may = 1 },
	lanes_argmax = { argmax, .may = 1 },
	lanes_norm = { norm, .may = 1 },
	lanes_concat = { concat, .may = ~0u, .moves = ~0u },
	lanes_pad = { pad, .may = 1 },
	lanes_gather = { gather, .may = 3, .moves = 1 },
	lanes_gather_nd = { gather_nd, .may = 3 },
	lanes_gather_elements = { gather_elements, .may = 3 },
	lanes_one_hot = { one_hot, .may = 1 };
