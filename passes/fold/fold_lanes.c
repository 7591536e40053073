/* Pass fold: dims of data-dependent size, such as that of NonZero.
 *
 * A nonzero of a computed operand becomes `selected`, which has room for all
 * elements: its first `count` lanes count, the others repeat the first.  From
 * there on each value that has such a dim is known to (struct lanes), and so
 * is each constant that was made of its extent.  What works lane by lane is
 * left as it is.  What brings lanes together is given a mask first: sums,
 * products over the dim, losses, scatters.  The result is a graph of fixed
 * extents that computes the same from what counts, so that all later passes,
 * the gradient above all, need know nothing of lanes.  Everything else is
 * refused: an op without a rule in the lanes column of ops.h, two dims of this
 * kind in one value,
 * one that meets a dim which only happens to have the same extent, a number of
 * lanes in arithmetic, and outputs.  What picks, cuts or joins lanes by numbers
 * that the run decides is a gather of lanes (fold_lanes_cut.c).
 *
 * Lanes that do not count repeat one that does, so that they hold no numbers
 * that the model would not compute anyway; where none counts they hold 1.
 * That keeps infinities, which a mask after the fact would turn into NaN in
 * gradients, out of them.
 *
 * cost   nothing without such a nonzero, else one more look at each node
 */
#include "passes/fold/fold_lanes.h"

static const struct lanes_rule *const rule[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, lanes, cost, grad, shard) &lanes_##lanes
#include "ir/ops.h"
};

/* Bit i of a mask of inputs; those from 31 on share one. */
static bool
has_bit(unsigned mask, int i)
{
	return mask >> (i < 31 ? i : 31) & 1;
}

/* ---- contents made of counts ---- */

/* Marks of which none says anything are none. */
static bool
give_marks(struct fold *f, ValId v, const int64_t *mark)
{
	int64_t n = mark ? val_nelem(&f->g->val[v]) : 0;

	for (int64_t i = 0; i < n; i++)
		if (mark[i] != 0) {
			lanes_room(f, v)->mark = mark;
			break;
		}
	return true;
}

/* The marks of a node that moves: its own rule, carried out on them. */
static const int64_t *
moved_marks(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	Node *n = &g->node[id], *twin;
	unsigned moves = rule[n->op]->moves;
	ValId *in = arena_array(f->p->scratch, (size_t)n->nin, sizeof *in);
	ValId y;

	for (int i = 0; i < n->nin; i++) {
		const int64_t *mark = lanes_marks(f, in[i] = n->in[i]);
		Shape s = g->val[in[i]].shape;

		if (!has_bit(moves, i) && mark)
			return NULL;
		if (!has_bit(moves, i))
			continue;
		if (!mark)
			mark = arena_array(f->p->scratch,
			                   (size_t)shape_nelem(&s) + 1,
			                   sizeof *mark);
		in[i] = val_new(g, V_CONST, NULL, DT_I64, s);
		g->val[in[i]].data = mark;
	}
	twin = node_new(g, g->node[id].op, g->node[id].nin, in, 0, 0);
	n = &g->node[id];
	twin->attr = n->attr;
	if (n->op == OP_CAST)
		twin->attr.CAST.to = DT_I64;
	y = twin->out[0];
	g->val[y].dt = DT_I64;
	g->val[y].shape = g->val[n->out[0]].shape;
	if (eval_node(f->p, g, twin, f->p->scratch) != EVAL_DONE)
		return NULL;
	return g->val[y].data;
}

/* Whether input k of an eq is negative everywhere, which no count is, and the
 * other is counts and numbers as they are. */
static bool
no_count_equals(struct fold *f, const Node *n, int k)
{
	const Val *x = in_val(f, n, k);
	const int64_t *mark = lanes_marks(f, n->in[1 - k]);
	int64_t many = val_nelem(in_val(f, n, 1 - k));

	if (dtype_info[x->dt].cls != 'i' || lanes_marks(f, n->in[k]) || !mark)
		return false;
	for (int64_t i = 0; i < many; i++)
		if (mark[i] == MARK_LOST)
			return false;
	for (int64_t i = 0; i < val_nelem(x); i++)
		if (val_int(x, i) >= 0)
			return false;
	return true;
}

/* A node of constants some of which are made of counts. */
static bool
mark_outputs(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	const int64_t *mark = NULL;
	int64_t *lost;

	if (n->op == OP_EQ && (no_count_equals(f, n, 0)
	                       || no_count_equals(f, n, 1)))
		return true;
	if (rule[n->op]->moves)
		mark = moved_marks(f, id);
	n = &f->g->node[id];
	if (mark)
		return give_marks(f, n->out[0], mark);
	for (int k = 0; k < n->nout; k++) {
		int64_t many = n->out[k] ? val_nelem(&f->g->val[n->out[k]]) : 0;

		lost = arena_array(f->p->scratch, (size_t)many + 1,
		                   sizeof *lost);
		for (int64_t i = 0; i < many; i++)
			lost[i] = MARK_LOST;
		if (many > 0)
			give_marks(f, n->out[k], lost);
	}
	return true;
}

