#include "tests/plan/gen.h"

#include <stdio.h>
#include <string.h>

uint64_t
gen_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void
lay_out(Graph *g, ValId id)
{
	Val *v = &g->val[id];
	int64_t n = 1;

	for (int i = v->shape.rank - 1; i >= 0; i--) {
		v->stride[i] = n;
		n *= v->shape.dim[i];
	}
	v->laid_out = true;
	v->nbytes = (n * dtype_info[v->dt].nbytes + 63) / 64 * 64;
}

static ValId
value(Graph *g, ValKind kind, const char *name, DType dt, Shape s)
{
	ValId v = val_new(g, kind, name, dt, s);

	lay_out(g, v);
	return v;
}

/* Append a node; shapes of outputs are given, rank -1 ends the list. */
static Node *
node(Graph *g, Op op, Phase phase, int nin, const ValId *in, int nout,
     const Shape *shape)
{
	Node *n = node_new(g, op, nin, in, nout, 0);
	uint32_t origin;
	char name[32];

	snprintf(name, sizeof name, "node%u", node_id(g, n));
	origin = origin_new(g, name, op_info[op].text);
	node_add_origin(g, n, &origin, 1);
	n->phase = phase;
	for (int i = 0; i < nout; i++) {
		g->val[n->out[i]].dt = DT_F32;
		g->val[n->out[i]].shape = shape[i];
		lay_out(g, n->out[i]);
	}
	return n;
}

static ValId
node1(Graph *g, Op op, Phase phase, int nin, const ValId *in, Shape s)
{
	return node(g, op, phase, nin, in, 1, &s)->out[0];
}

/* A loop of one op. */
static ValId
loop(Graph *g, Op op, Phase phase, int nin, const ValId *in)
{
	Shape s = g->val[in[0]].shape;
	Node *n = node(g, OP_LOOP, phase, nin, in, 1, &s);
	struct body *b = arena_alloc(g->arena, sizeof *b);

	b->nop = 1;
	b->op = arena_alloc(g->arena, sizeof *b->op);
	b->op[0] = (struct scalar_op){ .op = op, .dt = DT_F32, .narg = nin,
		.arg = { 0, 1, 2 }, .attr = attr_default(op) };
	b->result = arena_alloc(g->arena, sizeof *b->result);
	n->body = b;
	return n->out[0];
}

static ValId
view(Graph *g, Op op, Phase phase, ValId x, Shape s, const int64_t *stride,
     int64_t start)
{
	ValId y = node1(g, op, phase, 1, &x, s);
	Val *v = &g->val[y];

	v->base = val_owner(g, x);
	v->start = g->val[x].start + start;
	v->nbytes = 0;
	memcpy(v->stride, stride, (size_t)s.rank * sizeof *stride);
	return y;
}

#define IN(...) (int)(sizeof((ValId[]){ __VA_ARGS__ }) / sizeof(ValId)), \
	(const ValId[]){ __VA_ARGS__ }

struct layer {
	ValId x, ln1, mean1, rstd1, qkv, q, k, v, o, o2, lse, x2, ln2, mean2,
	      rstd2, h, a;
	ValId s1, b1, wqkv, bqkv, wo, bo, s2, b2, wfc, bfc, wpr, bpr;
};

struct gpt {
	Graph *g;
	struct gen_gpt o;
	int64_t n;                      /* tokens */
	ValId grad[4096];
	ValId param[4096];
	int ngrad;
};

static ValId
param(struct gpt *t, const char *name, int64_t layer, Shape s)
{
	char text[64];

	snprintf(text, sizeof text, "h.%d.%s", (int)layer, name);
	return value(t->g, V_PARAM, text, DT_F32, s);
}

static void
layernorm(struct gpt *t, ValId x, ValId s, ValId b, ValId *out)
{
	Shape shape[] = { t->g->val[x].shape, SHAPE(t->n), SHAPE(t->n) };
	Node *n = node(t->g, OP_LAYERNORM, PH_FORWARD, IN(x, s, b), 3, shape);

	n->attr.LAYERNORM.axis = 1;
	memcpy(out, n->out, 3 * sizeof *out);
}

