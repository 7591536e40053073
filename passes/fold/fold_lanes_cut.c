/* Pass fold: lanes of one kind as lanes of another (fold_lanes.c).
 *
 * Indexing, slicing and joining at data-dependent places become gathers.  An
 * index beyond the lanes that count is out of range, so that the step fails
 * with the name of the node, as it would without lanes.
 */
#include "passes/fold/fold_lanes.h"

static ValId
emit(struct fold *f, Op op, NodeId like, ValId a, ValId b, ValId c)
{
	const ValId in[3] = { a, b, c };

	return a && b ? fold_emit(f, op, c ? 3 : 2, in, NULL, like) : 0;
}

static ValId
choose(struct fold *f, NodeId like, ValId which, ValId yes, ValId no)
{
	return which && yes && no ? emit(f, OP_WHERE, like, which, yes, no) : 0;
}

static ValId
number(struct fold *f, int64_t x)
{
	return val_scalar(f->g, DT_I64, (double)x);
}

/* ---- the first lanes ---- */

/* How many lanes of x's dim count, as i64[]. */
static ValId
count_of(struct fold *f, ValId x, int axis, NodeId like)
{
	const struct lanes *l = lanes_of(f, x);

	if (!l || l->axis != axis)
		return number(f, extent(f, x, axis));
	return fold_count(f, l->id, l->times, DT_I64, like);
}

/* The same, to tell lanes by: they are the first ones. */
static ValId
many_of(struct fold *f, ValId x, int axis, NodeId like)
{
	const struct lanes *l = lanes_of(f, x);

	if (l && l->axis == axis)
		fold_compact(f, l->id);
	return count_of(f, x, axis, like);
}

/* x at idx along axis, with the lanes of selection sel there. */
static ValId
pick(struct fold *f, ValId x, int axis, ValId idx, int sel, NodeId like)
{
	Attr a = attr_default(OP_GATHER);
	ValId in[2] = { x, idx };

	a.GATHER.axis = axis;
	x = idx ? fold_emit(f, OP_GATHER, 2, in, &a, like) : 0;
	if (!x || !lanes_give(f, f->g->val[x].def, 0, axis, sel))
		return 0;
	x = fold_or_one(f, x, like);
	return x && lanes_give(f, f->g->val[x].def, 0, axis, sel) ? x : 0;
}

static ValId
lane_numbers(struct fold *f, int64_t n)
{
	int64_t *lane = arena_array(f->mem, (size_t)n, sizeof *lane);

	for (int64_t i = 0; i < n; i++)
		lane[i] = i;
	return val_const(f->g, NULL, DT_I64, SHAPE(n), lane);
}

ValId
fold_cut(struct fold *f, ValId x, int axis, int sel, bool all, NodeId like)
{
	const struct selection s = f->selection[sel - 1];
	ValId lane = lane_numbers(f, s.bound), have, beyond, idx;

	fold_compact(f, sel);
	have = many_of(f, x, axis, like);
	beyond = number(f, extent(f, x, axis));
	idx = choose(f, like, emit(f, OP_LT, like, lane, have, 0), lane,
	             beyond);
	if (all && idx)
		idx = choose(f, like, emit(f, OP_EQ, like, have, s.count, 0),
		             idx, beyond);
	if (idx)
		idx = choose(f, like, fold_valid(f, sel, 0, 1, like), idx,
		             number(f, 0));
	return pick(f, x, axis, idx, sel, like);
}

/* ---- picking along lanes ---- */

/* idx, negative or not, as one that counts from 0 and is `beyond` where there
 * is no such element. */
static ValId
within(struct fold *f, ValId idx, ValId have, ValId beyond, NodeId like)
{
	const struct lanes *l = lanes_of(f, idx);
	Attr a = attr_default(OP_CAST);
	ValId zero = number(f, 0), fits, at = idx;

	a.CAST.to = DT_I64;
	if (f->g->val[idx].dt != DT_I64)
		at = fold_emit(f, OP_CAST, 1, &idx, &a, like);
	at = choose(f, like, emit(f, OP_LT, like, at, zero, 0),
	            emit(f, OP_ADD, like, at, have, 0), at);
	fits = emit(f, OP_AND, like, emit(f, OP_GE, like, at, zero, 0),
	            emit(f, OP_LT, like, at, have, 0), 0);
	at = choose(f, like, fits, at, beyond);
	if (!at || !l || l->axis < 0)
		return at;
	return choose(f, like, fold_valid(f, l->id, l->axis, rank_of(f, idx),
	                                  like), at, zero);
}

/* idx, which picks along the lanes of x, as one that counts from 0 and lies
 * beyond x where it is none of those that count. */
static ValId
within_lanes(struct fold *f, ValId idx, ValId x, NodeId like)
{
	int axis = lanes_axis(f, x);

	return within(f, idx, many_of(f, x, axis, like),
	              number(f, extent(f, x, axis)), like);
}

