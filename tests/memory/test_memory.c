/* The account of memory and FLOPs on graphs small enough to reckon by hand. */
#include "tests/memory/test_memory.h"

#include "passes/report/step_report.h"
#include "ir/text/text.h"
#include "passes/explore/explore.h"
#include "codegen/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
	Diag *diag;
	struct options opt;
	Pass pass;
	Graph *g;
	struct memory_report *r;
};

static void
plan(struct fixture *f, const char *text)
{
	f->diag = diag_new("t", stderr);
	f->opt.optimizer = OPT_SGD;
	f->opt.grad_accum = 1;
	f->opt.budget_bytes = -1;
	f->opt.fused_attention = true;
	f->opt.threads = 1;
	f->opt.fold_limit = 1 << 20;
	f->pass = (Pass){ .target = &target_cpu, .diag = f->diag,
	                  .opt = &f->opt,
	                  .keep = arena_new() };
	f->g = text_parse("t.ck", text, strlen(text), f->diag);
	assert_non_null(f->g);
	assert_true(explore(&f->pass, f->g, NULL, NULL));
	f->r = memory_report_new(&f->pass, f->pass.planned.plan, f->pass.keep);
	assert_non_null(f->r);
}

static void
end(struct fixture *f)
{
	graph_free(f->pass.planned.reference);
	graph_free(f->g);
	arena_free(f->pass.keep);
	diag_flush(f->diag);
	diag_free(f->diag);
}

/* Every byte that is saved stands in exactly one row. */
static void
adds_up(const struct fixture *f)
{
	int64_t sum = f->r->outside, rows = 0;

	for (int32_t i = 0; i < f->r->seg.nlayer; i++)
		sum += f->r->layer[i] + f->r->stats[i];
	for (int64_t i = 0; i < f->r->nsaved; i++)
		rows += f->r->saved[i].bytes;
	assert_int_equal(sum, f->pass.planned.plan->sum.saved);
	assert_int_equal(rows, f->pass.planned.plan->sum.saved);
}

static const struct saved *
row(const struct fixture *f, const char *name)
{
	for (int64_t i = 0; i < f->r->nsaved; i++)
		if (!strcmp(f->r->saved[i].name, name))
			return &f->r->saved[i];
	fail_msg("no row for '%s'", name);
	return NULL;
}

/* ---- no layers: two products and a GELU ---- */

static const char small[] =
	"graph @small {\n"
	"	input %x: f32[32,16]\n"
	"	input %t: i64[32]\n"
	"	param %w1: f32[16,64]\n"
	"	param %b1: f32[64]\n"
	"	param %w2: f32[64,8]\n"
	"	%h = matmul %x, %w1, %b1\n"
	"	%a = gelu %h {tanh=1}\n"
	"	%y = matmul %a, %w2\n"
	"	%l output, %s, %d = sce %y, %t\n"
	"	loss %l\n"
	"}\n";

static void
rows_of_a_small_graph(void **state)
{
	struct fixture f = { 0 };

	(void)state;
	plan(&f, small);
	/* gelu's gradient reads its input, that of w2 its output */
	assert_int_equal(f.r->nsaved, 2);
	assert_int_equal(row(&f, "h")->bytes, 32 * 64 * 4);
	assert_string_equal(row(&f, "h")->reader, "loop");
	assert_int_equal(row(&f, "a")->bytes, 32 * 64 * 4);
	assert_string_equal(row(&f, "a")->reader, "classifier");
	assert_int_equal(f.r->seg.nlayer, 0);
	assert_int_equal(f.r->param, 16 * 64 + 64 + 64 * 8);
	adds_up(&f);
	end(&f);
}

static void
flops_of_a_small_graph(void **state)
{
	/* x w1 once more for the gradient of w1, x itself needs none; a w2
	 * twice more */
	const double first = 2. * 32 * 16 * 64, second = 2. * 32 * 64 * 8;
	struct fixture f = { 0 };
	struct flop_report p;

	(void)state;
	plan(&f, small);
	p = flop_report(&f.pass, f.pass.planned.plan, f.r);
	assert_true(p.model == 2 * first + 3 * second);
	assert_true(p.causal == p.model);
	assert_true(p.hardware == p.model);
	assert_true(p.paper_model == 0);
	assert_true(p.all > p.hardware);
	end(&f);
}

