/* queries about padded dims and their sizes, and masks of the
 * padding (dynamic.c). */
#include "passes/selection/padding.h"

/* ---- queries ---- */

const struct padded_dim *
padded_of(struct fold *f, ValId v)
{
	return v ? fold_facts(f, v)->padded : NULL;
}

/* The padded dim of v, or -1. */
int
padded_axis(struct fold *f, ValId v)
{
	const struct padded_dim *p = padded_of(f, v);

	return p ? p->axis : -1;
}

const int64_t *
symbols_of(struct fold *f, ValId v)
{
	const struct padded_dim *p = padded_of(f, v);

	return p ? p->symbol : NULL;
}

bool
refuse_dynamic(struct fold *f, NodeId id, int size, const char *what)
{
	const Val *from = &f->g->val[f->size[size - 1].from];
	char why[192];

	if (f->split_refused)
		return false;
	fold_reason(f, f->size[size - 1].from, why, sizeof why);
	return node_error(f->g, f->p->diag, &f->g->node[id],
	                  "%s: the number of nonzero elements of '%s' is known "
	                  "only at run time (%s); compute on all elements and "
	                  "apply a mask instead", what,
	                  from->onnx ? from->onnx : from->name, why);
}

/* ---- changes ---- */

struct padded_dim *
need_padded(struct fold *f, ValId v)
{
	struct padded_dim *p = fold_facts(f, v)->padded;

	if (!p) {
		p = arena_alloc(f->p->scratch, sizeof *p);
		*p = (struct padded_dim){ .axis = -1, .row_size = 1 };
		fold_facts(f, v)->padded = p;
	}
	return p;
}

/* Mark output k as padded along axis. */
bool
set_padded(struct fold *f, NodeId id, int k, int axis, int size)
{
	const Node *n = &f->g->node[id];
	struct padded_dim *p;

	if (axis < 0 || k >= n->nout || !n->out[k])
		return true;
	p = need_padded(f, n->out[k]);
	if (axis >= rank_of(f, n->out[k])
	    || extent(f, n->out[k], axis) != f->size[size - 1].bound)
		return refuse_dynamic(f, id, size,
		                      "not supported in this form");
	p->axis = axis;
	p->size = size;
	return true;
}

bool
set_padded_flat(struct fold *f, NodeId id, int axis, int size, int64_t times)
{
	struct padded_dim *p = need_padded(f, f->g->node[id].out[0]);

	p->axis = axis;
	p->size = size;
	p->row_size = times;
	return extent(f, f->g->node[id].out[0], axis)
		== times * f->size[size - 1].bound
		|| refuse_dynamic(f, id, size, "not supported in this form");
}

/* Any data-dependent size of the inputs. */
int
any_size(struct fold *f, const Node *was)
{
	for (int i = 0; i < was->nin; i++) {
		const struct padded_dim *p = padded_of(f, was->in[i]);
		int64_t n = p ? val_nelem(&f->g->val[was->in[i]]) : 0;

		if (p && p->axis >= 0)
			return p->size;
		for (int64_t k = 0; p && p->symbol && k < n; k++)
			if (p->symbol[k] > 0)
				return (int)p->symbol[k];
	}
	return 1;
}

int
fold_add_size(struct fold *f, const struct dynamic_size *s)
{
	f->size = arena_grow(f->p->scratch, f->size, f->nsize,
	                     &f->size_cap, f->nsize + 1,
	                     sizeof *s);
	f->size[f->nsize++] = *s;
	return (int)f->nsize;
}

void
fold_add_placed(struct fold *f, ValId v, ValId instead, int size)
{
	if (!v || !instead)
		return;
	f->placed = arena_grow(f->p->scratch, f->placed, f->nplaced,
	                       &f->placed_cap, f->nplaced + 1,
	                       sizeof *f->placed);
	f->placed[f->nplaced++] = (struct placed){ v, instead, size };
}

/* ---- masks ---- */

ValId
fold_place_mask(struct fold *f, int id, int axis, int rank, NodeId like)
{
	const struct dynamic_size s = f->size[id - 1];
	Shape shape = shape_along(rank, axis, s.bound);
	ValId mask = fold_cast(f, s.mask ? s.mask : s.from, DT_BOOL, like);

	return fold_reshape(f, mask, &shape, like);
}

ValId
fold_valid_mask(struct fold *f, int id, int axis, int rank, NodeId like)
{
	const struct dynamic_size s = f->size[id - 1];
	Shape shape = shape_along(rank, axis, s.bound);
	ValId mask = fold_place_mask(f, id, axis, rank, like), y;

	y = fold_binary(f, OP_LT, fold_numbers(f, s.bound, &shape, like),
	                 s.count, like);
	fold_add_placed(f, y, mask, id);
	return y;
}