/* The same of tuples that pick in so many dims. */
static ValId
within_dims(struct fold *f, ValId idx, ValId x, int dims, NodeId like)
{
	int axis = lanes_axis(f, x);
	int64_t *dim = arena_array(f->mem, (size_t)dims, sizeof *dim);
	uint8_t *which = arena_array(f->mem, (size_t)dims, sizeof *which);
	ValId whole, have;

	for (int d = 0; d < dims; d++) {
		dim[d] = extent(f, x, d);
		which[d] = d == axis;
	}
	whole = val_const(f->g, NULL, DT_I64, SHAPE(dims), dim);
	have = choose(f, like, val_const(f->g, NULL, DT_BOOL, SHAPE(dims),
	              which), many_of(f, x, axis, like), whole);
	return have ? within(f, idx, have, whole, like) : 0;
}

/* Whether idx, in so many dims of x, is what was selected by a mask over the
 * lanes of x: none of these is one that does not count. */
static bool
selects_lanes(struct fold *f, ValId idx, ValId x, int dims)
{
	const struct lanes *l = lanes_of(f, idx), *of = lanes_of(f, x);
	const struct selection *s = l ? &f->selection[l->id - 1] : NULL;
	const Shape *from = s ? &f->g->val[s->from].shape : NULL;

	if (!l || !of || s->of != of->id || s->of_axis != of->axis
	    || from->rank != dims || !fold_is_places(f, idx, l->id))
		return false;
	for (int d = 0; d < dims; d++)
		if (from->dim[d] != extent(f, x, d))
			return false;
	return true;
}

/* Node id now picks between what it was, as a node before it, and 1: where
 * nothing is selected there may be nothing that is safe to compute with. */