static ValId
matmul(struct gpt *t, Phase phase, ValId a, ValId b, ValId bias, int ta,
       int tb)
{
	const Shape *x = &t->g->val[a].shape, *y = &t->g->val[b].shape;
	Shape s = SHAPE(x->dim[ta], y->dim[!tb]);
	Node *n = node(t->g, OP_MATMUL, phase, bias ? 3 : 2,
	               (const ValId[]){ a, b, bias }, 1, &s);

	n->attr.MATMUL.ta = ta;
	n->attr.MATMUL.tb = tb;
	return n->out[0];
}

static void
grad(struct gpt *t, ValId p, ValId g)
{
	t->g->val[g].param = p;
	t->param[t->ngrad] = p;
	t->grad[t->ngrad++] = g;
}

/* One of q, k, v: slice, reshape and transpose of the packed projection. */
static ValId
head(struct gpt *t, ValId qkv, int part)
{
	const struct gen_gpt *o = &t->o;
	int64_t d = o->hidden / o->heads, row = 3 * o->hidden;
	ValId s = view(t->g, OP_SLICE, PH_FORWARD, qkv, SHAPE(t->n, o->hidden),
	               (int64_t[]){ row, 1 }, part * o->hidden);
	ValId r = view(t->g, OP_RESHAPE, PH_FORWARD, s,
	               SHAPE(o->batch, o->seq, o->heads, d),
	               (int64_t[]){ o->seq * row, row, d, 1 }, 0);

	return view(t->g, OP_TRANSPOSE, PH_FORWARD, r,
	            SHAPE(o->batch, o->heads, o->seq, d),
	            (int64_t[]){ o->seq * row, d, row, 1 }, 0);
}

static void
attention(struct gpt *t, struct layer *l)
{
	const struct gen_gpt *o = &t->o;
	int64_t d = o->hidden / o->heads, h = o->hidden;
	Shape shape[] = { SHAPE(o->batch, o->heads, o->seq, d),
	                  SHAPE(o->batch, o->heads, o->seq) };
	Node *n;

	l->q = head(t, l->qkv, 0);
	l->k = head(t, l->qkv, 1);
	l->v = head(t, l->qkv, 2);
	n = node(t->g, OP_ATTENTION, PH_FORWARD, IN(l->q, l->k, l->v), 2,
	         shape);
	n->attr.ATTENTION.causal = 1;
	l->o = n->out[0];
	l->lse = n->out[1];
	memcpy(t->g->val[l->o].stride, (int64_t[]){ o->seq * h, d, h, 1 },
	       4 * sizeof(int64_t));
	l->o2 = view(t->g, OP_RESHAPE, PH_FORWARD, l->o, SHAPE(t->n, h),
	             (int64_t[]){ h, 1 }, 0);
}