/* Read the mask at each row's indices. */
ValId
fold_any_valid(struct fold *f, ValId x, NodeId like)
{
	const struct padded_dim *p = padded_of(f, x);
	const struct dynamic_size s = f->size[p->size - 1];
	Shape shape = shape_along(rank_of(f, x), p->axis, s.bound);
	Attr a = attr_default(OP_TRANSPOSE);
	ValId y;

	if (!s.indices)
		return fold_binary(f, OP_GT, s.count,
		                    val_scalar(f->g, DT_I64, 0), like);
	a.TRANSPOSE.perm = (IntList){ .n = 2, .v = { 1, 0 } };
	y = fold_emit(f, OP_TRANSPOSE, 1, &s.indices, &a, like);
	y = fold_binary(f, OP_GATHER_ND, fold_cast(f, s.from, DT_BOOL, like),
	                 y, like);
	return fold_reshape(f, y, &shape, like);
}

ValId
fold_valid_count(struct fold *f, int id, int64_t times, DType dt, NodeId like)
{
	ValId n = fold_cast(f, f->size[id - 1].count, dt, like);

	if (times == 1)
		return n;
	return fold_binary(f, OP_MUL, n, val_scalar(f->g, dt, (double)times),
	                    like);
}

ValId
fold_one_if_empty(struct fold *f, ValId x, NodeId like)
{
	DType dt = f->g->val[x].dt;
	ValId one = val_scalar(f->g, dt, 1);

	if (dtype_info[dt].cls != 'f')
		return x;
	return fold_where(f, fold_any_valid(f, x, like), x, one, like);
}

ValId
fold_fill_padding(struct fold *f, ValId x, double fill, NodeId like)
{
	const struct padded_dim *p = fold_facts(f, x)->padded;
	ValId with = val_scalar(f->g, f->g->val[x].dt, fill);

	return fold_where(f, fold_valid_mask(f, p->size, p->axis,
	                                     rank_of(f, x), like), x, with,
	                  like);
}

/* ---- counts ---- */

/* The mask whose true elements the number v counts; 0: none. */
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
		    || padded_of(f, n->in[0]))
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

/* The size whose count is the number v; 0: none. */
static int
size_counted_by(struct fold *f, ValId v, NodeId like)
{
	struct dynamic_size s = { .from = counted_mask(f, v) };
	const Shape one = shape_scalar();

	if (!s.from || val_nelem(&f->g->val[v]) != 1)
		return 0;
	s.bound = val_nelem(&f->g->val[s.from]);
	if (s.bound < 2)
		return 0;
	for (size_t i = 0; i < f->nsize; i++)
		if (f->size[i].from == s.from && !f->size[i].concat[0])
			return (int)i + 1;
	s.count = fold_reshape(f, fold_cast(f, v, DT_I64, like), &one, like);
	return s.count ? fold_add_size(f, &s) : 0;
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
	int64_t dim[MAX_RANK], *symbol;

	symbol = arena_array(f->p->scratch, MAX_RANK, sizeof *symbol);
	for (int i = 0; list && i < nin; i++) {
		const Val *x = &f->g->val[in[i]];
		bool known = val_is_const(x);
		int64_t many = shape_known(&x->shape) ? val_nelem(x) : -1;
		int size = known || many != 1 ? 0
			: size_counted_by(f, in[i], id);

		if ((!known && !size) || many < 0 || n + many > MAX_RANK)
			return;
		for (int64_t e = 0; e < many; e++, n++) {
			const int64_t *m = symbols_of(f, in[i]);

			dim[n] = size ? f->size[size - 1].bound
			             : val_int(&f->g->val[in[i]], e);
			symbol[n] = size ? size : m ? m[e] : 0;
		}
	}
	if (!list)
		return;
	v = val_const(f->g, NULL, DT_I64, SHAPE(n), arena_copy(f->mem, dim,
	              (size_t)n * sizeof *dim));
	need_padded(f, v)->symbol = symbol;
	f->g->node[id].in[k] = v;
}

/* ---- one-hot vectors ---- */

static bool
list_has(const IntList *p, int64_t x)
{
	for (int i = 0; i < p->n; i++)
		if (p->v[i] == x)
			return true;
	return false;
}

/* Exclusive upper bound of v, which is not negative; 0: unknown. */
static int64_t
index_below(struct fold *f, ValId v)
{
	const Graph *g = f->g;

	for (int depth = 0; depth < 16 && g->val[v].def; depth++) {
		const Node *n = &g->node[g->val[v].def], *c;
		ValId x = n->in[0];

		switch (n->op) {
		case OP_TOPK:
			return g->val[v].result_index == 1 ? extent(f, x,
			               (int)n->attr.TOPK.axis) : 0;
		case OP_ARGMAX:
			return extent(f, x, (int)n->attr.ARGMAX.axis);
		case OP_WHERE:          /* negative indices do not occur */
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

/* Elements of x == 0, 1, 2, ... along dim d, a one-hot, that can be true. */
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
fold_reachable_extent(struct fold *f, ValId v)
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