static bool
or_one(struct fold *f, NodeId id)
{
	Node *n = &f->g->node[id];
	Attr a = n->attr;
	ValId in[3];

	if (dtype_info[out_val(f, n)->dt].cls != 'f')
		return true;
	in[0] = fold_any(f, n->out[0], id);
	n = &f->g->node[id];
	in[1] = fold_emit(f, n->op, n->nin, n->in, &a, id);
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

/* Operand 1 is idx from now on. */
static bool
index_within(struct fold *f, NodeId id, ValId idx)
{
	if (idx)
		f->g->node[id].in[1] = idx;
	return idx != 0;
}

static bool
gather(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = lanes_axis(f, n->in[0]), ia = lanes_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER.axis;
	int sel = ia >= 0 ? lanes_of(f, n->in[1])->id : 0;

	(void)was;
	if (lanes_marks(f, n->in[0]) || lanes_marks(f, n->in[1])
	    || (xa >= 0 && ia >= 0 && xa != axis))
		return lanes_refuse(f, id, lanes_any(f, n),
		              "indexes a dim of data-dependent size");
	if (xa == axis && !selects_lanes(f, n->in[1], n->in[0], 1)
	    && !index_within(f, id, within_lanes(f, n->in[1], n->in[0], id)))
		return false;
	if (xa == axis && ia < 0)
		return true;
	n = &f->g->node[id];
	if (xa >= 0 && xa != axis)
		return lanes_give(f, id, 0, xa < axis ? xa
		            : xa + rank_of(f, n->in[1]) - 1,
		            lanes_of(f, n->in[0])->id);
	return lanes_give(f, id, 0, axis + ia, sel) && or_one(f, id);
}

static bool
gather_nd(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes *l = lanes_of(f, n->in[1]);
	int xa = lanes_axis(f, n->in[0]), ia = lanes_axis(f, n->in[1]);
	int last = rank_of(f, n->in[1]) - 1;
	int dims = (int)extent(f, n->in[1], last);

	(void)was;
	if (lanes_marks(f, n->in[0]) || (l && l->mark) || ia == last
	    || n->attr.GATHER_ND.batch || (xa >= dims && ia >= 0))
		return lanes_refuse(f, id, lanes_any(f, n),
		              "indexes a dim of data-dependent size");
	if (xa >= dims)
		return lanes_give(f, id, 0, last + xa - dims,
		                  lanes_of(f, n->in[0])->id);
	if (xa >= 0 && !selects_lanes(f, n->in[1], n->in[0], dims)
	    && !index_within(f, id, within_dims(f, n->in[1], n->in[0], dims,
	                                        id)))
		return false;
	return ia < 0 || (lanes_give(f, id, 0, ia, l->id)
	                  && or_one(f, id));
}

/* x and idx have the same lanes, or x along the axis that is picked from and
 * idx perhaps others there. */
static bool
gather_elements(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	int xa = lanes_axis(f, n->in[0]), ia = lanes_axis(f, n->in[1]);
	int axis = (int)n->attr.GATHER_ELEMENTS.axis;

	(void)was;
	if (xa == axis && (ia < 0 || ia == axis)
	    && !lanes_marks(f, n->in[0]) && !lanes_marks(f, n->in[1])) {
		int sel = ia < 0 ? 0 : lanes_of(f, n->in[1])->id;

		return index_within(f, id, within_lanes(f, n->in[1],
		                                             n->in[0], id))
			&& (!sel || (lanes_give(f, id, 0, ia, sel)
			             && or_one(f, id)));
	}
	if (xa < 0 || xa != ia
	    || lanes_of(f, n->in[0])->id != lanes_of(f, n->in[1])->id)
		return lanes_refuse(f, id, lanes_any(f, n),
		              "indexes a dim of data-dependent size");
	return lanes_give(f, id, 0, xa, lanes_of(f, n->in[0])->id);
}

/* ---- joining ---- */

/* Which of them count in place: lanes of a selection, or a fixed number of
 * rows, negative. */
static ValId
mask_of(struct fold *f, int64_t of, NodeId like)
{
	uint8_t *all;

	if (of > 0)
		return fold_found(f, (int)of, 0, 1, like);
	all = arena_array(f->mem, (size_t)-of, sizeof *all);
	for (int64_t i = 0; i < -of; i++)
		all[i] = 1;
	return val_const(f->g, NULL, DT_BOOL, SHAPE(-of), all);
}

/* The selection that has the lanes of two behind each other, or those of one
 * and a fixed number, negative; 0 after a diagnostic. */
static int
joined(struct fold *f, int64_t a, int64_t b, ValId count, int64_t bound,
       NodeId like)
{
	struct selection s = { .count = count, .bound = bound,
		.joins = { a, b } };
	int sel;

	s.from = f->selection[(a > 0 ? a : b) - 1].from;
	for (size_t i = 0; i < f->nselection; i++)
		if (f->selection[i].joins[0] == a
		    && f->selection[i].joins[1] == b)
			return (int)i + 1;
	s.mask = emit(f, OP_CONCAT, like, mask_of(f, a, like),
	              mask_of(f, b, like), 0);
	sel = s.mask ? fold_select(f, &s) : 0;
	for (int k = 0; sel && k < 2; k++)
		if (s.joins[k] > 0)
			fold_lie_alike(f, (int)s.joins[k], sel);
	return sel;
}

/* x and y behind each other along axis, where lanes of one at least lie. */
static ValId
join_two(struct fold *f, ValId x, ValId y, int axis, NodeId like)
{
	const struct lanes *a = lanes_of(f, x), *b = lanes_of(f, y);
	int64_t nx = extent(f, x, axis), ny = extent(f, y, axis);
	ValId first = count_of(f, x, axis, like), lane, idx, all, in[2];
	Attr attr = attr_default(OP_CONCAT);
	int sel;

	all = emit(f, OP_ADD, like, first, count_of(f, y, axis, like), 0);
	sel = all ? joined(f, a ? a->id : -nx, b ? b->id : -ny, all, nx + ny,
	                   like) : 0;
	if (!sel)
		return 0;
	lane = lane_numbers(f, nx + ny);
	idx = emit(f, OP_ADD, like, lane, emit(f, OP_SUB, like, number(f, nx),
	                                       first, 0), 0);
	idx = choose(f, like, emit(f, OP_LT, like, lane, first, 0), lane, idx);
	lane = choose(f, like, emit(f, OP_LT, like, number(f, 0), first, 0),
	              number(f, 0), number(f, nx));
	idx = choose(f, like, fold_valid(f, sel, 0, 1, like), idx, lane);
	in[0] = x;
	in[1] = y;
	attr.CONCAT.axis = axis;
	x = idx ? fold_emit(f, OP_CONCAT, 2, in, &attr, like) : 0;
	y = x ? pick(f, x, axis, idx, sel, like) : 0;
	fold_in_place(f, y, x, sel);
	return y;
}

/* Lanes behind each other, or behind a fixed number of rows. */
static bool
join(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	int axis = (int)n->attr.CONCAT.axis;
	ValId y = n->in[0];

	for (int i = 0; i < n->nin; i++)
		if (lanes_of(f, n->in[i])
		    && (lanes_axis(f, n->in[i]) != axis
		        || lanes_marks(f, n->in[i])))
			return lanes_refuse(f, id, lanes_any(f, n),
			              "concatenates a dim of data-dependent "
			              "size with another");
	for (int i = 1; y && i < f->g->node[id].nin; i++) {
		ValId x = f->g->node[id].in[i];

		if (lanes_of(f, y) || lanes_of(f, x)) {
			y = join_two(f, y, x, axis, id);
			continue;
		}
		y = fold_emit(f, OP_CONCAT, 2, (ValId[]){ y, x },
		              &f->g->node[id].attr, id);
	}
	if (!y)
		return false;
	fold_turn(f, id, OP_IDENTITY, y);
	return lanes_give(f, id, 0, axis, lanes_of(f, y)->id);
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
	if (n->attr.CONCAT.axis == at)
		return join(f, id);
	for (int i = 0; i < n->nin; i++)
		if (lanes_axis(f, n->in[i]) != at
		    || lanes_of(f, n->in[i])->id != sel)
			return lanes_refuse(f, id, lanes_any(f, n),
			              "concatenates a dim of data-dependent "
			              "size with another");
	return lanes_give(f, id, 0, at, sel);
}

/* ---- the rules ---- */

const struct lanes_rule
	lanes_concat = { concat, .may = ~0u, .moves = ~0u },
	lanes_gather = { gather, .may = 3, .moves = 1 },
	lanes_gather_nd = { gather_nd, .may = 3 },
	lanes_gather_elements = { gather_elements, .may = 3 };
