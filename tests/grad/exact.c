/* What finite differences cannot see: gradients at kinks, and that closed
 * forms of the interpreter agree with what they stand for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "tests/ref/interp.h"
#include "passes/grad/grad.h"
#include "codegen/cpu/cpu.h"
#include "ir/infer/infer.h"

static int nfault;

static void
expect(const char *what, const double *found, const double *want, int n)
{
	for (int i = 0; i < n; i++) {
		if (found != NULL
		    && fabs(found[i] - want[i]) <= 1e-9 * (1 + fabs(want[i])))
			continue;
		printf("FAIL %s[%d]: %.9g, expected %.9g\n", what, i,
		       found ? found[i] : NAN, want[i]);
		nfault++;
		return;
	}
}

struct bench {
	Graph *g;
	Diag *diag;
	struct interp *it;
};

static struct bench
start(void)
{
	return (struct bench){ graph_new("exact"), diag_new("exact", stdout),
		NULL };
}

static void
stop(struct bench *b)
{
	interp_free(b->it);
	diag_free(b->diag);
	graph_free(b->g);
}

static ValId
op(struct bench *b, Op o, int nin, const ValId *in, const Attr *a)
{
	ValId v = emit_op(b->g, b->diag, o, nin, in, a, 0);

	if (v == 0)
		exit(1);
	return v;
}

static bool
run_pass(struct bench *b)
{
	struct options opt = { .grad_accum = 1 };
	Pass p = { .target = &target_cpu, .diag = b->diag, .opt = &opt, .scratch = arena_new(),
		.keep = b->g->arena };
	bool ok = pass_autodiff(&p, b->g);

	arena_free(p.scratch);
	return ok;
}

static const double *
gradient(struct bench *b, ValId p)
{
	FOR_VALS (v, b->g)
		if (v->kind == V_TEMP && v->param == p)
			return interp_get(b->it, val_id(b->g, v));
	return NULL;
}

/* d sum(o(x)) / dx, or with a second operand y. */
static void
kink(Op o, const Attr *a, const double *x, const double *y,
     const double *dx, const double *dy, int n)
{
	struct bench b = start();
	ValId in[2] = { val_new(b.g, V_PARAM, "x", DT_F32, SHAPE(n)),
		val_new(b.g, V_PARAM, "y", DT_F32, SHAPE(n)) };
	ValId v = op(&b, o, y ? 2 : 1, in, a);
	Attr r = attr_default(OP_REDUCE_SUM);

	r.REDUCE_SUM.keepdims = 0;
	b.g->loss = op(&b, OP_REDUCE_SUM, 1, &v, &r);
	b.g->val[in[1]].frozen = y == NULL;
	if (!run_pass(&b)) {
		nfault++;
	} else {
		b.it = interp_new(b.g);
		interp_set(b.it, in[0], x);
		if (y)
			interp_set(b.it, in[1], y);
		if (!interp_run_all(b.it))
			puts(interp_error(b.it));
		expect(op_info[o].text, gradient(&b, in[0]), dx, n);
		if (y)
			expect(op_info[o].text, gradient(&b, in[1]), dy, n);
	}
	stop(&b);
}

/* d sum(o(x, bound)) / dx: a number of the model clamps. */
static void
clamp(Op o, double bound, const double *x, const double *dx, int n)
{
	struct bench b = start();
	ValId p = val_new(b.g, V_PARAM, "x", DT_F32, SHAPE(n));
	ValId c = val_scalar(b.g, DT_F32, bound), y[2];
	Attr r = attr_default(OP_REDUCE_SUM);

	/* on either side */
	y[0] = op(&b, o, 2, (ValId[]){ p, c }, NULL);
	y[1] = op(&b, o, 2, (ValId[]){ c, p }, NULL);
	y[0] = op(&b, OP_ADD, 2, y, NULL);
	r.REDUCE_SUM.keepdims = 0;
	b.g->loss = op(&b, OP_REDUCE_SUM, 1, y, &r);
	if (!run_pass(&b)) {
		nfault++;
	} else {
		b.it = interp_new(b.g);
		interp_set(b.it, p, x);
		if (!interp_run_all(b.it))
			puts(interp_error(b.it));
		expect("clamp", gradient(&b, p), dx, n);
	}
	stop(&b);
}

