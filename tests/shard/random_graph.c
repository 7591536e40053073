/* Random graphs of the ops that models are made of. */
#include "tests/shard/random_graph.h"
#include "ir/infer/infer.h"
#include "ir/verify/verify.h"

#include <string.h>

enum { KEPT = 8 };

struct maker {
	Graph *g;
	Diag *d;
	uint32_t state;
	int64_t b, s, h, heads;         /* batch, sequence, width */
	int64_t below;
	ValId kept[KEPT];               /* [b,s,h], for later readers */
	int nkept;
	int64_t stream;
};

int
random_below(uint32_t *state, int n)
{
	*state = *state * 1664525u + 1013904223u;
	return (int)((uint64_t)(*state >> 8) * (uint64_t)n >> 24);
}

static int
pick(struct maker *m, int n)
{
	return random_below(&m->state, n);
}

static ValId
op(struct maker *m, Op o, int nin, const ValId *in, const Attr *a)
{
	return emit_op(m->g, m->d, o, nin, in, a, 0);
}

static ValId
param(struct maker *m, Shape s)
{
	return val_new(m->g, V_PARAM, "w", DT_F32, s);
}

static ValId
reshape(struct maker *m, ValId x, Shape to)
{
	Attr a = attr_reshape(&to);

	return op(m, OP_RESHAPE, 1, &x, &a);
}

static int64_t
last(const struct maker *m, ValId x)
{
	const Shape *s = &m->g->val[x].shape;

	return s->dim[s->rank - 1];
}

/* [b,s,k] to [b,s,n]. */
static ValId
linear(struct maker *m, ValId x, int64_t n)
{
	int64_t k = last(m, x);
	Attr a = attr_default(OP_MATMUL);
	ValId in[3] = { reshape(m, x, SHAPE(m->b * m->s, k)) };
	int nin = 2 + pick(m, 2);

	a.MATMUL.tb = pick(m, 2);
	in[1] = param(m, a.MATMUL.tb ? SHAPE(n, k) : SHAPE(k, n));
	if (nin == 3)
		in[2] = param(m, SHAPE(n));
	return reshape(m, op(m, OP_MATMUL, nin, in, &a), SHAPE(m->b, m->s, n));
}

static ValId
norm(struct maker *m, ValId x)
{
	int64_t k = last(m, x);
	bool rms = pick(m, 2);
	Attr a = attr_default(rms ? OP_RMSNORM : OP_LAYERNORM);
	ValId in[3] = { x, param(m, SHAPE(k)) };

	if (!rms)
		in[2] = param(m, SHAPE(k));
	*attr_int_of(rms ? OP_RMSNORM : OP_LAYERNORM, &a, "axis") = 2;
	/* rows that are all but constant would magnify rounding errors */
	if (rms)
		a.RMSNORM.eps = 0.01;
	else
		a.LAYERNORM.eps = 0.01;
	return op(m, rms ? OP_RMSNORM : OP_LAYERNORM, rms ? 2 : 3, in, &a);
}

static ValId
unary(struct maker *m, ValId x)
{
	static const Op some[] = { OP_GELU, OP_TANH, OP_SILU, OP_RELU,
		OP_SIGMOID, OP_NEG };
	Attr a = attr_default(OP_DROPOUT);

	if (pick(m, 3))
		return op(m, some[pick(m, 6)], 1, &x, NULL);
	a.DROPOUT.ratio = 0.25;
	a.DROPOUT.stream = ++m->stream;
	return op(m, OP_DROPOUT, 1, &x, &a);
}

static ValId
cut_out(struct maker *m, ValId x, int64_t start, int64_t n)
{
	Node *s = node_new(m->g, OP_SLICE, 1, &x, 1, 0);
	Val *v = &m->g->val[s->out[0]];

	s->attr.SLICE.start = (IntList){ 3, { 0, 0, start } };
	s->attr.SLICE.step = (IntList){ 3, { 1, 1, 1 } };
	v->dt = DT_F32;
	v->shape = SHAPE(m->b, m->s, n);
	return shape_infer(m->g, m->d, s) ? s->out[0] : 0;
}

/* [b,s,n d] to [b,n,s,d]. */
static ValId
split_heads(struct maker *m, ValId x, int64_t n)
{
	int64_t d = last(m, x) / n;
	Attr a = attr_default(OP_TRANSPOSE);

	a.TRANSPOSE.perm = (IntList){ 4, { 0, 2, 1, 3 } };
	x = reshape(m, x, SHAPE(m->b, m->s, n, d));
	return op(m, OP_TRANSPOSE, 1, &x, &a);
}

