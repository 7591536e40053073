/* Helper functions of gradient rules. */
#include "ir/infer/infer.h"
#include "passes/grad/grad_rules.h"
#include "ir/infer/infer.h"

#include <string.h>

bool
grad_refuse(struct grad *c, const char *why)
{
	c->why = why;
	return false;
}

static bool
all_there(int n, const ValId *in)
{
	for (int k = 0; k < n; k++)
		if (in[k] == 0)
			return false;
	return true;
}

ValId
adj_op(struct grad *c, Op op, int nin, const ValId *in, const Attr *attr)
{
	int required = op_info[op].min < nin ? op_info[op].min : nin;
	ValId v;

	if (c->failed || !all_there(required, in))
		return 0;
	v = emit_op(c->g, c->diag, op, nin, in, attr, c->id);
	c->failed |= v == 0;
	return v;
}

const ValId *
adj_node(struct grad *c, Op op, int nin, const ValId *in, const Attr *attr,
         int nout, const bool *keep)
{
	Node *n;

	if (c->failed)
		return NULL;
	n = node_new(c->g, op, nin, in, nout, c->id);
	if (attr)
		n->attr = *attr;
	if (!shape_infer(c->g, c->diag, n)) {
		c->failed = true;
		return NULL;
	}
	for (int k = 0; k < nout; k++)
		if (!keep[k]) {
			c->g->val[n->out[k]].def = 0;
			n->out[k] = 0;
		}
	return n->out;
}

ValId
adj_1(struct grad *c, Op op, ValId a)
{
	return adj_op(c, op, 1, &a, NULL);
}

ValId
adj_2(struct grad *c, Op op, ValId a, ValId b)
{
	return adj_op(c, op, 2, (ValId[]){ a, b }, NULL);
}

ValId
adj_where(struct grad *c, ValId cond, ValId a, ValId b)
{
	return adj_op(c, OP_WHERE, 3, (ValId[]){ cond, a, b }, NULL);
}

ValId
adj_scalar(struct grad *c, DType dt, double x)
{
	struct grad_scalars *s = c->scalars;
	ValId v;

	for (size_t i = 0; i < s->n; i++)
		if (s->entry[i].dt == dt && s->entry[i].x == x)
			return s->entry[i].val;
	v = val_scalar(c->g, dt, x);
	s->entry = arena_grow(s->arena, s->entry, s->n, &s->cap, s->n + 1,
	                      sizeof *s->entry);
	s->entry[s->n++] = (struct grad_scalar){ dt, x, v };
	return v;
}

ValId
adj_scale(struct grad *c, ValId a, double x)
{
	if (a == 0 || x == 1)
		return a;
	return adj_2(c, OP_MUL, a, adj_scalar(c, adj_dt(c, a), x));
}

ValId
adj_in(const struct grad *c, int k)
{
	return k < c->n.nin ? c->n.in[k] : 0;
}

ValId
adj_out(struct grad *c, int k, DType dt, Shape shape)
{
	if (c->n.out[k] == 0) {
		ValId v = val_new(c->g, V_TEMP, NULL, dt, shape);

		c->g->val[v].def = c->id;
		c->g->val[v].result_index = k;
		c->n.out[k] = v;        /* the array is the node's own */
	}
	return c->n.out[k];
}

const Shape *
adj_shape(const struct grad *c, ValId v)
{
	return &c->g->val[v].shape;
}

DType
adj_dt(const struct grad *c, ValId v)
{
	return c->g->val[v].dt;
}

ValId
adj_reshape(struct grad *c, ValId v, const Shape *shape)
{
	Attr a = attr_reshape(shape);

	if (v == 0 || shape_eq(adj_shape(c, v), shape))
		return v;
	return adj_op(c, OP_RESHAPE, 1, &v, &a);
}

ValId
adj_expand(struct grad *c, ValId v, const Shape *shape)
{
	Attr a = attr_expand(shape);

	return v == 0 || shape_eq(adj_shape(c, v), shape) ? v
	       : adj_op(c, OP_EXPAND, 1, &v, &a);
}

ValId
adj_cast(struct grad *c, ValId v, DType dt)
{
	Attr a = attr_cast(dt);

	return v == 0 || adj_dt(c, v) == dt ? v
	       : adj_op(c, OP_CAST, 1, &v, &a);
}

ValId
adj_fill(struct grad *c, DType dt, double value, const Shape *shape)
{
	Attr a = attr_default(OP_FILL);

	a.FILL.shape = shape_list(shape);
	a.FILL.value = value;
	return adj_cast(c, adj_op(c, OP_FILL, 0, NULL, &a), dt);
}

ValId
adj_zeros(struct grad *c, DType dt, const Shape *shape)
{
	return adj_fill(c, dt, 0, shape);
}

