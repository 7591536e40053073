/* Pass fold: what is known of lanes, and masks for those that do not count
 * (fold_lanes.c). */
#include "passes/fold/fold_mask.h"

/* ---- looking ---- */

const struct lanes *
lanes_of(struct fold *f, ValId v)
{
	return v ? fold_note(f, v)->lanes : NULL;
}

/* The dim of v that has lanes, or -1. */
int
lanes_axis(struct fold *f, ValId v)
{
	const struct lanes *l = lanes_of(f, v);

	return l ? l->axis : -1;
}

const int64_t *
lanes_marks(struct fold *f, ValId v)
{
	const struct lanes *l = lanes_of(f, v);

	return l ? l->mark : NULL;
}

bool
lanes_refuse(struct fold *f, NodeId id, int sel, const char *what)
{
	const Val *from = &f->g->val[f->selection[sel - 1].from];
	char why[192], text[640];

	if (f->apart)
		return false;
	fold_reason(f, f->selection[sel - 1].from, why, sizeof why);
	snprintf(text, sizeof text, "%s: how many elements of '%s' are not "
	         "zero is known only at run time (%s); compute with all of "
	         "them and a mask instead", what,
	         from->onnx ? from->onnx : from->name, why);
	return complain(f, &f->g->node[id], text);
}

/* ---- writing down ---- */

struct lanes *
lanes_room(struct fold *f, ValId v)
{
	struct lanes *l = fold_note(f, v)->lanes;

	if (!l) {
		l = arena_alloc(f->p->scratch, sizeof *l);
		*l = (struct lanes){ .axis = -1, .times = 1 };
		fold_note(f, v)->lanes = l;
	}
	return l;
}

/* Output k has lanes along axis. */
bool
lanes_give(struct fold *f, NodeId id, int k, int axis, int sel)
{
	const Node *n = &f->g->node[id];
	struct lanes *l;

	if (axis < 0 || k >= n->nout || !n->out[k])
		return true;
	l = lanes_room(f, n->out[k]);
	if (axis >= rank_of(f, n->out[k])
	    || extent(f, n->out[k], axis) != f->selection[sel - 1].bound)
		return lanes_refuse(f, id, sel, "not supported in this form");
	l->axis = axis;
	l->id = sel;
	return true;
}

bool
lanes_give_flat(struct fold *f, NodeId id, int axis, int sel, int64_t times)
{
	struct lanes *l = lanes_room(f, f->g->node[id].out[0]);

	l->axis = axis;
	l->id = sel;
	l->times = times;
	return extent(f, f->g->node[id].out[0], axis)
		== times * f->selection[sel - 1].bound
		|| lanes_refuse(f, id, sel, "not supported in this form");
}

/* Some selection that the inputs tell of. */
int
lanes_any(struct fold *f, const Node *was)
{
	for (int i = 0; i < was->nin; i++) {
		const struct lanes *l = lanes_of(f, was->in[i]);
		int64_t n = l ? val_nelem(&f->g->val[was->in[i]]) : 0;

		if (l && l->axis >= 0)
			return l->id;
		for (int64_t k = 0; l && l->mark && k < n; k++)
			if (l->mark[k] > 0)
				return (int)l->mark[k];
	}
	return 1;
}

int
fold_select(struct fold *f, const struct selection *s)
{
	f->selection = arena_grow(f->p->scratch, f->selection, f->nselection,
	                          &f->selection_cap, f->nselection + 1,
	                          sizeof *s);
	f->selection[f->nselection++] = *s;
	return (int)f->nselection;
}

/* ---- masks ---- */

static ValId
binary(struct fold *f, Op op, ValId a, ValId b, NodeId like)
{
	const ValId in[2] = { a, b };

	return a && b ? fold_emit(f, op, 2, in, NULL, like) : 0;
}

static ValId
cast(struct fold *f, ValId x, DType to, NodeId like)
{
	Attr a = attr_default(OP_CAST);

	a.CAST.to = to;
	if (!x || f->g->val[x].dt == to)
		return x;
	return fold_emit(f, OP_CAST, 1, &x, &a, like);
}

ValId
fold_valid(struct fold *f, int id, int axis, int rank, NodeId like)
{
	const struct selection *s = &f->selection[id - 1];
	int64_t *lane = arena_array(f->mem, (size_t)s->bound, sizeof *lane);
	Shape shape = { .rank = rank };

	for (int64_t i = 0; i < s->bound; i++)
		lane[i] = i;
	for (int d = 0; d < rank; d++)
		shape.dim[d] = d == axis ? s->bound : 1;
	return binary(f, OP_LT, val_const(f->g, NULL, DT_I64, shape, lane),
	              s->count, like);
}

ValId
fold_any(struct fold *f, int id, NodeId like)
{
	return binary(f, OP_GT, f->selection[id - 1].count,
	              val_scalar(f->g, DT_I64, 0), like);
}

ValId
fold_count(struct fold *f, int id, int64_t times, DType dt, NodeId like)
{
	ValId n = cast(f, f->selection[id - 1].count, dt, like);

	if (times == 1)
		return n;
	return binary(f, OP_MUL, n, val_scalar(f->g, dt, (double)times), like);
}

ValId
fold_or_one(struct fold *f, ValId x, int sel, NodeId like)
{
	DType dt = f->g->val[x].dt;
	ValId in[3] = { 0, x, val_scalar(f->g, dt, 1) };

	if (dtype_info[dt].cls != 'f')
		return x;
	in[0] = fold_any(f, sel, like);
	return in[0] ? fold_emit(f, OP_WHERE, 3, in, NULL, like) : 0;
}

ValId
fold_mask(struct fold *f, ValId x, double fill, NodeId like)
{
	const struct lanes *l = fold_note(f, x)->lanes;
	ValId in[3] = { 0, x, val_scalar(f->g, f->g->val[x].dt, fill) };

	in[0] = fold_valid(f, l->id, l->axis, f->g->val[x].shape.rank, like);
	return in[0] ? fold_emit(f, OP_WHERE, 3, in, NULL, like) : 0;
}
