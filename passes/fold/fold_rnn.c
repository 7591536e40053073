/* Unrolling of `rnn` into products and element-wise ops.
 *
 * The products of the input with its weights are one for all steps; a step
 * adds that of the state before.  Steps beyond a sequence's length leave its
 * state alone and give 0.  Part of pass fold.
 */
#include "passes/fold/fold_rules.h"

#include <string.h>

#define TRY(v) do { if (!(v)) return STEP_FAIL; } while (0)

enum { MAX_STEPS = 1024 };
enum { KIND_RNN, KIND_GRU, KIND_LSTM };

struct rnn {
	struct fold *f;
	NodeId id;
	Attr attr;
	ValId in[8];                    /* 0: absent */
	int64_t steps, batch, hidden;
	DType dt;
	ValId xw;                       /* [T,B,G*H] */
	ValId bias;                     /* of the state's products, or 0 */
	ValId lens;                     /* [B,1] or 0 */
	ValId h, c;
	bool failed;
};

/* ---- building: 0 gives 0 ---- */

static ValId
emit(struct rnn *r, Op op, int nin, const ValId *in, const Attr *a)
{
	ValId v = 0;

	for (int i = 0; i < nin && !r->failed; i++)
		r->failed |= !in[i];
	if (!r->failed)
		v = fold_emit(r->f, op, nin, in, a, r->id);
	r->failed |= !v;
	return v;
}

static ValId
one(struct rnn *r, Op op, ValId x)
{
	return emit(r, op, 1, &x, NULL);
}

static ValId
two(struct rnn *r, Op op, ValId x, ValId y)
{
	return emit(r, op, 2, (ValId[]){ x, y }, NULL);
}

static ValId
where(struct rnn *r, ValId c, ValId x, ValId y)
{
	return emit(r, OP_WHERE, 3, (ValId[]){ c, x, y }, NULL);
}

static ValId
number(struct rnn *r, double x)
{
	return val_scalar(r->f->g, r->dt, x);
}

static ValId
reshape(struct rnn *r, ValId x, Shape s)
{
	ValId v = r->failed ? 0 : fold_reshape(r->f, x, &s, r->id);

	r->failed |= !v;
	return v;
}

/* Elements from..from+n-1 of an axis. */
static ValId
slice(struct rnn *r, ValId x, int axis, int64_t from, int64_t n)
{
	IntList start = { 0 }, step = { 0 };
	Shape s;
	ValId v;

	if (r->failed)
		return 0;
	s = r->f->g->val[x].shape;
	start.n = step.n = s.rank;
	for (int d = 0; d < s.rank; d++)
		step.v[d] = 1;
	start.v[axis] = from;
	s.dim[axis] = n;
	v = fold_slice(r->f, x, &start, &step, &s, r->id);
	r->failed |= !v;
	return v;
}

static ValId
linear(struct rnn *r, ValId x, ValId w, ValId bias)
{
	Attr a = attr_default(OP_MATMUL);

	a.MATMUL.tb = 1;
	return emit(r, OP_MATMUL, bias ? 3 : 2, (ValId[]){ x, w, bias }, &a);
}

/* ORDER ACT: frontend/import/import_rnn.c */
static ValId
activate(struct rnn *r, int which, ValId x)
{
	double clip = r->attr.RNN.clip;
	ValId y;

	if (clip > 0)
		x = two(r, OP_MAX, two(r, OP_MIN, x, number(r, clip)),
		        number(r, -clip));
	switch (r->attr.RNN.act.v[which]) {
	case 0:
		return one(r, OP_SIGMOID, x);
	case 1:
		return one(r, OP_TANH, x);
	case 2:
		return one(r, OP_RELU, x);
	case 3:
		y = two(r, OP_ADD, one(r, OP_ABS, x), number(r, 1));
		return two(r, OP_DIV, x, y);
	default:
		return one(r, OP_SOFTPLUS, x);
	}
}

