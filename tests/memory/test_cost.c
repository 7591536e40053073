/* Costs of nodes: operations counted one by one, bytes added up by hand. */
#include "tests/memory/test_memory.h"

#include "passes/cost/cost.h"
#include "ir/infer/infer.h"

#include <math.h>

struct bench {
	Graph *g;
	Diag *diag;
};

static struct bench
begin(void)
{
	return (struct bench){ graph_new("cost"), diag_new("cost", stderr) };
}

static void
end(struct bench *b)
{
	diag_free(b->diag);
	graph_free(b->g);
}

static ValId
input(struct bench *b, Shape s)
{
	return val_new(b->g, V_INPUT, "x", DT_F32, s);
}

static const Node *
add(struct bench *b, Op op, int nin, const ValId *in, const Attr *a)
{
	ValId v = emit_op(b->g, b->diag, op, nin, in, a, 0);

	assert_true(v != 0);
	return &b->g->node[b->g->val[v].def];
}

static void
expect(struct bench *b, const Node *n, double flops, double product,
       double bytes)
{
	struct cost c = node_cost(b->g, n);

	if (c.flops != flops || c.product != product || c.bytes != bytes)
		fail_msg("%s: %.0f FLOPs, %.0f of products, %.0f bytes; "
		         "expected %.0f, %.0f, %.0f", op_info[n->op].text,
		         c.flops, c.product, c.bytes, flops, product, bytes);
}

/* A multiplication and an addition for each term of each sum. */
static void
products(void **state)
{
	enum { B = 2, M = 3, K = 5, N = 7 };
	struct bench b = begin();
	int64_t count = 0;

	(void)state;
	for (int i = 0; i < B * M * N; i++)
		for (int k = 0; k < K; k++)
			count += 2;
	for (int how = 0; how < 4; how++) {
		bool ta = how & 1, tb = how & 2;
		Attr a = attr_default(OP_MATMUL);
		ValId in[2] = {
			input(&b, ta ? SHAPE(B, K, M) : SHAPE(B, M, K)),
			input(&b, tb ? SHAPE(B, N, K) : SHAPE(B, K, N)) };

		a.MATMUL.ta = ta;
		a.MATMUL.tb = tb;
		expect(&b, add(&b, OP_MATMUL, 2, in, &a), (double)count,
		       (double)count, 4 * B * (M * K + K * N + M * N));
	}
	end(&b);
}

/* Each row meets one matrix; all matrices are read. */
static void
experts(void **state)
{
	enum { ROWS = 9, E = 4, K = 5, N = 7 };
	struct bench b = begin();
	ValId x = input(&b, SHAPE(ROWS, K)), dy = input(&b, SHAPE(ROWS, N));
	ValId w = input(&b, SHAPE(E, K, N));
	ValId idx = val_new(b.g, V_INPUT, "idx", DT_I64, SHAPE(ROWS));
	double flops = 2.0 * ROWS * K * N;
	double bytes = 4 * (ROWS * (K + N) + E * K * N) + 8 * ROWS;
	Attr a = attr_default(OP_EXPERT_DW);

	(void)state;
	a.EXPERT_DW.experts = E;
	expect(&b, add(&b, OP_EXPERT_MATMUL, 3, (ValId[]){ x, w, idx }, NULL),
	       flops, flops, bytes);
	expect(&b, add(&b, OP_EXPERT_DW, 3, (ValId[]){ x, dy, idx }, &a),
	       flops, flops, bytes);
	/* of one replica of three */
	a.EXPERT_DW.all = 3 * E;
	expect(&b, add(&b, OP_EXPERT_DW, 3, (ValId[]){ x, dy, idx }, &a),
	       flops / 3, flops / 3, bytes);
	a = attr_default(OP_EXPERT_MATMUL);
	a.EXPERT_MATMUL.all = 3 * E;
	expect(&b, add(&b, OP_EXPERT_MATMUL, 3, (ValId[]){ x, w, idx }, &a),
	       flops / 3, flops / 3, bytes);
	a.EXPERT_MATMUL.sent = 1;
	expect(&b, add(&b, OP_EXPERT_MATMUL, 3, (ValId[]){ x, w, idx }, &a),
	       flops, flops, bytes);
	end(&b);
}