static void
test_kinks(void)
{
	const double x[] = { 0, -1, 2, 2 }, y[] = { 0, 1, 1, 2 };

	kink(OP_RELU, NULL, x, NULL, (double[]){ 0, 0, 1, 1 }, NULL, 4);
	kink(OP_ABS, NULL, x, NULL, (double[]){ 0, -1, 1, 1 }, NULL, 4);
	kink(OP_MAX, NULL, x, y, (double[]){ .5, 0, 1, .5 },
	     (double[]){ .5, 1, 0, .5 }, 4);
	kink(OP_MIN, NULL, x, y, (double[]){ .5, 1, 0, .5 },
	     (double[]){ .5, 0, 1, .5 }, 4);
	clamp(OP_MAX, 0, x, (double[]){ 0, 0, 2, 2 }, 4);
	clamp(OP_MIN, 2, x, (double[]){ 2, 2, 0, 0 }, 4);
	kink(OP_REDUCE_MAX, NULL, x, NULL, (double[]){ 0, 0, .5, .5 }, NULL,
	     4);
	kink(OP_REDUCE_MIN, NULL, x, NULL, (double[]){ 0, 1, 0, 0 }, NULL, 4);
	kink(OP_POW, NULL, x, (double[]){ 0, 2, 1, 0 },
	     (double[]){ 0, -2, 1, 0 }, (double[]){ 0, NAN, 0, 0 }, 1);
}

/* Known answers of Philox4x32-10 (Random123's kat_vectors). */
static void
test_philox(void)
{
	static const uint32_t zero[] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
		0x9b00dbd8 };
	struct interp_env e = { .seed = 0 };

	for (uint64_t i = 0; i < 4; i++)
		if (interp_philox(&e, 0, i) != zero[i]) {
			printf("FAIL philox word %d\n", (int)i);
			nfault++;
		}
}

static double
noise(int i)
{
	return sin(12.9898 * (i + 1)) * .8;
}

static ValId
random_input(struct bench *b, const char *name, Shape s)
{
	return val_new(b->g, V_PARAM, name, DT_F32, s);
}

static void
set_noise(struct bench *b)
{
	FOR_VALS (v, b->g) {
		int64_t n = shape_nelem(&v->shape);
		double x[1024];

		if (v->kind != V_PARAM || n > 1024)
			continue;
		for (int i = 0; i < n; i++)
			x[i] = noise(i + 17 * (int)val_id(b->g, v));
		interp_set(b->it, val_id(b->g, v), x);
	}
}

