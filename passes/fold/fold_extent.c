/* Pass fold: numbers that depend on the batch size.
 *
 * Once dims are bound, numbers that a file computes from extents are constants.
 * A number that grows with the batch and meets data must not stay constant: it
 * differs for a replica, a micro-batch, and a batch of a data set.
 *
 * what    the walk marks constants that depend on extents (from_extents); one
 *         of equal elements is a number, such as 1 / n for every sample.  If
 *         data met one, the graph is also folded for two and three times the
 *         samples.  A number that is affine in the batch size at these three
 *         points, and computed by linear ops alone, becomes an op extent plus a
 *         constant.  Other ops, such as 1 / n or max(n, 100), are rebuilt with
 *         such operands
 * cost    nothing unless data meet such a number; then two walks, and a third
 *         one if it follows from the batch
 */
#include "passes/fold/fold_rules.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 64 };

/* How a number depends on the batch size. */
enum growth {
	UNSEEN,
	FIXED,
	LINEAR,                         /* affine in the batch size */
	NONLINEAR,                         /* by an op that is not linear */
	UNKNOWN
};

struct extents {
	ValId nval;                     /* values of the original graph */
	NodeId *def;                    /* by value: defining node there */
	enum growth *growth;
	ValId *made;                    /* by value: replacement; 0: not yet */
	double *at[EXTENT_POINTS];      /* number by batches; NAN: unknown */
	bool symbolic;                  /* the number of samples has a name in
	                                 * the file */
};

/* A constant of equal elements. */
static bool
is_number(const Graph *g, ValId v)
{
	double x;

	return val_splat(g, v, &x);
}

void
fold_extents_read(struct extents *e, const Graph *g, int times)
{
	for (ValId v = 1; v < e->nval; v++)
		if (!val_splat(g, v, &e->at[times - 1][v]))
			e->at[times - 1][v] = NAN;
}

/* ---- growth ---- */

static enum growth
growth_by_points(const struct extents *e, ValId v)
{
	double a = e->at[0][v], b = e->at[1][v], c = e->at[2][v];

	return a == b && b == c ? FIXED : b - a == c - b ? LINEAR : UNKNOWN;
}

/* Whether element-wise n is linear in operand k; joint: in all jointly. */
static bool
is_linear(const Graph *g, const Node *n, int k, bool joint)
{
	uint64_t flags = op_info[n->op].flags;
	char to = dtype_info[g->val[n->out[0]].dt].cls;
	bool rounds = to != 'f' && (n->op == OP_DIV || to == 'b'
	              || dtype_info[g->val[n->in[k]].dt].cls == 'f');

	return k < 3 && flags & (uint64_t)F_LIN0 << k && !rounds
		&& (!joint || flags & F_JOINT);
}

/* Whether n only changes the shape of v, its operand 0. */
static bool
only_moves(const struct extents *e, const Node *n)
{
	ValId x = n->in[0], y = n->out[0];
	bool same = x < e->nval && !(op_info[n->op].flags & F_EW);

	for (int i = 0; i < EXTENT_POINTS && same; i++)
		same = e->at[i][x] == e->at[i][y];
	return same;
}

static enum growth growth_of(const struct fold *, ValId, int depth);

static enum growth
growth_of_ew(const struct fold *f, const Node *n, int depth)
{
	bool straight = true;
	int grows = 0;

	for (int k = 0; k < n->nin; k++) {
		enum growth of = growth_of(f, n->in[k], depth);

		if (of == UNKNOWN)
			return UNKNOWN;
		grows += of != FIXED;
		straight &= of == FIXED || (of == LINEAR
			&& is_linear(f->g, n, k, grows > 1));
	}
	if (!grows)
		return FIXED;
	return straight && growth_by_points(f->extents, n->out[0]) != UNKNOWN
		? LINEAR : NONLINEAR;
}

