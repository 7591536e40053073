/* ONNX operators that draw random numbers.
 *
 * What is drawn follows from ckrun's seed, the step, and the node's number in
 * the graph; attribute `seed` is read and has no effect.  They draw in
 * inference as in training.
 */
#include "frontend/import/importer.h"

#include <math.h>
#include <string.h>

/* The float type an attribute names, or x's; DT_NONE after a message. */
static DType
float_type(struct importer *m, ValId x)
{
	int64_t to = attr_int(&m->r, "dtype", 0);
	DType dt = to ? onnx_dtype((int)to) : x ? m->g->val[x].dt : DT_F32;

	if (dt == DT_NONE || dtype_info[dt].cls != 'f') {
		imp_fail(m, "the result is of no float type");
		return DT_NONE;
	}
	return dt;
}

/* RandomUniform, RandomNormal and their Like forms. */
bool
run_random(struct importer *m)
{
	Attr a = attr_default(OP_RANDOM);
	bool like = strstr(m->n->type, "Like") != NULL;
	ValId x = like ? imp_in(m, 0) : 0;
	DType dt = float_type(m, x);
	struct attr_ints shape;

	if (dt == DT_NONE)
		return false;
	attr_has(&m->r, "seed");
	a.RANDOM.dt = dt;
	a.RANDOM.kind = strncmp(m->n->type, "RandomNormal", 12) == 0;
	a.RANDOM.a = attr_float(&m->r, a.RANDOM.kind ? "mean" : "low", 0);
	a.RANDOM.b = attr_float(&m->r, a.RANDOM.kind ? "scale" : "high", 1);
	if (!isfinite(a.RANDOM.a) || !isfinite(a.RANDOM.b))
		return imp_fail(m, "bounds are not finite");
	if (like) {
		x = EMIT_NODE(m, OP_SHAPE, NULL, x);
		imp_out(m, 0, imp_node(m, OP_RANDOM, &a, 1, &x));
		return true;
	}
	if (!attr_ints(&m->r, "shape", &shape) || shape.n > MAX_RANK)
		return imp_fail(m, "no shape of at most %d dims", MAX_RANK);
	a.RANDOM.shape.n = shape.n;
	memcpy(a.RANDOM.shape.v, shape.v, (size_t)shape.n * sizeof *shape.v);
	imp_out(m, 0, imp_node(m, OP_RANDOM, &a, 0, NULL));
	return true;
}

bool
run_bernoulli(struct importer *m)
{
	Attr a = attr_default(OP_CAST);
	ValId x = imp_in(m, 0), y = EMIT_NODE(m, OP_BERNOULLI, NULL, x);

	attr_has(&m->r, "seed");
	a.CAST.to = attr_int(&m->r, "dtype", 0);
	if (a.CAST.to) {
		a.CAST.to = onnx_dtype((int)a.CAST.to);
		if (a.CAST.to == DT_NONE)
			return imp_fail(m, "the result's type is not known");
		y = EMIT_NODE(m, OP_CAST, &a, y);
	}
	imp_out(m, 0, y);
	return true;
}

/* n samples of each row: of the logits plus Gumbel noise, the largest. */
bool
run_multinomial(struct importer *m)
{
	Attr u = attr_default(OP_RANDOM), c = attr_default(OP_CAST);
	Attr s = attr_default(OP_SHAPE), cat = attr_default(OP_CONCAT);
	Attr best = attr_default(OP_ARGMAX);
	int64_t n = attr_int(&m->r, "sample_size", 1), middle = 1;
	DType to = onnx_dtype((int)attr_int(&m->r, "dtype", 6));
	ValId x = imp_in(m, 0), extent[3], g;

	attr_has(&m->r, "seed");
	if (n < 1 || (to != DT_I32 && to != DT_I64))
		return imp_fail(m, "%jd samples", (intmax_t)n);
	s.SHAPE.end = 1;
	extent[0] = EMIT_NODE(m, OP_SHAPE, &s, x);
	extent[1] = imp_ints(m, 1, &n);
	s.SHAPE.start = 1;
	s.SHAPE.end = 2;
	extent[2] = EMIT_NODE(m, OP_SHAPE, &s, x);
	cat.CONCAT.axis = 0;
	g = imp_node(m, OP_CONCAT, &cat, 3, extent);
	u.RANDOM.dt = c.CAST.to = DT_F64;
	g = imp_node(m, OP_RANDOM, &u, 1, &g);
	for (int i = 0; i < 2; i++)
		g = EMIT_NODE(m, OP_NEG, NULL, EMIT_NODE(m, OP_LOG, NULL, g));
	x = EMIT_NODE(m, OP_CAST, &c, x);
	x = EMIT_NODE(m, OP_UNSQUEEZE, NULL, x, imp_ints(m, 1, &middle));
	best.ARGMAX.axis = 2;
	best.ARGMAX.keepdims = 0;
	c.CAST.to = to;
	g = EMIT_NODE(m, OP_ARGMAX, &best, EMIT_NODE(m, OP_ADD, NULL, x, g));
	imp_out(m, 0, EMIT_NODE(m, OP_CAST, &c, g));
	return true;
}