/* Products of queries that see keys, heads that share keys or not. */
static void
attention(void **state)
{
	enum { B = 2, H = 4, G = 2, T = 6, S = 6, D = 8, E = 10 };
	struct bench b = begin();
	double pairs = B * H * T * S;

	(void)state;
	for (int causal = 0; causal < 2; causal++) {
		Attr a = attr_default(OP_ATTENTION);
		Attr d = attr_default(OP_ATTENTION_GRAD);
		ValId q = input(&b, SHAPE(B, H, T, D));
		ValId k = input(&b, SHAPE(B, G, S, D));
		ValId v = input(&b, SHAPE(B, G, S, E));
		ValId dy = input(&b, SHAPE(B, H, T, E)), lse;
		double seen = causal ? pairs / 2 : pairs;
		struct cost forward, backward;
		const Node *n;
		Node *m;

		a.ATTENTION.causal = d.ATTENTION_GRAD.causal = causal;
		n = add(&b, OP_ATTENTION, 3, (ValId[]){ q, k, v }, &a);
		forward = node_cost(b.g, n);
		lse = input(&b, SHAPE(B, H, T));
		m = node_new(b.g, OP_ATTENTION_GRAD, 6, (ValId[]){ dy, q, k, v,
		             n->out[0], lse }, 3, 0);
		m->attr = d;
		assert_true(shape_infer(b.g, b.diag, m));
		backward = node_cost(b.g, m);
		/* q k^T and p v; the first again, dy v^T, p^T dy, dp k and
		 * dp^T q */
		assert_true(forward.product == 2 * seen * (D + E));
		assert_true(backward.product == 2 * seen * (3 * D + 2 * E));
		assert_true(forward.flops == forward.product + 20 * seen);
	}
	end(&b);
}

/* Every tap of every window, counted where the padding is none. */
static void
convolutions(void **state)
{
	enum { N = 2, C = 6, O = 9, IN = 7, K = 3, OUT = 5 };
	struct bench b = begin();

	(void)state;
	for (int group = 1; group <= 3; group += 2) {
		Attr a = attr_default(OP_CONV);
		ValId in[2] = { input(&b, SHAPE(N, C, IN, IN)),
			input(&b, SHAPE(O, C / group, K, K)) };
		struct cost c;
		double taps = 0;

		a.CONV.group = group;
		c = node_cost(b.g, add(&b, OP_CONV, 2, in, &a));
		for (int y = 0; y < N * O * OUT * OUT; y++)
			taps += C / group * K * K;
		assert_true(c.product == 2 * taps);
		assert_true(c.bytes == 4.0 * (N * C * IN * IN
			+ O * (C / group) * K * K + N * O * OUT * OUT));
	}
	end(&b);
}

/* What is seen often and stored once is moved once; a number not at all. */
static void
broadcast_operands(void **state)
{
	struct bench b = begin();
	ValId x = input(&b, SHAPE(8, 6)), y = input(&b, SHAPE(8, 6));
	ValId one = val_scalar(b.g, DT_F32, 3);
	const Node *n = add(&b, OP_MUL, 2, (ValId[]){ x, y }, NULL);

	(void)state;
	expect(&b, n, 48, 0, 3 * 48 * 4);
	b.g->val[y].laid_out = true;
	b.g->val[y].stride[0] = 0;
	b.g->val[y].stride[1] = 1;
	expect(&b, n, 48, 0, (2 * 48 + 6) * 4);
	expect(&b, add(&b, OP_MUL, 2, (ValId[]){ x, one }, NULL), 48, 0,
	       2 * 48 * 4);
	end(&b);
}

/* A view is free where its bytes are its operand's. */
static void
views(void **state)
{
	struct bench b = begin();
	ValId x = input(&b, SHAPE(8, 6)), y;
	Attr a = attr_default(OP_TRANSPOSE);
	const Node *n;

	(void)state;
	a.TRANSPOSE.perm = (IntList){ 2, { 1, 0 } };
	n = add(&b, OP_TRANSPOSE, 1, &x, &a);
	y = n->out[0];
	b.g->val[y].laid_out = true;
	b.g->val[y].stride[0] = 1;
	b.g->val[y].stride[1] = 6;
	b.g->val[y].base = x;
	expect(&b, n, 0, 0, 0);
	b.g->val[y].base = 0;
	expect(&b, n, 0, 0, 2 * 48 * 4);
	end(&b);
}

int
test_cost(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(experts),
		cmocka_unit_test(attention),
		cmocka_unit_test(convolutions),
		cmocka_unit_test(broadcast_operands),
		cmocka_unit_test(views),
	};

	return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