static enum growth
growth_of(const struct fold *f, ValId v, int depth)
{
	const struct extents *e = f->extents;
	const Graph *g = f->g;
	const Node *n = v < e->nval ? &g->node[e->def[v]] : NULL;
	enum growth is;

	if (!n || !e->def[v])
		return FIXED;
	if (e->growth[v])
		return e->growth[v];
	if (depth > DEPTH || !is_number(g, v))
		return UNKNOWN;
	if (op_info[n->op].flags & F_EW)
		is = growth_of_ew(f, n, depth + 1);
	else if (n->nin && is_number(g, n->in[0]) && only_moves(e, n))
		is = growth_of(f, n->in[0], depth + 1);
	else
		is = growth_by_points(e, v);
	return e->growth[v] = is;
}

/* Whether the number must not stay a constant where it meets data.  If its
 * dependence on the batch is unknown, scalars matter, and what was seen to
 * change. */
static bool
follows_batch(const struct fold *f, const struct batch_number *m)
{
	const struct extents *e = f->extents;
	enum growth is = growth_of(f, m->v, 0);
	bool changes = m->v < e->nval && e->at[1][m->v] != e->at[0][m->v]
		&& !isnan(e->at[0][m->v] + e->at[1][m->v]);

	return is == LINEAR || is == NONLINEAR
		|| (is == UNKNOWN && (m->alone || changes) && e->symbolic);
}

struct extents *
fold_extents_new(struct fold *f, const Graph *before)
{
	struct extents *e = arena_array(f->p->scratch, 1, sizeof *e);
	const Val *first = graph_batch_input(before);
	Arena *a = f->p->scratch;

	if (!first)
		return NULL;
	e->nval = before->nval;
	e->symbolic = first->dim_name[0] != NULL;
	e->def = arena_array(a, e->nval, sizeof *e->def);
	e->growth = arena_array(a, e->nval, sizeof *e->growth);
	e->made = arena_array(a, e->nval, sizeof *e->made);
	for (int i = 0; i < EXTENT_POINTS; i++)
		e->at[i] = arena_array(a, e->nval, sizeof *e->at[i]);
	for (ValId v = 1; v < e->nval; v++)
		e->def[v] = before->val[v].def;
	fold_extents_read(e, f->g, 1);
	return e;
}

bool
fold_extents_matter(struct fold *f, struct extents *e)
{
	f->extents = e;
	for (size_t i = 0; i < f->nbatch_number; i++)
		if (follows_batch(f, &f->batch_number[i]))
			return true;
	f->extents = NULL;
	return false;
}

/* ---- replacement of a number ---- */

static ValId
emit_extent_op(struct fold *f, ValId v, double value, bool known)
{
	Val x = f->g->val[v];
	Shape shape = shape_along(f->g->val[v].shape.rank, 0, 1);
	NodeId like = f->extents->def[v];
	Attr a = attr_default(OP_EXTENT);

	a.EXTENT.dt = dtype_info[x.dt].cls == 'f' ? DT_F32 : x.dt;
	a.EXTENT.shape = shape_list(&shape);
	a.EXTENT.value = value;
	a.EXTENT.known = known;
	return fold_cast(f, fold_emit(f, OP_EXTENT, 0, NULL, &a, like), x.dt,
	                 like);
}

static ValId
emit_linear(struct fold *f, ValId v)
{
	const struct extents *e = f->extents;
	double value = e->at[1][v] - e->at[0][v], rest = e->at[0][v] - value;
	ValId in[2];

	if (value == 0)
		return v;
	in[0] = emit_extent_op(f, v, value, true);
	in[1] = val_scalar(f->g, f->g->val[v].dt, rest);
	return rest == 0 ? in[0]
	       : fold_emit(f, OP_ADD, 2, in, NULL, e->def[v]);
}

static ValId batch_expr(struct fold *, ValId v);