static ValId
soft(struct maker *m, const ValId in[3])
{
	Attr a = attr_default(OP_TRANSPOSE);
	ValId p[2] = { in[0], in[1] };

	a.TRANSPOSE.perm = (IntList){ 4, { 0, 1, 3, 2 } };
	p[1] = op(m, OP_TRANSPOSE, 1, &p[1], &a);
	p[0] = op(m, OP_MATMUL, 2, p, NULL);
	a = attr_default(OP_SOFTMAX);
	a.SOFTMAX.axis = 3;
	p[0] = op(m, OP_SOFTMAX, 1, p, &a);
	p[1] = in[2];
	return op(m, OP_MATMUL, 2, p, NULL);
}

static ValId
attention(struct maker *m, ValId x)
{
	int64_t h = m->h, groups = pick(m, 2) ? m->heads
		: 1 + pick(m, 2) * (m->heads / 2 - 1), kv;
	Attr a = attr_default(OP_ATTENTION), t = attr_default(OP_TRANSPOSE);
	ValId in[3], y;

	kv = h / m->heads * groups;
	if (pick(m, 2)) {
		ValId qkv = linear(m, x, h + 2 * kv);

		in[0] = cut_out(m, qkv, 0, h);
		in[1] = cut_out(m, qkv, h, kv);
		in[2] = cut_out(m, qkv, h + kv, kv);
	} else {
		in[0] = linear(m, x, h);
		in[1] = linear(m, x, kv);
		in[2] = linear(m, x, kv);
	}
	in[0] = split_heads(m, in[0], m->heads);
	in[1] = split_heads(m, in[1], groups);
	in[2] = split_heads(m, in[2], groups);
	if (groups == m->heads && pick(m, 2)) {
		y = soft(m, in);
	} else {
		a.ATTENTION.scale = 0.4;
		a.ATTENTION.causal = pick(m, 2);
		if (pick(m, 2)) {
			a.ATTENTION.ratio = 0.2;
			a.ATTENTION.stream = ++m->stream;
		}
		y = op(m, OP_ATTENTION, 3, in, &a);
	}
	t.TRANSPOSE.perm = (IntList){ 4, { 0, 2, 1, 3 } };
	y = op(m, OP_TRANSPOSE, 1, &y, &t);
	y = reshape(m, y, SHAPE(m->b, m->s, h));
	return linear(m, y, h);
}

/* up | gate side by side, or one after the other. */
static ValId
gated(struct maker *m, ValId x)
{
	int64_t n = 4 + 4 * pick(m, 4);
	ValId in[2], both;

	if (pick(m, 2)) {
		both = linear(m, x, 2 * n);
		in[0] = cut_out(m, both, 0, n);
		in[1] = cut_out(m, both, n, n);
	} else {
		in[0] = linear(m, x, n);
		in[1] = linear(m, x, n);
	}
	in[0] = unary(m, in[0]);
	return linear(m, op(m, OP_MUL, 2, in, NULL), m->h);
}

static ValId
joined(struct maker *m, ValId x)
{
	Attr a = attr_default(OP_CONCAT);
	ValId in[2] = { linear(m, x, 4 + pick(m, 9)),
		linear(m, x, 4 + 4 * pick(m, 3)) };

	a.CONCAT.axis = 2;
	return linear(m, op(m, OP_CONCAT, 2, in, &a), m->h);
}

/* Over the sequence, as one spatial dim: whole, by groups or channel by
 * channel, behind it perhaps a norm over the batch and a pool. */
static ValId
convolved(struct maker *m, ValId x)
{
	bool back = pick(m, 2);
	Op o = back ? OP_CONV_DX : OP_CONV;
	Attr a = attr_default(o), t = attr_default(OP_TRANSPOSE);
	int64_t group = (int64_t[]){ 1, m->heads, m->h }[pick(m, 3)];
	ValId in[3];
	int nin = 2 + pick(m, 2);

	t.TRANSPOSE.perm = (IntList){ 3, { 0, 2, 1 } };
	*attr_int_of(o, &a, "group") = group;
	a.CONV.begin = a.CONV.end = (IntList){ 1, { 1 } };
	in[0] = op(m, OP_TRANSPOSE, 1, &x, &t);
	in[1] = param(m, SHAPE(m->h, m->h / group, 3));
	in[2] = nin == 3 ? param(m, SHAPE(m->h)) : 0;
	in[0] = op(m, o, nin, in, &a);
	if (pick(m, 2)) {
		in[1] = param(m, SHAPE(m->h));
		a = attr_default(OP_BATCHNORM);
		a.BATCHNORM.eps = 0.01;
		in[0] = op(m, OP_BATCHNORM, 2, in, &a);
	}
	if (pick(m, 2)) {
		a = attr_default(OP_MAXPOOL);
		a.MAXPOOL.kernel = (IntList){ 1, { 3 } };
		a.MAXPOOL.begin = a.MAXPOOL.end = (IntList){ 1, { 1 } };
		in[0] = op(m, OP_MAXPOOL, 1, in, &a);
	}
	return op(m, OP_TRANSPOSE, 1, in, &t);
}