/* The packed gradient holds dq, dk and dv of each row side by side. */
static void
test_packed(void)
{
	enum { B = 2, H = 4, G = 2, T = 3, D = 2 };
	struct bench b = start();
	ValId q = random_input(&b, "q", SHAPE(B, H, T, D));
	ValId k = random_input(&b, "k", SHAPE(B, G, T, D));
	ValId v = random_input(&b, "v", SHAPE(B, G, T, D));
	ValId d = random_input(&b, "d", SHAPE(B, H, T, D)), o, lse, packed;
	ValId part[3];
	Attr a = attr_default(OP_ATTENTION);
	Node *n;
	double want[B * T * (H + 2 * G) * D];

	a.ATTENTION.causal = 1;
	o = op(&b, OP_ATTENTION, 3, (ValId[]){ q, k, v }, &a);
	lse = b.g->node[b.g->nnode - 1].out[1];
	for (int i = 0; i < 2; i++) {
		n = node_new(b.g, OP_ATTENTION_GRAD, 6,
		             (ValId[]){ d, q, k, v, o, lse }, i ? 1 : 3, 0);
		n->attr.ATTENTION_GRAD.causal = 1;
		n->attr.ATTENTION_GRAD.packed = i;
		if (!shape_infer(b.g, b.diag, n))
			exit(1);
		if (i == 0)
			memcpy(part, n->out, sizeof part);
	}
	packed = b.g->node[b.g->nnode - 1].out[0];
	b.it = interp_new(b.g);
	set_noise(&b);
	if (!interp_run_all(b.it))
		puts(interp_error(b.it));
	for (int i = 0; i < B * T; i++)
		for (int h = 0; h < H + 2 * G; h++) {
			int p = h < H ? 0 : h < H + G ? 1 : 2;
			int head = p == 0 ? h : p == 1 ? h - H : h - H - G;
			int heads = p == 0 ? H : G;
			const double *from = interp_get(b.it, part[p]) + ((i
			    / T * heads + head) * T + i % T) * D;

			memcpy(want + (i * (H + 2 * G) + h) * D, from,
			       D * sizeof *want);
		}
	expect("packed", interp_get(b.it, packed), want, 
	       (int)(sizeof want / sizeof *want));
	stop(&b);
}

/* classifier is matmul, sce and their gradients at once. */
static void
test_classifier(bool tb, bool bias)
{
	enum { N = 5, K = 3, V = 4 };
	static const double labels[] = { 1, -100, 3, 0, 3 };
	struct bench b = start();
	ValId x = random_input(&b, "x", SHAPE(N, K));
	ValId w = random_input(&b, "w", tb ? SHAPE(V, K) : SHAPE(K, V));
	ValId c = random_input(&b, "c", SHAPE(V)), z, loss[2];
	ValId y = val_new(b.g, V_INPUT, "labels", DT_I64, SHAPE(N));
	ValId out[4] = { 0 };
	Attr a = attr_default(OP_MATMUL);
	Node *n;

	n = node_new(b.g, OP_CLASSIFIER, bias ? 4 : 3,
	             (ValId[]){ x, w, y, c }, bias ? 4 : 3, 0);
	n->attr.CLASSIFIER.tb = tb;
	n->attr.CLASSIFIER.ignore = -100;
	n->attr.CLASSIFIER.chunk = 2;
	memcpy(out, n->out, (size_t)n->nout * sizeof *out);
	if (!shape_infer(b.g, b.diag, n))
		exit(1);
	a.MATMUL.tb = tb;
	z = op(&b, OP_MATMUL, bias ? 3 : 2, (ValId[]){ x, w, c }, &a);
	a = attr_default(OP_SCE);
	a.SCE.ignore = -100;
	b.g->loss = op(&b, OP_SCE, 2, (ValId[]){ z, y }, &a);
	loss[0] = out[0];
	loss[1] = b.g->loss;
	b.g->val[c].frozen = !bias;
	if (!run_pass(&b)) {
		nfault++;
		stop(&b);
		return;
	}
	b.it = interp_new(b.g);
	set_noise(&b);
	interp_set(b.it, y, labels);
	if (!interp_run_all(b.it))
		puts(interp_error(b.it));
	expect("classifier loss", interp_get(b.it, loss[0]),
	       interp_get(b.it, loss[1]), 1);
	expect("classifier dx", interp_get(b.it, out[1]), gradient(&b, x),
	       N * K);
	expect("classifier dw", interp_get(b.it, out[2]), gradient(&b, w),
	       V * K);
	if (bias)
		expect("classifier dbias", interp_get(b.it, out[3]),
		       gradient(&b, c), V);
	stop(&b);
}

int
main(void)
{
	test_kinks();
	test_philox();
	test_packed();
	for (int i = 0; i < 4; i++)
		test_classifier(i & 1, i >> 1);
	printf("%s\n", nfault ? "failed" : "ok");
	return nfault > 0;
}