/* Recomputing a costs no product, recomputing h costs the first one. */
static void
flops_with_recomputation(void **state)
{
	static const char *const globs[] = { "h", "a" };
	const double first = 2. * 32 * 16 * 64;
	struct fixture f = { 0 };
	struct flop_report p;

	(void)state;
	f.opt.recompute = (struct name_list){ 2, globs };
	plan(&f, small);
	p = flop_report(&f.pass, f.pass.planned.plan, f.r);
	assert_true(p.hardware == p.model + first);
	assert_int_equal(f.r->nsaved, 0);
	end(&f);
}

/* ---- attention: the causal half, the scores made twice ---- */

static void
flops_of_attention(void **state)
{
	static const char text[] =
		"graph @a {\n"
		"	param %q: f32[2,4,64,16]\n"
		"	param %k: f32[2,4,64,16]\n"
		"	param %v: f32[2,4,64,16]\n"
		"	%o, %lse = attention %q, %k, %v "
		"{scale=0.25, causal=1}\n"
		"	%l output = reduce_sum %o {axes=[0,1,2,3], "
		"keepdims=0}\n"
		"	loss %l\n"
		"}\n";
	const double product = 2. * 2 * 4 * 64 * 64 * 16;
	struct fixture f = { 0 };
	struct flop_report p;

	(void)state;
	plan(&f, text);
	p = flop_report(&f.pass, f.pass.planned.plan, f.r);
	/* two forward, four backward; in backward scores are made again */
	assert_true(p.model == 6 * product);
	assert_true(p.causal == 3 * product);
	assert_true(p.hardware == 3.5 * product);
	end(&f);
}

/* ---- layers ---- */

/* `n` layers x + relu(x a) b, on values called P0, P1, ... */
static char *
layers(char *s, const char *p, int n)
{
	for (int i = 0; i < n; i++)
		s += sprintf(s, "	%%%sh%d = matmul %%%s%d, %%a\n"
		             "	%%%sr%d = relu %%%sh%d\n"
		             "	%%%sm%d = matmul %%%sr%d, %%b\n"
		             "	%%%s%d = add %%%s%d, %%%sm%d\n", p, i, p, i,
		             p, i, p, i, p, i, p, i, p, i + 1, p, i, p, i);
	return s;
}

static char *
head(char *s)
{
	return s + sprintf(s, "graph @g {\n"
	                   "	input %%in: f32[32,16]\n"
	                   "	param %%e: f32[16,16]\n"
	                   "	param %%a: f32[16,64]\n"
	                   "	param %%b: f32[64,16]\n"
	                   "	%%x0 = matmul %%in, %%e\n");
}

static void
tail(char *s, const char *last)
{
	sprintf(s, "	%%z = mul %%%s, %%%s\n"
	        "	%%l output = reduce_sum %%z {axes=[0,1], keepdims=0}\n"
	        "	loss %%l\n"
	        "}\n", last, last);
}

static void
equal_layers(void **state)
{
	const int64_t x = 32 * 16 * 4, r = 32 * 64 * 4;

	(void)state;
	for (int n = 2; n <= 5; n++) {
		struct fixture f = { 0 };
		char text[4096], last[16], *s;

		sprintf(last, "x%d", n);
		s = layers(head(text), "x", n);
		tail(s, last);
		plan(&f, text);
		assert_int_equal(f.r->seg.nlayer, n);
		/* the input of a layer, and what relu gives */
		for (int i = 0; i < n; i++) {
			assert_int_equal(f.r->layer[i], x + r);
		}
		assert_int_equal(f.r->unit, 32 * 16);
		adds_up(&f);
		end(&f);
	}
}

static void
stages_of_a_pipeline(void **state)
{
	const double x = 32 * 16 * 4, r = 32 * 64 * 4, w = 2 * 16 * 64 * 4;
	struct fixture f = { .opt = { .pp = 2, .interleave = 2,
	                              .microbatches = 8 } };
	char text[4096], *s;
	struct pipeline_estimate l;

	(void)state;
	s = layers(head(text), "x", 4);
	tail(s, "x4");
	plan(&f, text);
	l = pipeline_report(&f.pass, f.pass.planned.plan, f.r, f.pass.keep);
	assert_int_equal(l.n, 2);
	assert_true(l.stage[0].layers == 2);
	/* warm-up 2 (p - 1) + (m - 1) p parts, and one more, of m */
	assert_true(l.stage[0].in_flight == 2.5);
	assert_true(l.stage[1].in_flight == 1.5);
	assert_true(l.stage[0].saved == 2.5 * 2 * (x + r));
	/* the last layer's output, and the loss in its 64 bytes */
	assert_true(l.stage[1].saved == 1.5 * 2 * (x + r) + x + 64);
	/* layers share their weights here: each reads all of them */
	assert_true(l.stage[0].weights == 2 * (2 * w + 16 * 16 * 4));
	assert_true(l.stage[0].keep_all == -1);
	end(&f);
}

