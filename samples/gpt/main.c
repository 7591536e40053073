/* Writes the training graph of a GPT or LLaMA of any size as ONNX.
 *
 *     gpt --model 175B -o gpt3.onnx
 *     gpt --like llama --layers 4 --hidden 256 --heads 4 --weights -o s.onnx
 *
 * Standard operators only, mean cross entropy inside.  Weights are external
 * data: FILE.data is written with --weights and only named without, which is
 * all that planning needs.
 */
#include "config.h"
#include "wire.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct layer {
	struct model *m;
	const struct config *c;
	char in[32];                    /* prefix of names: h.3 */
};

#define DIMS(...) \
	(int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
	(const int64_t[]){ __VA_ARGS__ }

static struct name
under(const struct layer *l, const char *what)
{
	return name_of("%s.%s", l->in, what);
}

/* ---- parts ---- */

static struct name
linear(struct layer *l, const char *what, const char *x, int64_t in,
       int64_t out, bool residual)
{
	double scale = residual ? 1 / sqrt(2.0 * (double)l->c->layers) : 1;
	struct name w = name_of("%s.%s.weight", l->in, what), y;

	weight(l->m, w, DIMS(in, out), 0, (float)(0.02 * scale));
	y = op(l->m, "MatMul", under(l, what), x, w.s, NULL);
	if (is_llama(l->c))
		return y;
	w = name_of("%s.%s.bias", l->in, what);
	weight(l->m, w, DIMS(out), 0, 0);
	return op(l->m, "Add", name_of("%s.%s.biased", l->in, what), y.s, w.s,
	          NULL);
}

static struct name
dropout(struct layer *l, const char *what, const char *x)
{
	struct name ratio, on;

	if (l->c->dropout <= 0)
		return name_of("%s", x);
	ratio = const_float(l->m, (float)l->c->dropout);
	on = const_true(l->m);
	return op(l->m, "Dropout", under(l, what), x, ratio.s, on.s, NULL);
}

static struct name
layernorm(struct layer *l, const char *what, const char *x)
{
	struct name w = name_of("%s.%s.weight", l->in, what);
	struct name b = name_of("%s.%s.bias", l->in, what);

	weight(l->m, w, DIMS(l->c->hidden), 1, 0);
	weight(l->m, b, DIMS(l->c->hidden), 0, 0);
	attr_int(l->m, "axis", -1);
	attr_float(l->m, "epsilon", 1e-5f);
	return op(l->m, "LayerNormalization", under(l, what), x, w.s, b.s,
	          NULL);
}

/* As exporters write it, op by op. */
static struct name
rmsnorm(struct layer *l, const char *what, const char *x)
{
	struct model *m = l->m;
	struct name w = name_of("%s.%s.weight", l->in, what), n;

	weight(m, w, DIMS(l->c->hidden), 1, 0);
	n = op(m, "Pow", name_of("%s.%s.square", l->in, what), x,
	       const_float(m, 2).s, NULL);
	attr_int(m, "keepdims", 1);
	n = op(m, "ReduceMean", name_of("%s.%s.mean", l->in, what), n.s,
	       const_ints(m, 1, (const int64_t[]){ -1 }).s, NULL);
	n = op(m, "Add", name_of("%s.%s.eps", l->in, what), n.s,
	       const_float(m, 1e-5f).s, NULL);
	n = op(m, "Sqrt", name_of("%s.%s.sqrt", l->in, what), n.s, NULL);
	n = op(m, "Reciprocal", name_of("%s.%s.rsqrt", l->in, what), n.s, NULL);
	n = op(m, "Mul", name_of("%s.%s.unit", l->in, what), x, n.s, NULL);
	return op(m, "Mul", under(l, what), n.s, w.s, NULL);
}

static struct name
norm(struct layer *l, const char *what, const char *x)
{
	return is_llama(l->c) ? rmsnorm(l, what, x) : layernorm(l, what, x);
}

/* [b, s, n * d] -> [b, n, s, d] */
static struct name
to_heads(struct layer *l, const char *what, const char *x, int64_t n)
{
	const struct config *c = l->c;
	int64_t shape[4] = { 0, c->seq, n, c->hidden / c->heads };
	struct name r = op(l->m, "Reshape", name_of("%s.%s.rows", l->in, what),
	                   x, const_ints(l->m, 4, shape).s, NULL);

	attr_ints(l->m, "perm", DIMS(0, 2, 1, 3));
	return op(l->m, "Transpose", name_of("%s.%s.heads", l->in, what), r.s,
	          NULL);
}

/* x * cos + (-x2 | x1) * sin, x = (x1 | x2) */
static struct name
rotate(struct layer *l, const char *what, const char *x)
{
	struct model *m = l->m;
	struct name half = name_of("%s.%s.half", l->in, what), n, a;

	op_split(m, half, x, -1, 2);
	n = op(m, "Neg", name_of("%s.%s.neg", l->in, what),
	       name_of("%s.1", half.s).s, NULL);
	attr_int(m, "axis", -1);
	n = op(m, "Concat", name_of("%s.%s.turned", l->in, what), n.s,
	       name_of("%s.0", half.s).s, NULL);
	n = op(m, "Mul", name_of("%s.%s.sine", l->in, what), n.s, "rope.sin",
	       NULL);
	a = op(m, "Mul", name_of("%s.%s.cosine", l->in, what), x, "rope.cos",
	       NULL);
	return op(m, "Add", name_of("%s.%s.rotated", l->in, what), a.s, n.s,
	          NULL);
}

/* Every key head serves heads / kv_heads query heads. */
static struct name
share(struct layer *l, const char *what, const char *x)
{
	const struct config *c = l->c;
	int64_t d = c->hidden / c->heads, g = c->kv_heads, n = c->heads / g;
	struct model *m = l->m;
	struct name y;

	if (n == 1)
		return name_of("%s", x);
	y = op(m, "Unsqueeze", name_of("%s.%s.group", l->in, what), x,
	       const_ints(m, DIMS(2)).s, NULL);
	y = op(m, "Expand", name_of("%s.%s.expand", l->in, what), y.s,
	       const_ints(m, DIMS(1, g, n, c->seq, d)).s, NULL);
	return op(m, "Reshape", name_of("%s.%s.shared", l->in, what), y.s,
	          const_ints(m, DIMS(0, c->heads, c->seq, d)).s, NULL);
}

/* softmax(scale q k' + mask) v, as exporters write it out. */
static struct name
core(struct layer *l, const char *q, const char *k, const char *v)
{
	const struct config *c = l->c;
	struct model *m = l->m;
	double scale = 1 / sqrt((double)c->hidden / (double)c->heads);
	struct name x;

	attr_ints(m, "perm", DIMS(0, 1, 3, 2));
	x = op(m, "Transpose", under(l, "attn.k.t"), k, NULL);
	x = op(m, "MatMul", under(l, "attn.scores"), q, x.s, NULL);
	x = op(m, "Mul", under(l, "attn.scaled"), x.s,
	       const_float(m, (float)scale).s, NULL);
	x = op(m, "Where", under(l, "attn.masked"), "causal", x.s,
	       "hidden", NULL);
	attr_int(m, "axis", -1);
	x = op(m, "Softmax", under(l, "attn.softmax"), x.s, NULL);
	x = dropout(l, "attn.dropout", x.s);
	x = op(m, "MatMul", under(l, "attn.mix"), x.s, v, NULL);
	attr_ints(m, "perm", DIMS(0, 2, 1, 3));
	x = op(m, "Transpose", under(l, "attn.rows"), x.s, NULL);
	return op(m, "Reshape", under(l, "attn.out"), x.s,
	          const_ints(m, DIMS(0, c->seq, c->hidden)).s, NULL);
}

static struct name
attention(struct layer *l, const char *x)
{
	const struct config *c = l->c;
	int64_t d = c->hidden / c->heads, kv = c->kv_heads * d;
	struct name q, k, v;

	if (is_llama(c)) {
		q = linear(l, "attn.q", x, c->hidden, c->hidden, false);
		k = linear(l, "attn.k", x, c->hidden, kv, false);
		v = linear(l, "attn.v", x, c->hidden, kv, false);
	} else {
		q = linear(l, "attn.qkv", x, c->hidden, 3 * c->hidden, false);
		op_split(l->m, under(l, "attn.part"), q.s, -1, 3);
		q = under(l, "attn.part.0");
		k = under(l, "attn.part.1");
		v = under(l, "attn.part.2");
	}
	q = to_heads(l, "attn.q", q.s, c->heads);
	k = to_heads(l, "attn.k", k.s, c->kv_heads);
	v = to_heads(l, "attn.v", v.s, c->kv_heads);
	if (is_llama(c)) {
		q = rotate(l, "attn.q", q.s);
		k = rotate(l, "attn.k", k.s);
	}
	k = share(l, "attn.k", k.s);
	v = share(l, "attn.v", v.s);
	q = core(l, q.s, k.s, v.s);
	q = linear(l, "attn.proj", q.s, c->hidden, c->hidden, true);
	return dropout(l, "attn.drop", q.s);
}

static struct name
mlp(struct layer *l, const char *x)
{
	const struct config *c = l->c;
	struct model *m = l->m;
	struct name y, gate;

	if (is_llama(c)) {
		gate = linear(l, "mlp.gate", x, c->hidden, c->ffn, false);
		y = op(m, "Sigmoid", under(l, "mlp.sigmoid"), gate.s, NULL);
		gate = op(m, "Mul", under(l, "mlp.silu"), gate.s, y.s, NULL);
		y = linear(l, "mlp.up", x, c->hidden, c->ffn, false);
		y = op(m, "Mul", under(l, "mlp.gated"), gate.s, y.s, NULL);
	} else {
		y = linear(l, "mlp.up", x, c->hidden, c->ffn, false);
		if (!strcmp(c->activation, "gelu"))
			attr_str(m, "approximate", "tanh");
		y = op(m, !strcmp(c->activation, "gelu") ? "Gelu"
		       : !strcmp(c->activation, "relu") ? "Relu" : "Tanh",
		       under(l, "mlp.act"), y.s, NULL);
	}
	y = linear(l, "mlp.down", y.s, c->ffn, c->hidden, true);
	return dropout(l, "mlp.drop", y.s);
}

static struct name
block(struct layer *l, const char *x)
{
	struct name n = norm(l, "norm1", x), y;

	y = attention(l, n.s);
	y = op(l->m, "Add", under(l, "mid"), x, y.s, NULL);
	n = norm(l, "norm2", y.s);
	n = mlp(l, n.s);
	return op(l->m, "Add", under(l, "out"), y.s, n.s, NULL);
}

/* ---- what layers share ---- */

/* Key j is shown to query i iff j <= i. */
static void
causal_mask(struct model *m, int64_t seq)
{
	struct name pos = op(m, "Range", name_of("position"),
	                     const_int(m, 0).s, const_int(m, seq).s,
	                     const_int(m, 1).s, NULL);
	struct name row;
	struct name hidden = const_float(m, -INFINITY);

	row = op(m, "Unsqueeze", name_of("query"), pos.s,
	         const_ints(m, DIMS(1)).s, NULL);
	op(m, "GreaterOrEqual", name_of("causal"), row.s, pos.s, NULL);
	op(m, "Identity", name_of("hidden"), hidden.s, NULL);
}

/* Angle of position p in channel pair i: p / 10000 ^ (2 i / d). */
static void
rope(struct model *m, int64_t d)
{
	struct name i, a;

	i = op(m, "Range", name_of("rope.channel"), const_int(m, 0).s,
	       const_int(m, d).s, const_int(m, 2).s, NULL);
	attr_int(m, "to", 1);
	i = op(m, "Cast", name_of("rope.channel.f"), i.s, NULL);
	i = op(m, "Mul", name_of("rope.exponent"), i.s,
	       const_float(m, (float)(-1.0 / (double)d)).s, NULL);
	i = op(m, "Pow", name_of("rope.frequency"), const_float(m, 10000).s,
	       i.s, NULL);
	attr_int(m, "to", 1);
	a = op(m, "Cast", name_of("rope.position"), "query", NULL);
	a = op(m, "Mul", name_of("rope.angle"), a.s, i.s, NULL);
	attr_int(m, "axis", -1);
	a = op(m, "Concat", name_of("rope.angles"), a.s, a.s, NULL);
	op(m, "Cos", name_of("rope.cos"), a.s, NULL);
	op(m, "Sin", name_of("rope.sin"), a.s, NULL);
}

static struct name
embed(struct layer *l)
{
	const struct config *c = l->c;
	struct model *m = l->m;
	struct name x;

	weight(m, name_of("embed.token"), DIMS(c->vocab, c->hidden), 0,
	       0.02f);
	x = op(m, "Gather", name_of("embed.tokens"), "embed.token",
	       "input_ids", NULL);
	if (is_llama(c))
		return x;
	weight(m, name_of("embed.position"), DIMS(c->seq, c->hidden), 0,
	       0.02f);
	x = op(m, "Add", name_of("embed.sum"), x.s, "embed.position", NULL);
	return dropout(l, "drop", x.s);
}

/* The last product shares its weight with the embedding in a GPT. */
static void
head(struct layer *l, const char *x)
{
	const struct config *c = l->c;
	struct model *m = l->m;
	struct name y, rows;

	if (c->untied) {
		weight(m, name_of("head.weight"), DIMS(c->hidden, c->vocab),
		       0, 0.02f);
		y = op(m, "MatMul", name_of("logits"), x, "head.weight", NULL);
	} else {
		attr_ints(m, "perm", DIMS(1, 0));
		y = op(m, "Transpose", name_of("embed.t"), "embed.token",
		       NULL);
		y = op(m, "MatMul", name_of("logits"), x, y.s, NULL);
	}
	y = op(m, "Reshape", name_of("logits.rows"), y.s,
	       const_ints(m, DIMS(-1, c->vocab)).s, NULL);
	rows = const_ints(m, DIMS(-1));
	op(m, "Reshape", name_of("label.rows"), "labels", rows.s, NULL);
	attr_str(m, "reduction", "mean");
	op(m, "SoftmaxCrossEntropyLoss", name_of("loss"), y.s, "label.rows",
	   NULL);
}

static void
build(struct model *m, const struct config *c)
{
	struct layer l = { .m = m, .c = c, .in = "embed" };
	struct name x;

	graph_input(m, "input_ids", DIMS(c->batch, c->seq));
	graph_input(m, "labels", DIMS(c->batch, c->seq));
	causal_mask(m, c->seq);
	if (is_llama(c))
		rope(m, c->hidden / c->heads);
	x = embed(&l);
	for (int64_t i = 0; i < c->layers; i++) {
		snprintf(l.in, sizeof l.in, "h.%lld", (long long)i);
		x = block(&l, x.s);
	}
	snprintf(l.in, sizeof l.in, "final");
	x = norm(&l, "norm", x.s);
	head(&l, x.s);
	graph_output(m, "loss");
}

/* ---- the file ---- */

static int
fail(const char *path)
{
	fprintf(stderr, "gpt: cannot write '%s': %s\n", path, strerror(errno));
	return 1;
}

int
main(int argc, char **argv)
{
	struct config c;
	struct model m = { 0 };
	int status = config_parse(&c, argc, argv);
	char path[4096];
	const char *slash;
	FILE *out;
	bool ok;

	if (status >= 0)
		return status;
	if (snprintf(path, sizeof path, "%s.data", c.out)
	    >= (int)sizeof path)
		return config_bad("-o", c.out);
	slash = strrchr(path, '/');
	m.location = slash ? slash + 1 : path;
	m.seed = (uint64_t)c.seed;
	if (c.weights && !(m.data = fopen(path, "wb")))
		return fail(path);
	out = fopen(c.out, "wb");
	if (!out)
		return fail(c.out);
	build(&m, &c);
	ok = model_write(&m, c.like, out);
	ok &= fclose(out) == 0;
	if (m.data)
		ok &= fclose(m.data) == 0;
	if (!ok)
		return fail(c.out);
	printf("%s: %lld layers, hidden %lld, %.2f billion parameters\n",
	       c.out, (long long)c.layers, (long long)c.hidden,
	       (double)m.nparam / 1e9);
	return 0;
}