static ValId
forward(struct gpt *t, struct layer *l, int64_t i, ValId x)
{
	int64_t h = t->o.hidden;
	ValId y[3];

	l->x = x;
	l->s1 = param(t, "ln1.s", i, SHAPE(h));
	l->b1 = param(t, "ln1.b", i, SHAPE(h));
	l->wqkv = param(t, "attn.w", i, SHAPE(h, 3 * h));
	l->bqkv = param(t, "attn.b", i, SHAPE(3 * h));
	l->wo = param(t, "proj.w", i, SHAPE(h, h));
	l->bo = param(t, "proj.b", i, SHAPE(h));
	l->s2 = param(t, "ln2.s", i, SHAPE(h));
	l->b2 = param(t, "ln2.b", i, SHAPE(h));
	l->wfc = param(t, "fc.w", i, SHAPE(h, 4 * h));
	l->bfc = param(t, "fc.b", i, SHAPE(4 * h));
	l->wpr = param(t, "fcproj.w", i, SHAPE(4 * h, h));
	l->bpr = param(t, "fcproj.b", i, SHAPE(h));
	layernorm(t, x, l->s1, l->b1, y);
	l->ln1 = y[0];
	l->mean1 = y[1];
	l->rstd1 = y[2];
	l->qkv = matmul(t, PH_FORWARD, l->ln1, l->wqkv, l->bqkv, 0, 0);
	attention(t, l);
	y[0] = matmul(t, PH_FORWARD, l->o2, l->wo, l->bo, 0, 0);
	l->x2 = loop(t->g, OP_ADD, PH_FORWARD, IN(y[0], x));
	layernorm(t, l->x2, l->s2, l->b2, y);
	l->ln2 = y[0];
	l->mean2 = y[1];
	l->rstd2 = y[2];
	l->h = matmul(t, PH_FORWARD, l->ln2, l->wfc, l->bfc, 0, 0);
	l->a = loop(t->g, OP_GELU, PH_FORWARD, IN(l->h));
	y[0] = matmul(t, PH_FORWARD, l->a, l->wpr, l->bpr, 0, 0);
	return loop(t->g, OP_ADD, PH_FORWARD, IN(y[0], l->x2));
}

/* Gradients of y = x w + b; returns dx. */
static ValId
linear_grad(struct gpt *t, ValId x, ValId w, ValId b, ValId dy)
{
	ValId db;

	grad(t, w, matmul(t, PH_BACKWARD, x, dy, 0, 1, 0));
	db = node1(t->g, OP_REDUCE_SUM, PH_BACKWARD, IN(dy),
	           t->g->val[b].shape);
	grad(t, b, db);
	return matmul(t, PH_BACKWARD, dy, w, 0, 0, 1);
}

static ValId
norm_grad(struct gpt *t, ValId dy, ValId x, ValId s, ValId b, ValId mean,
          ValId rstd)
{
	Shape shape[] = { t->g->val[x].shape, t->g->val[s].shape,
	                  t->g->val[s].shape };
	Node *n = node(t->g, OP_LAYERNORM_GRAD, PH_BACKWARD,
	               IN(dy, x, s, mean, rstd), 3, shape);

	grad(t, s, n->out[1]);
	grad(t, b, n->out[2]);
	return n->out[0];
}

static ValId
backward(struct gpt *t, const struct layer *l, ValId dy)
{
	int64_t h = t->o.hidden, d = h / t->o.heads;
	Shape s = SHAPE(t->n, 3 * h);
	ValId x;
	Node *n;

	x = linear_grad(t, l->a, l->wpr, l->bpr, dy);
	x = loop(t->g, OP_GELU_GRAD, PH_BACKWARD, IN(l->h, x));
	x = linear_grad(t, l->ln2, l->wfc, l->bfc, x);
	x = norm_grad(t, x, l->x2, l->s2, l->b2, l->mean2, l->rstd2);
	dy = loop(t->g, OP_ADD, PH_BACKWARD, IN(x, dy));
	x = linear_grad(t, l->o2, l->wo, l->bo, dy);
	x = view(t->g, OP_RESHAPE, PH_BACKWARD, x,
	         SHAPE(t->o.batch, t->o.heads, t->o.seq, d),
	         (int64_t[]){ t->o.seq * h, d, h, 1 }, 0);
	n = node(t->g, OP_ATTENTION_GRAD, PH_BACKWARD,
	         IN(x, l->q, l->k, l->v, l->o, l->lse), 1, &s);
	n->attr.ATTENTION_GRAD.causal = 1;
	n->attr.ATTENTION_GRAD.packed = 1;
	x = n->out[0];
	x = linear_grad(t, l->ln1, l->wqkv, l->bqkv, x);
	x = norm_grad(t, x, l->x, l->s1, l->b1, l->mean1, l->rstd1);
	return loop(t->g, OP_ADD, PH_BACKWARD, IN(x, dy));
}

