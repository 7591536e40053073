/* Pass fold: unroll `rnn` into products and element-wise ops.
 *
 * One product multiplies the inputs of all steps by their weights; each step
 * adds the product of the previous state.  Steps beyond a sequence's length
 * keep its state and give 0.
 */
#include "passes/fold/fold_rules.h"

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
	ValId bias;                     /* bias of the state's products, or 0 */
	ValId lens;                     /* lengths [B,1], or 0 */
	ValId h, c;
};

/* ---- building: 0 gives 0 ---- */

static ValId
rnn_op1(struct rnn *r, Op op, ValId x)
{
	return fold_emit(r->f, op, 1, &x, NULL, r->id);
}

static ValId
rnn_op2(struct rnn *r, Op op, ValId x, ValId y)
{
	return fold_binary(r->f, op, x, y, r->id);
}

static ValId
rnn_where(struct rnn *r, ValId c, ValId x, ValId y)
{
	return fold_where(r->f, c, x, y, r->id);
}

static ValId
rnn_const(struct rnn *r, double x)
{
	return val_scalar(r->f->g, r->dt, x);
}

static ValId
rnn_reshape(struct rnn *r, ValId x, Shape s)
{
	return fold_reshape(r->f, x, &s, r->id);
}

/* Elements from..from+n-1 of an axis. */
static ValId
rnn_slice(struct rnn *r, ValId x, int axis, int64_t from, int64_t n)
{
	return fold_slice_axis(r->f, x, axis, from, n, r->id);
}

static ValId
rnn_linear(struct rnn *r, ValId x, ValId w, ValId bias)
{
	Attr a = attr_default(OP_MATMUL);

	a.MATMUL.tb = 1;
	return fold_emit(r->f, OP_MATMUL, bias ? 3 : 2,
	                 (ValId[]){ x, w, bias }, &a, r->id);
}

/* ORDER ACT: frontend/import/import_rnn.c */
static ValId
rnn_act(struct rnn *r, int which, ValId x)
{
	double clip = r->attr.RNN.clip;
	ValId y;

	if (clip > 0)
		x = rnn_op2(r, OP_MAX, rnn_op2(r, OP_MIN, x,
		                               rnn_const(r, clip)),
		            rnn_const(r, -clip));
	switch (r->attr.RNN.act.v[which]) {
	case 0:
		return rnn_op1(r, OP_SIGMOID, x);
	case 1:
		return rnn_op1(r, OP_TANH, x);
	case 2:
		return rnn_op1(r, OP_RELU, x);
	case 3:
		y = rnn_op2(r, OP_ADD, rnn_op1(r, OP_ABS, x), rnn_const(r, 1));
		return rnn_op2(r, OP_DIV, x, y);
	default:
		return rnn_op1(r, OP_SOFTPLUS, x);
	}
}

/* ---- one step; gates is [B,G*H] ---- */

static ValId
rnn_gate(struct rnn *r, ValId gates, int k)
{
	return rnn_slice(r, gates, 1, k * r->hidden, r->hidden);
}

/* Peephole k of the cell state. */
static ValId
rnn_peephole(struct rnn *r, ValId g, int k, ValId c)
{
	if (!r->in[7])
		return g;
	return rnn_op2(r, OP_ADD, g,
	               rnn_op2(r, OP_MUL, rnn_slice(r, r->in[7], 0,
	                       k * r->hidden, r->hidden), c));
}

/* Gates i, o, f, c. */
static void
emit_lstm_step(struct rnn *r, ValId gates, ValId *h, ValId *c)
{
	ValId i = rnn_peephole(r, rnn_gate(r, gates, 0), 0, r->c), f, g, o;

	i = rnn_act(r, 0, i);
	if (r->attr.RNN.coupled)
		f = rnn_op2(r, OP_SUB, rnn_const(r, 1), i);
	else
		f = rnn_act(r, 0, rnn_peephole(r, rnn_gate(r, gates, 2), 2,
		                               r->c));
	g = rnn_act(r, 1, rnn_gate(r, gates, 3));
	*c = rnn_op2(r, OP_ADD, rnn_op2(r, OP_MUL, f, r->c),
	             rnn_op2(r, OP_MUL, i, g));
	o = rnn_act(r, 0, rnn_peephole(r, rnn_gate(r, gates, 1), 1, *c));
	/* clip applies to gates only */
	double clip = r->attr.RNN.clip;
	r->attr.RNN.clip = 0;
	*h = rnn_op2(r, OP_MUL, o, rnn_act(r, 2, *c));
	r->attr.RNN.clip = clip;
}

/* Gates z, r, h. */
static void
emit_gru_step(struct rnn *r, ValId x, ValId *h)
{
	int64_t n = r->hidden;
	ValId z, reset, g, hr, w = r->in[2];

	if (r->attr.RNN.reset_after) {
		hr = rnn_linear(r, r->h, w, r->bias);
		g = rnn_slice(r, hr, 1, 2 * n, n);
		hr = rnn_slice(r, hr, 1, 0, 2 * n);
	} else {
		hr = rnn_linear(r, r->h, rnn_slice(r, w, 0, 0, 2 * n), 0);
		g = 0;
	}
	hr = rnn_op2(r, OP_ADD, rnn_slice(r, x, 1, 0, 2 * n), hr);
	z = rnn_act(r, 0, rnn_gate(r, hr, 0));
	reset = rnn_act(r, 0, rnn_gate(r, hr, 1));
	if (g)
		g = rnn_op2(r, OP_MUL, reset, g);
	else
		g = rnn_linear(r, rnn_op2(r, OP_MUL, reset, r->h),
		               rnn_slice(r, w, 0, 2 * n, n), 0);
	g = rnn_act(r, 1, rnn_op2(r, OP_ADD, rnn_gate(r, x, 2), g));
	*h = rnn_op2(r, OP_ADD,
	             rnn_op2(r, OP_MUL, rnn_op2(r, OP_SUB, rnn_const(r, 1), z),
	                     g), rnn_op2(r, OP_MUL, z, r->h));
}