/* The node of v with replaced operands. */
static ValId
rebuild_node(struct fold *f, ValId v)
{
	NodeId id = f->extents->def[v];
	Node n = f->g->node[id];
	Shape shape = shape_along(f->g->val[v].shape.rank, 0, 1);
	ValId *in = arena_copy(f->p->scratch, n.in,
	                       (size_t)n.nin * sizeof *in);

	for (int k = 0; k < n.nin; k++) {
		in[k] = batch_expr(f, in[k]);
		if (!in[k])
			return 0;
	}
	return op_info[n.op].flags & F_EW
		? fold_emit(f, n.op, n.nin, in, &n.attr, id)
		: fold_reshape(f, in[0], &shape, id);
}

/* The replacement of v; 0 after a diagnostic. */
static ValId
batch_expr(struct fold *f, ValId v)
{
	struct extents *e = f->extents;
	enum growth is = growth_of(f, v, 0);

	if (is == FIXED)
		return v;
	if (!e->made[v])
		e->made[v] = is == LINEAR ? emit_linear(f, v)
			: is == NONLINEAR ? rebuild_node(f, v)
			: emit_extent_op(f, v, e->at[0][v], false);
	return e->made[v];
}

/* Whether one element is enough for operand k: another operand of an
 * element-wise op has the extents. */
static bool
is_spread(const struct fold *f, NodeId id, int k)
{
	const Node *n = &f->g->node[id];
	const Shape *s = &in_val(f, n, k)->shape;
	bool has = op_info[n->op].flags & F_EW;

	for (int i = 1; i <= s->rank && has; i++) {
		bool other = s->dim[s->rank - i] == 1;

		for (int j = 0; j < n->nin; j++) {
			const Shape *t = &in_val(f, n, j)->shape;

			other |= j != k && n->in[j] && t->rank >= i
				&& t->dim[t->rank - i] != 1;
		}
		has = other;
	}
	return has;
}

static bool
add_batch_number(struct fold *f, NodeId id, int k, bool alone)
{
	struct batch_number m = { f->g->node[id].in[k], alone };
	ValId y;

	if (!f->extents) {
		f->batch_number = arena_grow(f->p->scratch, f->batch_number,
		                             f->nbatch_number,
		                             &f->batch_number_cap,
		                             f->nbatch_number + 1,
		                             sizeof *f->batch_number);
		f->batch_number[f->nbatch_number++] = m;
		return true;
	}
	if (!follows_batch(f, &m))
		return true;
	y = batch_expr(f, m.v);
	if (y && !is_spread(f, id, k))
		y = fold_expand(f, y, &f->g->val[m.v].shape, id);
	f->g->node[id].in[k] = y;
	return y != 0;
}

/* Whether data must not meet operand k as a constant: zeros and ones are masks
 * and states, but for one sample 1 may be 1 / n.  What is no list of floats
 * says how other ops work, as a depth does. */
static bool
may_follow_batch(struct fold *f, NodeId id, int k)
{
	const Node *n = &f->g->node[id];
	const Val *v = in_val(f, n, k), *first = graph_batch_input(f->g);
	bool one = val_nelem(v) == 1;
	double x;

	if (!n->in[k] || !fold_facts(f, n->in[k])->from_extents
	    || !val_splat(f->g, n->in[k], &x))
		return false;
	if (op_info[n->op].flags & F_EW && one)
		return true;
	return !one && dtype_info[v->dt].cls == 'f'
		&& x != 0 && (x != 1 || !first || first->shape.dim[0] == 1);
}

bool
fold_batch_numbers(struct fold *f, NodeId id)
{
	const Node *n = &f->g->node[id];
	int nin = n->nin < op_info[n->op].nstat ? n->nin : op_info[n->op].nstat;
	bool alone = op_info[n->op].flags & F_EW;

	if (are_const(f, n, 0))
		return true;
	for (int k = 0; k < n->nin; k++)
		alone &= !n->in[k] || val_nelem(in_val(f, n, k)) == 1;
	for (int k = 0; k < nin; k++)
		if (may_follow_batch(f, id, k)
		    && !add_batch_number(f, id, k, alone))
			return false;
	return true;
}
