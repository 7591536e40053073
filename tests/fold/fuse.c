/* Fusion keeps what a graph computes: random graphs of element-wise nodes,
 * views and heavier nodes in two phases run through the interpreter before and
 * after `fuse` and `layout`.  Outputs must be equal to the last bit, because
 * the same operations run on the same values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "tests/ref/interp.h"
#include "ir/text/text.h"
#include "ir/infer/infer.h"
#include "ir/verify/verify.h"
#include "passes/fuse/fuse.h"
#include "codegen/cpu/cpu.h"

bool pass_fuse(Pass *, Graph *);
bool pass_layout(Pass *, Graph *);

enum { GRAPHS = 300, NODES = 40, OUTPUTS = 5 };

struct test {
	Graph *g;
	Pass pass;
	uint64_t random;
	ValId val[NODES + 8];
	int nval;
	int failed, loops, members;
};

static uint32_t
rnd(struct test *t, uint32_t n)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->random >> 33) % n;
}

/* One of the latest values, of rank 2. */
static ValId
some(struct test *t)
{
	int back = (int)rnd(t, t->nval < 8 ? (uint32_t)t->nval : 8);

	return t->val[t->nval - 1 - back];
}

static ValId
emit(struct test *t, Op op, int nin, const ValId *in, const Attr *attr)
{
	return emit_op(t->g, t->pass.diag, op, nin, in, attr, 0);
}

static ValId
view(struct test *t, ValId x)
{
	Attr a = attr_default(OP_TRANSPOSE);

	if (rnd(t, 2) || t->g->val[x].shape.dim[0] != 4) {
		a.TRANSPOSE.perm = (IntList){ 2, { 1, 0 } };
		return emit(t, OP_TRANSPOSE, 1, &x, &a);
	}
	a = attr_default(OP_RESHAPE);
	a.RESHAPE.shape = (IntList){ 2, { 8, 2 } };
	x = emit(t, OP_RESHAPE, 1, &x, &a);
	a.RESHAPE.shape = (IntList){ 2, { 4, 4 } };
	return rnd(t, 2) ? x : emit(t, OP_RESHAPE, 1, &x, &a);
}

/* A node on values of equal shape, or on one and its row. */
static ValId
grow(struct test *t)
{
	static const Op one[] = { OP_NEG, OP_EXP, OP_TANH, OP_SILU, OP_RELU };
	static const Op two[] = { OP_ADD, OP_MUL, OP_SUB, OP_ADD };
	ValId in[3] = { some(t), some(t) };
	Shape a = t->g->val[in[0]].shape;

	for (int i = 0; i < 8 && !shape_eq(&a, &t->g->val[in[1]].shape); i++)
		in[1] = some(t);
	if (!shape_eq(&a, &t->g->val[in[1]].shape))
		in[1] = in[0];
	switch (rnd(t, 9)) {
	case 0:
		return view(t, in[0]);
	case 1:
		return emit(t, OP_SOFTMAX, 1, in, NULL);
	case 2:
		if (a.dim[0] != 4)
			return emit(t, OP_COPY, 1, in, NULL);
		return emit(t, OP_MATMUL, 2, in, NULL);
	case 3:
	case 4:
		return emit(t, one[rnd(t, 5)], 1, in, NULL);
	case 5: {
		Attr r = attr_default(OP_REDUCE_SUM);
		r.REDUCE_SUM.axes = (IntList){ 1, { 1 } };
		in[1] = emit(t, OP_REDUCE_SUM, 1, in, &r);
		return emit(t, OP_MUL, 2, in, NULL);
	}
	default:
		return emit(t, two[rnd(t, 4)], 2, in, NULL);
	}
}

static void
build(struct test *t)
{
	Shape s = SHAPE(4, 4);

	t->nval = 0;
	for (int i = 0; i < 3; i++)
		t->val[t->nval++] = val_new(t->g, V_INPUT, NULL, DT_F32, s);
	int n = 5 + (int)rnd(t, NODES - 5);
	uint32_t half = 0;
	for (int i = 0; i < n; i++) {
		if (i == n / 2)
			half = t->g->nnode;
		ValId v = grow(t);
		t->val[t->nval++] = v;
	}
	for (NodeId id = half; id && id < t->g->nnode; id++)
		t->g->node[id].phase = PH_BACKWARD;
	for (int i = 0; i < OUTPUTS; i++)
		t->g->val[some(t)].output = true;
}

static struct interp *
run(struct test *t, const Graph *g)
{
	struct interp *ip = interp_new(g);
	double x[16];

	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 16; i++)
			x[i] = (double)((i * 7 + k * 5) % 11) / 8 - 0.5;
		interp_set(ip, t->val[k], x);
	}
	if (!interp_run_all(ip)) {
		printf("interpreter: %s\n", interp_error(ip));
		t->failed++;
	}
	return ip;
}

static void
compare(struct test *t, const Graph *before, struct interp *a,
        struct interp *b)
{
	for (ValId v = 1; v < before->nval; v++) {
		if (!before->val[v].output)
			continue;
		const double *x = interp_get(a, v), *y = interp_get(b, v);
		size_t n = (size_t)val_nelem(&before->val[v]);
		if (!x || !y || memcmp(x, y, n * sizeof *x) != 0) {
			printf("output '%s' differs\n", before->val[v].name);
			t->failed++;
		}
	}
}

static void
check(struct test *t)
{
	Graph *before = graph_clone(t->g);
	struct interp *a = run(t, before);

	if (!pass_fuse(&t->pass, t->g) || !pass_layout(&t->pass, t->g)
	    || !graph_verify(t->g, t->pass.diag)) {
		t->failed++;
	} else {
		struct interp *b = run(t, t->g);
		compare(t, before, a, b);
		interp_free(b);
	}
	FOR_NODES (n, t->g) {
		if (n->op == OP_LOOP) {
			t->loops++;
			t->members += n->body->nop;
		} else if (op_info[n->op].flags & F_EW && n->op != OP_COPY) {
			printf("%s outside a loop\n", op_info[n->op].text);
			t->failed++;
		}
	}
	if (t->failed) {
		text_print(before, stdout);
		text_print(t->g, stdout);
	}
	interp_free(a);
	graph_free(before);
}

int
main(void)
{
	struct options opt = { .fold_limit = 1 << 20 };
	struct test t = { .random = 3 };

	t.pass = (Pass){ .target = &target_cpu, .diag = diag_new("fuse", stderr), .opt = &opt,
	                 .scratch = arena_new(), .keep = arena_new() };
	for (int i = 0; i < GRAPHS && !t.failed; i++) {
		t.g = graph_new("t");
		build(&t);
		check(&t);
		graph_free(t.g);
	}
	/* if nothing were fused, nothing would be tested */
	if (t.members < t.loops + t.loops / 4) {
		printf("hardly anything was fused\n");
		t.failed++;
	}
	printf("%d loops of %d ops, %d failures\n", t.loops, t.members,
	       t.failed);
	arena_free(t.pass.scratch);
	arena_free(t.pass.keep);
	diag_free(t.pass.diag);
	return t.failed != 0;
}