/* ---- one step; gates is [B,G*H] ---- */

static ValId
gate(struct rnn *r, ValId gates, int k)
{
	return slice(r, gates, 1, k * r->hidden, r->hidden);
}

/* Peephole k of the cell state. */
static ValId
peep(struct rnn *r, ValId g, int k, ValId c)
{
	if (!r->in[7])
		return g;
	return two(r, OP_ADD, g,
	           two(r, OP_MUL, slice(r, r->in[7], 0, k * r->hidden,
	                                r->hidden), c));
}

/* Gates i, o, f, c. */
static void
lstm(struct rnn *r, ValId gates, ValId *h, ValId *c)
{
	ValId i = activate(r, 0, peep(r, gate(r, gates, 0), 0, r->c)), f, g, o;

	if (r->attr.RNN.coupled)
		f = two(r, OP_SUB, number(r, 1), i);
	else
		f = activate(r, 0, peep(r, gate(r, gates, 2), 2, r->c));
	g = activate(r, 1, gate(r, gates, 3));
	*c = two(r, OP_ADD, two(r, OP_MUL, f, r->c), two(r, OP_MUL, i, g));
	o = activate(r, 0, peep(r, gate(r, gates, 1), 1, *c));
	/* clipping is for the gates alone */
	double clip = r->attr.RNN.clip;
	r->attr.RNN.clip = 0;
	*h = two(r, OP_MUL, o, activate(r, 2, *c));
	r->attr.RNN.clip = clip;
}

/* Gates z, r, h. */
static void
gru(struct rnn *r, ValId x, ValId *h)
{
	int64_t n = r->hidden;
	ValId z, reset, g, hr, w = r->in[2];

	if (r->attr.RNN.reset_after) {
		hr = linear(r, r->h, w, r->bias);
		g = slice(r, hr, 1, 2 * n, n);
		hr = slice(r, hr, 1, 0, 2 * n);
	} else {
		hr = linear(r, r->h, slice(r, w, 0, 0, 2 * n), 0);
		g = 0;
	}
	hr = two(r, OP_ADD, slice(r, x, 1, 0, 2 * n), hr);
	z = activate(r, 0, gate(r, hr, 0));
	reset = activate(r, 0, gate(r, hr, 1));
	if (g)
		g = two(r, OP_MUL, reset, g);
	else
		g = linear(r, two(r, OP_MUL, reset, r->h),
		           slice(r, w, 0, 2 * n, n), 0);
	g = activate(r, 1, two(r, OP_ADD, gate(r, x, 2), g));
	*h = two(r, OP_ADD,
	         two(r, OP_MUL, two(r, OP_SUB, number(r, 1), z), g),
	         two(r, OP_MUL, z, r->h));
}

/* The state after step t; what the step gives. */
static ValId
step(struct rnn *r, int64_t t)
{
	ValId x = slice(r, r->xw, 0, t, 1), h = 0, c = r->c, y, on = 0;
	int64_t width = r->failed ? 0 : r->f->g->val[r->xw].shape.dim[2];

	x = reshape(r, x, SHAPE(r->batch, width));
	if (r->attr.RNN.kind == KIND_GRU) {
		gru(r, x, &h);
	} else {
		ValId g = linear(r, r->h, r->in[2], 0);

		g = two(r, OP_ADD, x, g);
		if (r->attr.RNN.kind == KIND_LSTM)
			lstm(r, g, &h, &c);
		else
			h = activate(r, 0, g);
	}
	y = h;
	if (r->lens) {
		on = two(r, OP_LT, val_scalar(r->f->g, DT_I64, (double)t),
		         r->lens);
		y = where(r, on, h, number(r, 0));
		h = where(r, on, h, r->h);
		c = r->c ? where(r, on, c, r->c) : 0;
	}
	r->h = h;
	r->c = c;
	return reshape(r, y, SHAPE(1, r->batch, r->hidden));
}