ValId
adj_loss_scale(struct grad *c, DType dt, double value, const Shape *shape)
{
	Attr a = attr_default(OP_LOSS_SCALE);
	ValId v;

	a.LOSS_SCALE.value = value;
	v = adj_op(c, OP_LOSS_SCALE, 0, NULL, &a);
	return adj_cast(c, adj_reshape(c, v, shape), dt);
}

/* The dim of the result that is cut where `like`, whole, is repeated; -1: none.
 * A rank's extent may be one there and yet there is something to be summed. */
static int
repeated_dim(const struct grad *c, ValId like)
{
	const Placement *y = &c->g->val[c->n.out[0]].placement;

	return y->kind == PLACEMENT_SHARD
	       && c->g->val[like].placement.kind != PLACEMENT_SHARD
	       ? y->axis : -1;
}

ValId
adj_fit(struct grad *c, ValId v, ValId like)
{
	Shape to, from;
	Attr a = attr_default(OP_REDUCE_SUM);
	int lead, cut = repeated_dim(c, like);

	if (v == 0 || (cut < 0 && shape_eq(adj_shape(c, v),
	                                   adj_shape(c, like))))
		return v;
	to = *adj_shape(c, like);
	from = *adj_shape(c, v);
	lead = from.rank - to.rank;
	for (int i = 0; i < from.rank; i++)
		if (i < lead || (to.dim[i - lead] == 1
		                 && (from.dim[i] != 1 || i == cut)))
			a.REDUCE_SUM.axes.v[a.REDUCE_SUM.axes.n++] = i;
	/* reshaped from fewer dims, a rank's piece of extent one could be of
	 * either of two */
	a.REDUCE_SUM.keepdims = lead == 0 && c->g->ranks > 0;
	if (a.REDUCE_SUM.axes.n > 0)
		v = adj_op(c, OP_REDUCE_SUM, 1, &v, &a);
	return adj_reshape(c, v, &to);
}

ValId
adj_slice(struct grad *c, ValId v, const int64_t *start,
          const int64_t *extent)
{
	if (c->failed || v == 0)
		return 0;
	v = emit_slice(c->g, c->diag, v, start, extent, c->id);
	c->failed |= !v;
	return v;
}

int64_t *
adj_indices(struct grad *c, int64_t count)
{
	const char *name = node_label(c->g, &c->g->node[c->id]);

	if (count <= INDICES_MAX)
		return arena_array(c->g->arena, (size_t)count + 1,
		                   sizeof(int64_t));
	diag_error(c->diag, "node '%s' (%s): the gradient needs a table of "
	           "%lld indices, expected at most %d", name ? name : "?",
	           op_info[c->n.op].text, (long long)count, INDICES_MAX);
	c->failed = true;
	return NULL;
}

ValId
adj_spread(struct grad *c, ValId dy, int axis, int64_t n, const int64_t *at)
{
	Attr a = attr_default(OP_SCATTER_ADD);
	Shape s = *adj_shape(c, dy);
	ValId idx = val_const(c->g, NULL, DT_I64, SHAPE(s.dim[axis]), at);

	s.dim[axis] = n;
	a.SCATTER_ADD.axis = axis;
	a.SCATTER_ADD.shape = shape_list(&s);
	return adj_op(c, OP_SCATTER_ADD, 2, (ValId[]){ idx, dy }, &a);
}

/* Element i of the axis goes to start + step * i of n. */
static ValId
spread_evenly(struct grad *c, ValId dy, int axis, int64_t n, int64_t start,
              int64_t step)
{
	int64_t count = adj_shape(c, dy)->dim[axis];
	int64_t *at = adj_indices(c, count);

	if (!at)
		return 0;
	for (int64_t i = 0; i < count; i++)
		at[i] = start + step * i;
	return adj_spread(c, dy, axis, n, at);
}

ValId
adj_unslice(struct grad *c, ValId dy, const Shape *shape,
            const IntList *start, const IntList *step)
{
	const Shape s = *shape, *whole = &s;    /* shape may move */
	Attr a = attr_default(OP_PAD);
	bool pads = false;

	a.PAD.begin.n = a.PAD.end.n = whole->rank;
	for (int i = 0; dy != 0 && i < whole->rank; i++) {
		int64_t n = adj_shape(c, dy)->dim[i];

		if (step->v[i] == 1 || n == 1) {
			a.PAD.begin.v[i] = start->v[i];
			a.PAD.end.v[i] = whole->dim[i] - start->v[i] - n;
			pads |= n != whole->dim[i];
		} else {
			dy = spread_evenly(c, dy, i, whole->dim[i], start->v[i],
			            step->v[i]);
		}
	}
	if (dy == 0 || !pads)
		return dy;
	return adj_op(c, OP_PAD, 1, &dy, &a);
}
