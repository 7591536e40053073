/* Costs of ops against closed formulas, written down here once more: FLOPs of
 * a result and bytes that cross memory.  Whoever changes a rule changes two
 * texts. */
#include "tests/plan/plan_test.h"
#include "ir/text/text.h"
#include "passes/cost/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct cost_case {
	const char *name, *graph;       /* the last node's cost */
	double flops, bytes;
};

#define X "input %x: f32[6,10]\n input %y: f32[6,10]\n"
#define ONE(op) op, X "%z: f32[6,10] output = " op " %x\n"
#define TWO(op) op, X "%z: f32[6,10] output = " op " %x, %y\n"
/* of 60 elements of 4 bytes each: with one and two operands */
enum { N = 60, B1 = 2 * 4 * N, B2 = 3 * 4 * N };

/* A product of m x k by k x n. */
#define PRODUCT(m, k, n) 2.0 * (m) * (k) * (n), 4.0 * ((m) * (k) + (k) * (n) \
	+ (m) * (n))

static const struct cost_case cases[] = {
	{ ONE("exp"), 15 * N, B1 }, { ONE("log"), 15 * N, B1 },
	{ ONE("sin"), 15 * N, B1 }, { ONE("cos"), 15 * N, B1 },
	{ ONE("sigmoid"), 15 * N, B1 }, { ONE("silu"), 15 * N, B1 },
	{ ONE("atan"), 25 * N, B1 }, { ONE("tanh"), 25 * N, B1 },
	{ ONE("erf"), 25 * N, B1 }, { ONE("softplus"), 25 * N, B1 },
	{ ONE("gelu"), 25 * N, B1 }, { TWO("pow"), 25 * N, B2 },
	{ TWO("gelu_grad"), 35 * N, B2 }, { TWO("silu_grad"), 35 * N, B2 },
	{ TWO("add"), N, B2 }, { TWO("mul"), N, B2 }, { ONE("relu"), N, B1 },
	{ ONE("sqrt"), N, B1 },
	{ ONE("softmax"), 20 * N, B1 }, { ONE("log_softmax"), 20 * N, B1 },
	{ TWO("softmax_grad"), 8 * N, B2 },
	{ TWO("log_softmax_grad"), 20 * N, B2 },
	{ "matmul", "input %x: f32[6,10]\n input %y: f32[10,7]\n"
	  "%z: f32[6,7] output = matmul %x, %y\n", PRODUCT(6, 10, 7) },
	{ "matmul of a transpose", "input %x: f32[10,6]\n"
	  "input %y: f32[10,7]\n"
	  "%z: f32[6,7] output = matmul %x, %y {ta=1}\n", PRODUCT(6, 10, 7) },
	{ "reduce", X "%z: f32[6] output = reduce_sum %x {axes=[1], "
	  "keepdims=0}\n", N, 4 * (N + 6) },
	/* 2 x 3 heads, 5 x 5 scores of 8 numbers: two products, a softmax */
	{ "attention", "input %q: f32[2,3,5,8]\n input %k: f32[2,3,5,8]\n"
	  "input %v: f32[2,3,5,8]\n"
	  "%z: f32[2,3,5,8] output, %l: f32[2,3,5] = attention %q, %k, %v\n",
	  150 * (2 * 16 + 20), 4 * (4 * 240 + 30) },
	{ "causal attention", "input %q: f32[2,3,5,8]\n"
	  "input %k: f32[2,3,5,8]\n input %v: f32[2,3,5,8]\n"
	  "%z: f32[2,3,5,8] output, %l: f32[2,3,5] = attention %q, %k, %v "
	  "{causal=1}\n", 75 * (2 * 16 + 20), 4 * (4 * 240 + 30) },
	/* 2 images, 3 -> 4 channels, 6 x 6 windows of 3 x 3 */
	{ "conv", "input %x: f32[2,3,8,8]\n param %w: f32[4,3,3,3]\n"
	  "%z: f32[2,4,6,6] output = conv %x, %w\n",
	  2.0 * 72 * 4 * 27 + 72 * 27, 4 * (384 + 108 + 288) },
};

static Graph *
parse(const struct cost_case *c, Diag *d)
{
	char text[1024];
	int n = snprintf(text, sizeof text, "graph @f {\n%s}\n", c->graph);

	return text_parse("cost.ck", text, (size_t)n, d);
}

static void
costs_are_as_written(void **state)
{
	Diag *d = diag_new("test", stderr);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		Graph *g = parse(&cases[i], d);
		struct cost c;

		diag_flush(d);
		assert_non_null(g);
		c = node_cost(g, &g->node[g->nnode - 1]);
		if (c.flops != cases[i].flops || c.bytes != cases[i].bytes)
			fail_msg("%s: %g FLOPs, %g bytes, not %g and %g",
			         cases[i].name, c.flops, c.bytes,
			         cases[i].flops, cases[i].bytes);
		graph_free(g);
	}
	diag_free(d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