/* Something of every row, or of all, added to it again. */
static ValId
pooled(struct maker *m, ValId x)
{
	static const Op some[] = { OP_REDUCE_SUM, OP_REDUCE_MEAN,
		OP_REDUCE_MAX };
	Op o = some[pick(m, 3)];
	Attr a = attr_default(o);
	ValId in[2] = { x };

	a.REDUCE_SUM.axes = (IntList){ 1, { pick(m, 3) } };
	in[1] = op(m, o, 1, &x, &a);
	return op(m, pick(m, 2) ? OP_ADD : OP_SUB, 2, in, NULL);
}

static ValId
scaled(struct maker *m, ValId x)
{
	static const Op some[] = { OP_MUL, OP_ADD, OP_MAX };
	ValId in[2] = { x };

	switch (pick(m, 3)) {
	case 0:
		in[1] = param(m, SHAPE(m->h));
		break;
	case 1:
		in[1] = param(m, SHAPE(1, m->s, m->h));
		break;
	default:
		in[1] = param(m, SHAPE(m->b, 1, 1));
		break;
	}
	return op(m, some[pick(m, 3)], 2, in, NULL);
}

static ValId
mixed(struct maker *m, ValId x)
{
	static const Op some[] = { OP_ADD, OP_ADD, OP_MUL };
	ValId in[2] = { x, m->kept[pick(m, m->nkept)] };

	return op(m, some[pick(m, 3)], 2, in, NULL);
}

static ValId
embedded(struct maker *m)
{
	Attr a = attr_default(OP_GATHER);
	ValId in[2] = { param(m, SHAPE(m->below, m->h)),
		val_new(m->g, V_INPUT, "ids", DT_I64, SHAPE(m->b, m->s)) };

	return op(m, OP_GATHER, 2, in, &a);
}

static ValId
one_more(struct maker *m, ValId x)
{
	switch (pick(m, 10)) {
	case 0: case 1:
		return attention(m, x);
	case 2:
		return gated(m, x);
	case 3:
		return norm(m, x);
	case 4:
		return unary(m, x);
	case 5:
		return joined(m, x);
	case 6:
		return pooled(m, x);
	case 7:
		return scaled(m, x);
	case 8:
		return convolved(m, x);
	default:
		return mixed(m, x);
	}
}

static ValId
cross_entropy(struct maker *m, ValId x)
{
	Attr a = attr_default(OP_SCE);
	ValId in[2];

	x = linear(m, x, m->below);
	in[0] = reshape(m, x, SHAPE(m->b * m->s, m->below));
	in[1] = val_new(m->g, V_INPUT, "labels", DT_I64, SHAPE(m->b * m->s));
	a.SCE.reduction = 1 + pick(m, 2);
	a.SCE.ignore = pick(m, 2) ? 2 : INT64_MIN;
	return op(m, OP_SCE, 2, in, &a);
}

static ValId
squares(struct maker *m, ValId x)
{
	Attr a = attr_default(OP_REDUCE_MEAN);
	ValId in[2] = { x, val_new(m->g, V_INPUT, "target", DT_F32,
	                           m->g->val[x].shape) };

	a.REDUCE_MEAN.keepdims = 0;
	in[0] = in[1] = op(m, OP_SUB, 2, in, NULL);
	x = op(m, OP_MUL, 2, in, NULL);
	return op(m, OP_REDUCE_MEAN, 1, &x, &a);
}

Graph *
random_graph(uint32_t seed, Diag *d, int64_t *below)
{
	struct maker m = { .g = graph_new("random"), .d = d, .state = seed };
	ValId x;
	int n;

	pick(&m, 2);
	m.b = 1 + pick(&m, 4);
	m.s = 2 + pick(&m, 4);
	m.heads = 2 + 2 * pick(&m, 3);
	m.h = m.heads * (2 + pick(&m, 3));
	*below = m.below = 8 + pick(&m, 6);
	x = embedded(&m);
	n = 3 + pick(&m, 5);
	for (int i = 0; i < n; i++) {
		m.kept[m.nkept++ % KEPT] = x;
		x = one_more(&m, x);
	}
	m.g->loss = pick(&m, 3) ? cross_entropy(&m, x) : squares(&m, x);
	m.g->val[m.g->loss].output = true;
	m.g->nstream = m.stream;
	m.g->props = graph_props(m.g);
	return m.g;
}
