/* ONNX operators that draw random numbers.
 *
 * Random numbers depend on ckrun's seed, the step, and the node's number in
 * the graph.  Attribute `seed` has no effect.  Inference draws as training
 * does.
 */
#include "frontend/import/node_import.h"

#include <math.h>
#include <string.h>

/* The float type an attribute names, or x's; DT_NONE after a message. */
static DType
float_type(struct importer *m, ValId x)
{
	int64_t to = attr_int(&m->r, "dtype", 0);
	DType dt = to ? onnx_dtype((int)to) : x ? m->g->val[x].dt : DT_F32;

	if (dt == DT_NONE || dtype_info[dt].cls != 'f') {
		imp_fail(m, "expected a float dtype of the result");
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
		return imp_fail(m, "the bounds must be finite");
	if (like) {
		x = unary(m, OP_SHAPE, x);
		imp_out(m, 0, imp_node(m, OP_RANDOM, &a, 1, &x));
		return true;
	}
	if (!attr_ints(&m->r, "shape", &shape) || shape.n > MAX_RANK)
		return imp_fail(m, "expected a shape of at most %d dims",
		                MAX_RANK);
	a.RANDOM.shape.n = shape.n;
	memcpy(a.RANDOM.shape.v, shape.v, (size_t)shape.n * sizeof *shape.v);
	return set_output(m, imp_node(m, OP_RANDOM, &a, 0, NULL));
}

bool
run_bernoulli(struct importer *m)
{
	Attr a = attr_default(OP_CAST);
	ValId x = imp_in(m, 0), y = unary(m, OP_BERNOULLI, x);

	attr_has(&m->r, "seed");
	a.CAST.to = attr_int(&m->r, "dtype", 0);
	if (a.CAST.to) {
		a.CAST.to = onnx_dtype((int)a.CAST.to);
		if (a.CAST.to == DT_NONE)
			return imp_fail(m, "the dtype of the result is not "
			                "supported");
		y = EMIT_NODE(m, OP_CAST, &a, y);
	}
	return set_output(m, y);
}

/* n samples of each row: the largest of logits plus Gumbel noise, n times. */
bool
run_multinomial(struct importer *m)
{
	Attr u = attr_default(OP_RANDOM), s = attr_default(OP_SHAPE);
	Attr best = attr_default(OP_ARGMAX);
	int64_t n = attr_int(&m->r, "sample_size", 1);
	DType to = onnx_dtype((int)attr_int(&m->r, "dtype", 6));
	ValId x = imp_in(m, 0), extent[3], g;

	attr_has(&m->r, "seed");
	if (n < 1 || (to != DT_I32 && to != DT_I64))
		return imp_fail(m, "sample_size %jd or its dtype is not "
		                "supported", (intmax_t)n);
	s.SHAPE.end = 1;
	extent[0] = EMIT_NODE(m, OP_SHAPE, &s, x);
	extent[1] = imp_one(m, n);
	s.SHAPE.start = 1;
	s.SHAPE.end = 2;
	extent[2] = EMIT_NODE(m, OP_SHAPE, &s, x);
	g = imp_concat(m, 0, 3, extent);
	u.RANDOM.dt = DT_F64;
	g = imp_node(m, OP_RANDOM, &u, 1, &g);
	for (int i = 0; i < 2; i++)
		g = unary(m, OP_NEG, unary(m, OP_LOG, g));
	x = imp_cast(m, x, DT_F64);
	x = binary(m, OP_UNSQUEEZE, x, imp_one(m, 1));
	best.ARGMAX.axis = 2;
	best.ARGMAX.keepdims = 0;
	g = EMIT_NODE(m, OP_ARGMAX, &best, binary(m, OP_ADD, x, g));
	return set_output(m, imp_cast(m, g, to));
}