/* ---- all steps ---- */

/* The products of the input, with every bias that can be added there. */
static void
project_input(struct rnn *r)
{
	Graph *g = r->f->g;
	Shape x = g->val[r->in[0]].shape;
	int64_t width = g->val[r->in[1]].shape.dim[0];
	ValId b = 0, v;

	if (r->in[3]) {
		b = slice(r, r->in[3], 0, 0, width);
		v = slice(r, r->in[3], 0, width, width);
		if (r->attr.RNN.kind == KIND_GRU && r->attr.RNN.reset_after)
			r->bias = v;
		else
			b = two(r, OP_ADD, b, v);
	}
	v = reshape(r, r->in[0], SHAPE(x.dim[0] * x.dim[1], x.dim[2]));
	v = linear(r, v, r->in[1], b);
	r->xw = reshape(r, v, SHAPE(r->steps, r->batch, width));
}

static ValId
zeros(struct rnn *r)
{
	Shape s = SHAPE(r->batch, r->hidden);
	ValId zero = number(r, 0), v = fold_expand(r->f, zero, &s, r->id);

	r->failed |= !v;
	return v;
}

/* Output k of the node is v from now on. */
static bool
replace(struct rnn *r, int k, ValId v)
{
	const Graph *g = r->f->g;
	ValId y = g->node[r->id].out[k];

	if (y && g->val[y].output
	    && (g->val[v].kind != V_TEMP || g->val[v].output))
		v = emit(r, OP_COPY, 1, &v, NULL);
	if (y && v)
		fold_replace(r->f, y, v);
	return !y || v;
}

enum step
fold_rnn(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	const Node *n = &g->node[id];
	struct rnn r = { .f = f, .id = id, .attr = n->attr };
	Shape x = g->val[n->in[0]].shape;
	Attr cat = attr_default(OP_CONCAT), cast = attr_default(OP_CAST);
	ValId *y, all;

	for (int i = 0; i < n->nin; i++) {
		r.in[i] = n->in[i];
		if (r.in[i] && !shape_known(&g->val[r.in[i]].shape))
			return STEP_KEEP;
	}
	r.steps = x.dim[0];
	r.batch = x.dim[1];
	r.hidden = g->val[r.in[2]].shape.dim[1];
	r.dt = g->val[r.in[0]].dt;
	if (r.steps < 1 || r.steps > MAX_STEPS) {
		diag_at(f->p->diag, node_label(g, n), node_type(g, n),
		        "found %lld time steps; expected 1 to %d, because "
		        "steps are unrolled",
		        (long long)r.steps, MAX_STEPS);
		return STEP_FAIL;
	}
	project_input(&r);
	if (r.in[4]) {
		cast.CAST.to = DT_I64;
		r.lens = g->val[r.in[4]].dt == DT_I64 ? r.in[4]
			: emit(&r, OP_CAST, 1, &r.in[4], &cast);
		r.lens = reshape(&r, r.lens, SHAPE(r.batch, 1));
	}
	r.h = r.in[5] ? r.in[5] : zeros(&r);
	if (r.attr.RNN.kind == KIND_LSTM)
		r.c = r.in[6] ? r.in[6] : zeros(&r);
	y = arena_array(f->p->scratch, (size_t)r.steps, sizeof *y);
	for (int64_t i = 0; i < r.steps && !r.failed; i++) {
		int64_t t = r.attr.RNN.reverse ? r.steps - 1 - i : i;

		y[t] = step(&r, t);
	}
	cat.CONCAT.axis = 0;
	all = r.failed || r.steps == 1 ? y[0]
		: emit(&r, OP_CONCAT, (int)r.steps, y, &cat);
	TRY(!r.failed && all);
	TRY(replace(&r, 0, all) && replace(&r, 1, r.h));
	TRY(r.attr.RNN.kind != KIND_LSTM || replace(&r, 2, r.c));
	return STEP_GONE;
}