/* Decoder layers read the encoder's end: two activations cross them, so that
 * only the encoder's layers are seen as such; nothing is lost. */
static void
encoder_and_decoder(void **state)
{
	struct fixture f = { 0 };
	char text[8192], *s = layers(head(text), "x", 3);

	(void)state;
	s += sprintf(s, "	%%y0 = mul %%in, %%x3\n");
	for (int i = 0; i < 3; i++)
		s += sprintf(s, "	%%yh%d = matmul %%y%d, %%a\n"
		             "	%%yr%d = relu %%yh%d\n"
		             "	%%ym%d = matmul %%yr%d, %%b\n"
		             "	%%yc%d = mul %%ym%d, %%x3\n"
		             "	%%y%d = add %%y%d, %%yc%d\n", i, i, i, i, i,
		             i, i, i, i + 1, i, i);
	tail(s, "y3");
	plan(&f, text);
	assert_int_equal(f.r->seg.nlayer, 3);
	assert_int_equal(row(&f, "x1")->layer, 1);
	assert_int_equal(row(&f, "yr1")->layer, -1);
	adds_up(&f);
	end(&f);
}

/* Extents change from convolution to convolution. */
static void
cnn_without_layers(void **state)
{
	static const char text[] =
		"graph @cnn {\n"
		"	input %x: f32[2,3,16,16]\n"
		"	input %t: i64[2]\n"
		"	param %w1: f32[8,3,3,3]\n"
		"	param %w2: f32[16,8,3,3]\n"
		"	param %w3: f32[16,10]\n"
		"	%c1 = conv %x, %w1 {stride=[1,1], dilation=[1,1], "
		"begin=[1,1], end=[1,1]}\n"
		"	%r1 = relu %c1\n"
		"	%c2 = conv %r1, %w2 {stride=[2,2], dilation=[1,1], "
		"begin=[1,1], end=[1,1]}\n"
		"	%r2 = relu %c2\n"
		"	%m = reduce_mean %r2 {axes=[2,3], keepdims=0}\n"
		"	%y = matmul %m, %w3\n"
		"	%l output, %s, %d = sce %y, %t\n"
		"	loss %l\n"
		"}\n";
	const double one = 2. * 2 * 8 * 16 * 16 * 27;
	const double two = 2. * 2 * 16 * 8 * 8 * 72, end_ = 2. * 2 * 16 * 10;
	struct fixture f = { 0 };
	struct flop_report p;

	(void)state;
	plan(&f, text);
	assert_int_equal(f.r->seg.nlayer, 0);
	assert_int_equal(row(&f, "r1")->bytes, 2 * 8 * 16 * 16 * 4);
	assert_int_equal(row(&f, "r2")->bytes, 2 * 16 * 8 * 8 * 4);
	assert_int_equal(row(&f, "m")->bytes, 2 * 16 * 4);
	assert_int_equal(f.r->outside, f.pass.planned.plan->sum.saved);
	adds_up(&f);
	p = flop_report(&f.pass, f.pass.planned.plan, f.r);
	assert_true(p.model == 2 * one + 3 * two + 3 * end_);
	end(&f);
}

/* What 1 % buys never saves more bytes than keep-everything, within time. */
static void
cheap_recomputation(void **state)
{
	struct fixture f = { .opt = { .account = true } };
	char text[4096], *s = layers(head(text), "x", 4);
	const struct one_percent *c;

	(void)state;
	tail(s, "x4");
	plan(&f, text);
	c = f.pass.planned.one_percent;
	assert_non_null(c);
	assert_true(c->extra <= 0.01);
	assert_int_equal(c->nlayer, 4);
	for (int i = 0; i < 4; i++)
		assert_true(c->layer[i] <= f.r->layer[i]);
	end(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_small_graph),
		cmocka_unit_test(flops_of_a_small_graph),
		cmocka_unit_test(flops_with_recomputation),
		cmocka_unit_test(flops_of_attention),
		cmocka_unit_test(equal_layers),
		cmocka_unit_test(stages_of_a_pipeline),
		cmocka_unit_test(encoder_and_decoder),
		cmocka_unit_test(cnn_without_layers),
		cmocka_unit_test(cheap_recomputation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + test_cost()
		+ test_device();
}
