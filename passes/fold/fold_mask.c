/* Pass fold: queries about lanes and their count, and masks for the lanes that
 * do not count (fold_lanes.c). */
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
	snprintf(text, sizeof text, "%s: the number of nonzero elements of "
	         "'%s' is known only at run time (%s); compute on all elements "
	         "and apply a mask instead", what,
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

static Shape
along(int rank, int axis, int64_t n)
{
	Shape s = { .rank = rank };

	for (int d = 0; d < rank; d++)
		s.dim[d] = d == axis ? n : 1;
	return s;
}

ValId
fold_found(struct fold *f, int id, int axis, int rank, NodeId like)
{
	const struct selection s = f->selection[id - 1];
	Shape shape = along(rank, axis, s.bound);
	ValId mask = cast(f, s.mask ? s.mask : s.from, DT_BOOL, like);

	return mask ? fold_reshape(f, mask, &shape, like) : 0;
}

ValId
fold_valid(struct fold *f, int id, int axis, int rank, NodeId like)
{
	const struct selection s = f->selection[id - 1];
	Shape shape = along(rank, axis, s.bound);
	ValId mask = fold_found(f, id, axis, rank, like), y;

	y = binary(f, OP_LT, fold_numbers(f, s.bound, &shape, like), s.count,
	           like);
	fold_in_place(f, y, mask, id);
	return y;
}

/* Each lane asks the place that it has. */
ValId
fold_any(struct fold *f, ValId x, NodeId like)
{
	const struct lanes *l = lanes_of(f, x);
	const struct selection s = f->selection[l->id - 1];
	Shape shape = along(rank_of(f, x), l->axis, s.bound);
	Attr a = attr_default(OP_TRANSPOSE);
	ValId y;

	if (!s.at)
		return binary(f, OP_GT, s.count, val_scalar(f->g, DT_I64, 0),
		              like);
	a.TRANSPOSE.perm = (IntList){ .n = 2, .v = { 1, 0 } };
	y = fold_emit(f, OP_TRANSPOSE, 1, &s.at, &a, like);
	y = binary(f, OP_GATHER_ND, cast(f, s.from, DT_BOOL, like), y, like);
	return y ? fold_reshape(f, y, &shape, like) : 0;
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
fold_or_one(struct fold *f, ValId x, NodeId like)
{
	DType dt = f->g->val[x].dt;
	ValId in[3] = { 0, x, val_scalar(f->g, dt, 1) };

	if (dtype_info[dt].cls != 'f')
		return x;
	in[0] = fold_any(f, x, like);
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

/* ---- numbers of what counts ---- */

/* The mask whose elements v, one number, counts; 0: none. */
static ValId
counted_mask(struct fold *f, ValId v)
{
	const Graph *g = f->g;
	bool summed = false;

	for (int depth = 0; depth < 16; depth++) {
		const Node *n = g->val[v].def ? &g->node[g->val[v].def] : NULL;

		if (g->val[v].dt == DT_BOOL && summed
		    && !(n && (n->op == OP_RESHAPE)))
			return v;
		if (!n || dtype_info[g->val[v].dt].cls == 'f'
		    || lanes_of(f, n->in[0]))
			return 0;
		if (n->op == OP_REDUCE_SUM)
			summed = val_nelem(&g->val[n->out[0]]) == 1;
		else if (n->op != OP_CAST && n->op != OP_RESHAPE
		         && n->op != OP_SQUEEZE && n->op != OP_UNSQUEEZE)
			return 0;
		v = n->in[0];
	}
	return 0;
}

/* The selection that v, one number, is the count of; 0: none. */
static int
counts(struct fold *f, ValId v, NodeId like)
{
	struct selection s = { .from = counted_mask(f, v) };
	const Shape one = shape_scalar();
	Attr a = attr_default(OP_CAST);

	if (!s.from || val_nelem(&f->g->val[v]) != 1)
		return 0;
	s.bound = val_nelem(&f->g->val[s.from]);
	if (s.bound < 2)
		return 0;
	for (size_t i = 0; i < f->nselection; i++)
		if (f->selection[i].from == s.from && !f->selection[i].joins[0])
			return (int)i + 1;
	a.CAST.to = DT_I64;
	s.count = f->g->val[v].dt == DT_I64 ? v
	        : fold_emit(f, OP_CAST, 1, &v, &a, like);
	s.count = s.count ? fold_reshape(f, s.count, &one, like) : 0;
	return s.count ? fold_select(f, &s) : 0;
}

void
fold_counted_shape(struct fold *f, NodeId id, int k)
{
	const Graph *g = f->g;
	ValId v = g->node[id].in[k], part[1] = { v };
	bool list = !val_is_const(&g->val[v]) && g->val[v].shape.rank == 1;
	const Node *def = g->val[v].def ? &g->node[g->val[v].def] : NULL;
	bool joined = def && def->op == OP_CONCAT;
	int nin = joined ? def->nin : 1, n = 0;
	const ValId *in = joined ? def->in : part;
	int64_t dim[MAX_RANK], *mark;

	mark = arena_array(f->p->scratch, MAX_RANK, sizeof *mark);
	for (int i = 0; list && i < nin; i++) {
		const Val *x = &f->g->val[in[i]];
		bool known = val_is_const(x);
		int64_t many = shape_known(&x->shape) ? val_nelem(x) : -1;
		int sel = known || many != 1 ? 0 : counts(f, in[i], id);

		if ((!known && !sel) || many < 0 || n + many > MAX_RANK)
			return;
		for (int64_t e = 0; e < many; e++, n++) {
			const int64_t *m = lanes_marks(f, in[i]);

			dim[n] = sel ? f->selection[sel - 1].bound
			             : val_int(&f->g->val[in[i]], e);
			mark[n] = sel ? sel : m ? m[e] : 0;
		}
	}
	if (!list)
		return;
	v = val_const(f->g, NULL, DT_I64, SHAPE(n), arena_copy(f->mem, dim,
	              (size_t)n * sizeof *dim));
	lanes_room(f, v)->mark = mark;
	f->g->node[id].in[k] = v;
}

/* ---- one-hot vectors ---- */

static bool
list_has(const IntList *l, int64_t x)
{
	for (int i = 0; i < l->n; i++)
		if (l->v[i] == x)
			return true;
	return false;
}

/* What v, numbers from 0 on, is less than; 0: unknown. */
static int64_t
index_below(struct fold *f, ValId v)
{
	const Graph *g = f->g;

	for (int depth = 0; depth < 16 && g->val[v].def; depth++) {
		const Node *n = &g->node[g->val[v].def], *c;
		ValId x = n->in[0];

		switch (n->op) {
		case OP_TOPK:
			return g->val[v].slot == 1 ? extent(f, x,
			               (int)n->attr.TOPK.axis) : 0;
		case OP_ARGMAX:
			return extent(f, x, (int)n->attr.ARGMAX.axis);
		case OP_WHERE:          /* negative ones, of which are none */
			c = &g->node[g->val[x].def];
			if (!g->val[x].def || c->op != OP_LT
			    || c->in[0] != n->in[2])
				return 0;
			v = n->in[2];
			break;
		case OP_RESHAPE:
		case OP_TRANSPOSE:
		case OP_CAST:
			v = x;
			break;
		default:
			return 0;
		}
	}
	return 0;
}

/* x == 0, 1, 2, ... along dim d, as a one-hot is made: how many can hold. */
static int64_t
equal_below(struct fold *f, const Node *n, int d)
{
	for (int k = 0; k < 2; k++) {
		const Val *at = in_val(f, n, k);
		int64_t many = val_is_const(at) ? val_nelem(at) : 0;
		bool counts_up = many > 0 && at->shape.rank > d
			&& at->shape.dim[d] == many;

		for (int64_t i = 0; counts_up && i < many; i++)
			counts_up = val_int(at, i) == i;
		if (counts_up)
			return index_below(f, n->in[1 - k]);
	}
	return 0;
}

int64_t
fold_reachable(struct fold *f, ValId v)
{
	const Graph *g = f->g;
	int64_t all = extent(f, v, 0), below = 0;
	int d = 0;

	for (int depth = 0; depth < 16 && g->val[v].def; depth++) {
		const Node *n = &g->node[g->val[v].def];
		double zero;

		if (n->op == OP_EQ)
			below = equal_below(f, n, d);
		if (n->op == OP_TRANSPOSE)
			d = (int)n->attr.TRANSPOSE.perm.v[d];
		else if (n->op == OP_REDUCE_SUM
		         && !n->attr.REDUCE_SUM.keepdims && n->nin == 1)
			for (int i = 0; i <= d; i++)
				d += list_has(&n->attr.REDUCE_SUM.axes, i);
		else if (n->op != OP_CAST
		         && !(n->op == OP_GT && val_splat(g, n->in[1], &zero)
		              && zero >= 0)
		         && !(n->op == OP_WHERE && val_splat(g, n->in[2], &zero)
		              && zero == 0))
			break;
		v = n->in[0];
	}
	return below > 0 && below < all ? below : all;
}