/* ---- nonzero, and the walk ---- */

/* What does not count in a value that was selected is not selected; *s: whose
 * lanes these are. */
static bool
mask_selected(struct fold *f, NodeId id, struct selection *s)
{
	ValId x = f->g->node[id].in[0];
	const struct lanes *l = lanes_of(f, x);

	if (!l)
		return true;
	s->of = l->id;
	s->of_axis = l->axis;
	if (l->axis < 0 || l->times > 1)
		return lanes_refuse(f, id, l->axis < 0 ? 1 : l->id,
		                    "takes the nonzero elements of a "
		                    "data-dependent size");
	x = fold_mask(f, x, 0, id);
	if (x)
		f->g->node[id].in[0] = x;
	return x != 0;
}

static bool
begin(struct fold *f, NodeId id)
{
	struct selection s = { .count = 0 };
	Node *n = &f->g->node[id];
	ValId y = n->out[0];
	int rank, sel = 0;

	if (!mask_selected(f, id, &s))
		return false;
	n = &f->g->node[id];
	s.from = n->in[0];
	s.bound = val_nelem(in_val(f, n, 0));
	rank = in_val(f, n, 0)->shape.rank;
	if (s.bound < 2 || rank == 0)
		return true;            /* refused as before */
	for (size_t i = 0; i < f->nselection && !sel; i++)
		if (f->selection[i].from == s.from && !f->selection[i].joins[0])
			sel = (int)i + 1;
	if (sel && f->selection[sel - 1].at) {
		fold_turn(f, id, OP_IDENTITY, f->selection[sel - 1].at);
		f->g->val[y].shape = SHAPE(rank, s.bound);
		return lanes_give(f, id, 0, 1, sel);
	}
	n->op = OP_SELECTED;
	n->attr = attr_default(OP_SELECTED);
	n->out = arena_array(f->g->arena, 2, sizeof *n->out);
	n->out[0] = y;
	n->nout = 2;
	s.count = val_new(f->g, V_TEMP, arena_printf(f->p->scratch, "%s.count",
	                  f->g->val[y].name), DT_I64, shape_scalar());
	n = &f->g->node[id];
	n->out[1] = s.count;
	f->g->val[s.count].def = id;
	f->g->val[s.count].slot = 1;
	f->g->val[y].shape = SHAPE(rank, s.bound);
	s.at = y;
	if (sel)
		f->selection[sel - 1].at = y;
	else
		sel = fold_select(f, &s);
	return shape_infer(f->g, f->p->diag, &f->g->node[id])
		&& lanes_give(f, id, 0, 1, sel);
}

/* Where the first `many` elements lie that v, the places a selection finds or
 * their transpose, could hold; 0: v is something else. */
static ValId
all_places(struct fold *f, ValId v, int64_t many)
{
	const Graph *g = f->g;
	const Node *def = &g->node[g->val[v].def];
	bool turned = def->op == OP_TRANSPOSE;
	const struct selection *s = &f->selection[lanes_of(f, v)->id - 1];
	const Shape *x = &g->val[s->from].shape;
	Shape shape = g->val[v].shape;
	int64_t *at;

	if (!s->at || (turned ? def->in[0] : v) != s->at)
		return 0;
	shape.dim[!turned] = many;
	at = arena_array(f->mem, (size_t)(many * x->rank), sizeof *at);
	for (int64_t i = 0; i < many; i++) {
		int64_t rest = i;

		for (int d = x->rank - 1; d >= 0; d--) {
			at[turned ? i * x->rank + d : d * many + i]
				= rest % x->dim[d];
			rest /= x->dim[d];
		}
	}
	return val_const(f->g, NULL, DT_I64, shape, at);
}

/* Whether the node is one of so many pieces of one lane each. */
static bool
each_apart(struct fold *f, const Node *n, int64_t many)
{
	const Val *sizes = has_operand(n, 1) ? in_val(f, n, 1) : NULL;

	if (!sizes)
		return n->attr.PART.count == many;
	if (!val_is_const(sizes) || val_nelem(sizes) != many)
		return false;
	for (int64_t i = 0; i < many; i++)
		if (val_int(sizes, i) != 1)
			return false;
	return true;
}

/* A traced loop over what is not zero has a piece for each that was not when
 * it was traced.  If that was all there can be, it is a loop over all: what
 * such a loop does for one that is zero (an expert without tokens) is
 * nothing.  Otherwise the file holds for the batch of the trace alone. */