/* The state after step t, and the output of the step. */
static ValId
emit_rnn_step(struct rnn *r, int64_t t)
{
	ValId x = rnn_slice(r, r->xw, 0, t, 1), h = 0, c = r->c, y, on = 0;
	int64_t width = r->f->g->val[r->xw].shape.dim[2];

	x = rnn_reshape(r, x, SHAPE(r->batch, width));
	if (r->attr.RNN.kind == KIND_GRU) {
		emit_gru_step(r, x, &h);
	} else {
		ValId g = rnn_linear(r, r->h, r->in[2], 0);

		g = rnn_op2(r, OP_ADD, x, g);
		if (r->attr.RNN.kind == KIND_LSTM)
			emit_lstm_step(r, g, &h, &c);
		else
			h = rnn_act(r, 0, g);
	}
	y = h;
	if (r->lens) {
		on = rnn_op2(r, OP_LT, val_scalar(r->f->g, DT_I64, (double)t),
		             r->lens);
		y = rnn_where(r, on, h, rnn_const(r, 0));
		h = rnn_where(r, on, h, r->h);
		c = r->c ? rnn_where(r, on, c, r->c) : 0;
	}
	r->h = h;
	r->c = c;
	return rnn_reshape(r, y, SHAPE(1, r->batch, r->hidden));
}

/* ---- all steps ---- */

/* The products of the inputs, with every bias that can be added to them. */
static void
project_input(struct rnn *r)
{
	Graph *g = r->f->g;
	Shape x = g->val[r->in[0]].shape;
	int64_t width = g->val[r->in[1]].shape.dim[0];
	ValId b = 0, v;

	if (r->in[3]) {
		b = rnn_slice(r, r->in[3], 0, 0, width);
		v = rnn_slice(r, r->in[3], 0, width, width);
		if (r->attr.RNN.kind == KIND_GRU && r->attr.RNN.reset_after)
			r->bias = v;
		else
			b = rnn_op2(r, OP_ADD, b, v);
	}
	v = rnn_reshape(r, r->in[0], SHAPE(x.dim[0] * x.dim[1], x.dim[2]));
	v = rnn_linear(r, v, r->in[1], b);
	r->xw = rnn_reshape(r, v, SHAPE(r->steps, r->batch, width));
}

static ValId
zero_state(struct rnn *r)
{
	const Shape s = SHAPE(r->batch, r->hidden);

	return fold_expand(r->f, rnn_const(r, 0), &s, r->id);
}

/* Replace output k of the node by v. */
static bool
replace_rnn_output(struct rnn *r, int k, ValId v)
{
	const Graph *g = r->f->g;
	ValId y = g->node[r->id].out[k];

	if (y && g->val[y].output
	    && (g->val[v].kind != V_TEMP || g->val[v].output))
		v = rnn_op1(r, OP_COPY, v);
	if (y && v)
		fold_replace(r->f, y, v);
	return v;
}

enum step
fold_rnn(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	const Node *n = &g->node[id];
	struct rnn r = { .f = f, .id = id, .attr = n->attr };
	Shape x = g->val[n->in[0]].shape;
	Attr cat = attr_default(OP_CONCAT);
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
		node_error(g, f->p->diag, n, "found %lld time steps; expected "
		           "1 to %d, because steps are unrolled",
		           (long long)r.steps, MAX_STEPS);
		return STEP_FAIL;
	}
	project_input(&r);
	if (r.in[4]) {
		r.lens = fold_cast(f, r.in[4], DT_I64, id);
		r.lens = rnn_reshape(&r, r.lens, SHAPE(r.batch, 1));
	}
	r.h = r.in[5] ? r.in[5] : zero_state(&r);
	if (r.attr.RNN.kind == KIND_LSTM)
		r.c = r.in[6] ? r.in[6] : zero_state(&r);
	y = arena_array(f->p->scratch, (size_t)r.steps, sizeof *y);
	for (int64_t i = 0; i < r.steps && r.xw && r.h; i++) {
		int64_t t = r.attr.RNN.reverse ? r.steps - 1 - i : i;

		y[t] = emit_rnn_step(&r, t);
	}
	cat.CONCAT.axis = 0;
	for (int64_t t = 0; t < r.steps; t++)
		TRY(y[t]);
	all = r.steps == 1 ? y[0]
		: fold_emit(f, OP_CONCAT, (int)r.steps, y, &cat, id);
	TRY(replace_rnn_output(&r, 0, all) && replace_rnn_output(&r, 1, r.h));
	TRY(r.attr.RNN.kind != KIND_LSTM || replace_rnn_output(&r, 2, r.c));
	return STEP_GONE;
}