static void
update(struct gpt *t)
{
	Shape s = shape_scalar();
	ValId norm = node1(t->g, OP_GRAD_NORM, PH_UPDATE, t->ngrad, t->grad,
	                   s);

	for (int i = 0; i < t->ngrad; i++) {
		ValId p = t->param[i], m, v;
		Shape shape[3];
		char name[128];

		for (int k = 0; k < 3; k++)
			shape[k] = t->g->val[p].shape;
		snprintf(name, sizeof name, "adamw.m.%s", t->g->val[p].name);
		m = value(t->g, V_STATE, name, DT_F32, shape[0]);
		snprintf(name, sizeof name, "adamw.v.%s", t->g->val[p].name);
		v = value(t->g, V_STATE, name, DT_F32, shape[0]);
		t->g->val[m].state = "m";
		t->g->val[v].state = "v";
		t->g->val[m].param = t->g->val[v].param = p;
		node(t->g, OP_ADAMW, PH_UPDATE, IN(p, t->grad[i], m, v, norm),
		     3, shape);
	}
}

Graph *
gen_gpt(const struct gen_gpt *o)
{
	Graph *g = graph_new("gpt");
	struct gpt *t = arena_alloc(g->arena, sizeof *t);
	struct layer *l = arena_array(g->arena, (size_t)o->layers, sizeof *l);
	ValId ids, labels, wte, x, y[3], s, b;
	Node *n;

	t->g = g;
	t->o = *o;
	t->n = o->batch * o->seq;
	ids = value(g, V_INPUT, "ids", DT_I64, SHAPE(t->n));
	labels = value(g, V_INPUT, "labels", DT_I64, SHAPE(t->n));
	wte = value(g, V_PARAM, "wte", DT_F32, SHAPE(o->vocab, o->hidden));
	x = node1(g, OP_GATHER, PH_FORWARD, IN(wte, ids),
	          SHAPE(t->n, o->hidden));
	for (int64_t i = 0; i < o->layers; i++)
		x = forward(t, &l[i], i, x);
	s = param(t, "lnf.s", o->layers, SHAPE(o->hidden));
	b = param(t, "lnf.b", o->layers, SHAPE(o->hidden));
	layernorm(t, x, s, b, y);
	Shape shape[] = { shape_scalar(), g->val[x].shape, g->val[wte].shape };

	n = node(g, OP_CLASSIFIER, PH_BACKWARD, IN(y[0], wte, labels), 3,
	         shape);
	g->loss = n->out[0];
	g->val[g->loss].output = true;
	ValId dx = n->out[1], dw = n->out[2];

	dx = norm_grad(t, dx, x, s, b, y[1], y[2]);
	for (int64_t i = o->layers - 1; i >= 0; i--)
		dx = backward(t, &l[i], dx);
	n = node(g, OP_SCATTER_ADD, PH_BACKWARD, IN(ids, dx, dw), 1,
	         &g->val[wte].shape);
	grad(t, wte, n->out[0]);
	update(t);
	g->props = P_BOUND | P_STATIC | P_CANON | P_LOSS | P_BWD | P_UPD
		| P_FUSED | P_LAYOUT;
	return g;
}

/* ---- chains ---- */