static bool
take_apart(struct fold *f, NodeId id, const struct lanes *l)
{
	const Node *n = &f->g->node[id];
	const struct selection *s = &f->selection[l->id - 1];
	int64_t many = f->g->val[s->from].shape.rank == 1
	             ? fold_reachable(f, s->from) : s->bound;
	ValId all = each_apart(f, n, many) ? all_places(f, n->in[0], many) : 0;

	if (!all) {
		lanes_refuse(f, id, l->id, "splits a dim of data-dependent "
		             "size: a loop over nonzero() was traced with a "
		             "batch that does not reach all elements; for a "
		             "mixture of experts, export with "
		             "experts_implementation=\"batched_mm\"");
		f->apart = true;
		return false;
	}
	if (n->attr.PART.index == 0)
		diag_note(f->p->diag, "node '%s' (%s): a loop over nonzero() "
		          "was traced with all %jd possible elements and "
		          "always runs for all of them", node_label(f->g, n),
		          node_type(f->g, n), (intmax_t)many);
	f->g->node[id].in[0] = all;
	return true;
}

bool
fold_lanes_whole(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	unsigned shapes = rule[n->op]->shape;
	const struct lanes *l;
	int64_t axis;

	for (int i = 0; i < n->nin; i++)
		if (has_bit(shapes, i) && f->g->node[id].in[i])
			fold_counted_shape(f, id, i);
	n = &f->g->node[id];
	l = n->op == OP_PART ? lanes_of(f, n->in[0]) : NULL;
	axis = n->attr.PART.axis;
	if (!l || l->axis < 0)
		return true;
	axis += axis < 0 ? rank_of(f, n->in[0]) : 0;
	return axis != l->axis || take_apart(f, id, l);
}

bool
fold_lanes(struct fold *f, NodeId id, const Node *was)
{
	const Node *n = &f->g->node[id];
	const struct lanes_rule *r = rule[was->op];
	bool data = false, other = false, constant = true;

	if (n->op == OP_NONZERO && !val_is_const(in_val(f, n, 0))
	    && shape_known(&in_val(f, n, 0)->shape))
		return begin(f, id);
	if (!f->nselection)
		return true;
	for (int i = 0; i < was->nin; i++) {
		const struct lanes *l = lanes_of(f, was->in[i]);

		if (!l)
			continue;
		if (!has_bit(r->may, i))
			return lanes_none.run(f, id, was);
		if (l->axis >= 0 && l->times > 1 && !has_bit(r->flat, i))
			return lanes_refuse(f, id, l->id,
			                    "works across a dim of "
			                    "data-dependent size");
		data |= l->mark && !has_bit(r->shape, i);
		other |= l->axis >= 0 || has_bit(r->shape, i);
	}
	if (other && !r->run(f, id, was))
		return false;
	if (!data)
		return true;
	n = &f->g->node[id];
	for (int i = 0; i < n->nin; i++)
		constant &= !n->in[i] || val_is_const(in_val(f, n, i));
	if (!constant)
		return lanes_refuse(f, id, lanes_any(f, was),
		              "computes with a data-dependent size");
	return mark_outputs(f, id);
}

bool
fold_lanes_pass(struct fold *f, NodeId id, ValId v, uint32_t nval)
{
	ValId x = fold_note(f, v)->now;
	const struct lanes *a = lanes_of(f, v), *b = lanes_of(f, x);
	const struct lanes none = { .axis = -1 };
	const struct lanes *l = a ? a : b;

	if (x >= nval) {
		struct lanes *same = fold_note(f, v)->lanes;

		fold_note(f, x)->lanes = same;
		return true;
	}
	a = a ? a : &none;
	b = b ? b : &none;
	if (a->axis == b->axis && (a->axis < 0 || a->id == b->id)
	    && !a->mark == !b->mark)
		return true;
	return lanes_refuse(f, id, l->id ? l->id : 1,
	                    "not supported in this form");
}

bool
fold_lanes_outputs(struct fold *f)
{
	Graph *g = f->g;
	bool ok = true;

	for (ValId v = 1; f->nselection && v < g->nval; v++) {
		const struct lanes *l = lanes_of(f, v);
		int sel = l && l->axis >= 0 ? l->id : 1;
		char why[192];

		if (!l || !g->val[v].output)
			continue;
		fold_reason(f, f->selection[sel - 1].from, why, sizeof why);
		if (f->p->opt->forward_only)
			ok = diag_error(f->p->diag, "output '%s' has a "
			                "data-dependent size: %s",
			                g->val[v].name, why);
		else
			diag_warn(f->p->diag, "output '%s' is dropped, because "
			          "its size is data-dependent: %s",
			          g->val[v].name, why);
		g->val[v].output = false;
	}
	return ok;
}