Graph *
gen_chain(int layers, int64_t width)
{
	Graph *g = graph_new("chain");
	struct gpt *t = arena_alloc(g->arena, sizeof *t);
	ValId *x = arena_array(g->arena, (size_t)layers + 1, sizeof *x);
	ValId *h = arena_array(g->arena, (size_t)layers + 1, sizeof *h);
	ValId *w = arena_array(g->arena, (size_t)layers + 1, sizeof *w);
	ValId dy, dw;

	t->g = g;
	x[0] = value(g, V_INPUT, "x", DT_F32, SHAPE(width / 4, 4));
	for (int i = 0; i < layers; i++) {
		w[i] = param(t, "w", i, SHAPE(4, 4));
		h[i] = matmul(t, PH_FORWARD, x[i], w[i], 0, 0, 0);
		x[i + 1] = loop(g, OP_GELU, PH_FORWARD, IN(h[i]));
	}
	dy = node1(g, OP_CONCAT, PH_BACKWARD, IN(x[layers]),
	           g->val[x[layers]].shape);
	for (int i = layers - 1; i >= 0; i--) {
		Shape s = g->val[w[i]].shape;

		dy = loop(g, OP_GELU_GRAD, PH_BACKWARD, IN(h[i], dy));
		dw = matmul(t, PH_BACKWARD, x[i], dy, 0, 1, 0);
		g->val[dw].param = w[i];
		node(g, OP_SGD, PH_UPDATE, IN(w[i], dw), 1, &s);
		if (i > 0)
			dy = matmul(t, PH_BACKWARD, dy, w[i], 0, 0, 1);
	}
	g->props = P_BOUND | P_STATIC | P_CANON | P_LOSS | P_BWD | P_UPD
		| P_FUSED | P_LAYOUT;
	return g;
}

/* ---- random graphs ---- */

Graph *
gen_random(uint64_t seed, int nfwd)
{
	Graph *g = graph_new("random");
	ValId *f = arena_array(g->arena, (size_t)nfwd + 1, sizeof *f);
	ValId x = value(g, V_INPUT, "x", DT_F32, SHAPE(16)), dy = 0;
	int64_t size = 16;

	f[0] = x;
	for (int i = 1; i <= nfwd; i++) {
		ValId in[3] = { f[i - 1], f[gen_next(&seed) % (unsigned)i],
		                f[gen_next(&seed) % (unsigned)i] };
		int nin = 1 + (int)(gen_next(&seed) % 3);

		/* equal sizes are frequent, so that sharing bytes matters */
		if (gen_next(&seed) % 2)
			size = 16 * (1 + (int64_t)(gen_next(&seed) % 8));
		if (gen_next(&seed) % 2) {
			f[i] = node1(g, OP_CONCAT, PH_FORWARD, nin, in,
			             SHAPE(size));
		} else {
			f[i] = loop(g, OP_ADD, PH_FORWARD, 1, in);
			size = g->val[f[i]].shape.dim[0];
		}
		if (gen_next(&seed) % 4 == 0)
			f[i] = view(g, OP_RESHAPE, PH_FORWARD, f[i],
			            SHAPE(1, size), (int64_t[]){ size, 1 }, 0);
	}
	dy = node1(g, OP_CONCAT, PH_BACKWARD, IN(f[nfwd]), SHAPE(16));
	for (int i = nfwd; i >= 1; i--) {
		ValId in[4] = { dy, f[i - 1],
		                f[gen_next(&seed) % (unsigned)(nfwd + 1)] };
		int nin = 1 + (int)(gen_next(&seed) % 3);

		dy = node1(g, OP_CONCAT, PH_BACKWARD, nin, in,
		           g->val[f[i - 1]].shape);
	}
	g->val[dy].output = true;
	g->props = P_BOUND | P_STATIC | P_LOSS | P_BWD | P_LAYOUT;
	return g;
}

/* A value of a node before `end`. */
static ValId
any_result(const Graph *g, NodeId end, uint64_t *seed)
{
	return g->node[1 + gen_next(seed) % (end - 1)].out[0];
}

void
gen_weights(Graph *g, uint64_t seed)
{
	NodeId end, backward = 1;

	while (g->node[backward].phase == PH_FORWARD)
		backward++;
	/* these may lie over what forward has made */
	for (int i = 0; i < 2; i++) {
		ValId in = any_result(g, backward, &seed);

		loop(g, OP_ADD, PH_BACKWARD, 1, &in);
	}
	end = g->nnode;
	for (NodeId id = end; id-- > backward;) {
		ValId in[2] = { g->node[id].out[0],
			        any_result(g, backward, &seed) };

		if (gen_next(&seed) % 4)
			node1(g, OP_CONCAT, PH_WEIGHT, 1
			      + (int)(gen_next(&seed) % 2), in,
			      g->val[in[1]].shape);
	}
}
