/* Passes know no machine: a target of another alignment, with scratch memory
 * of its own and without fusions, plans and replays as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "ir/text/text.h"
#include "passes/explore/explore.h"

enum { ALIGN = 4096, SCRATCH = 3 * ALIGN };

/* Products alone want scratch memory here. */
static int64_t
toy_workspace(const Graph *g, const Node *n, int threads)
{
	(void)g;
	return n->op == OP_MATMUL ? (int64_t)threads * SCRATCH : 0;
}

static int64_t
toy_rows(int64_t rows, int64_t classes, bool half)
{
	(void)classes, (void)half;
	return rows;
}

static const struct target toy = {
	.align = ALIGN, .workspace = toy_workspace,
	.classifier_rows = toy_rows,
};

static const char text[] =
	"graph @f {\n"
	"\tinput %x: f32[32,48]\n"
	"\tinput %t: i64[32]\n"
	"\tparam %u: f32[48,64]\n"
	"\tparam %v: f32[64,64]\n"
	"\tparam %w: f32[64,10]\n"
	"\t%a = matmul %x, %u\n"
	"\t%b = gelu %a\n"
	"\t%c = matmul %b, %v\n"
	"\t%d = gelu %c\n"
	"\t%e = matmul %d, %w\n"
	"\t%loss output, %lse, %den = sce %e, %t\n"
	"}\n";

struct fixture {
	struct options opt;
	Pass pass;
	Graph *g;
};

static bool
run(struct fixture *f, const struct target *target, int64_t budget)
{
	*f = (struct fixture){
		.opt = { .optimizer = OPT_SGD, .grad_accum = 1,
		         .budget_bytes = budget, .fused_attention = true,
		         .threads = 2, .fold_limit = 1 << 20, .gap_pct = 0.1,
		         .loss = "loss" },
	};
	f->pass = (Pass){ .diag = diag_new("toy", stderr), .opt = &f->opt,
	                  .target = target, .keep = arena_new() };
	f->g = text_parse("toy.ck", text, strlen(text), f->pass.diag);
	assert_non_null(f->g);
	return explore(&f->pass, f->g, NULL, NULL);
}

static void
end(struct fixture *f)
{
	graph_free(f->pass.planned.reference);
	graph_free(f->g);
	arena_free(f->pass.keep);
	arena_free(f->pass.retired);
	diag_free(f->pass.diag);
}

static void
is_a_plan_of_the_toy(const Plan *p)
{
	assert_int_equal(p->sum.alignment, ALIGN);
	for (int64_t i = 0; i < p->ntensor; i++) {
		const struct plan_tensor *t = &p->tensor[i];

		assert_int_equal(t->bytes % ALIGN, 0);
		if (!t->resident)
			assert_int_equal(t->offset % ALIGN, 0);
	}
	for (int64_t i = 0; i < p->nstep; i++) {
		assert_string_not_equal(p->step[i].op, "classifier");
		assert_int_equal(p->step[i].workspace,
		                 strcmp(p->step[i].op, "matmul") ? 0
		                 : 2 * SCRATCH);
	}
}

static void
plans_at_every_budget(void **state)
{
	struct fixture f;
	int64_t whole, least;

	(void)state;
	assert_true(run(&f, &toy, -1));
	is_a_plan_of_the_toy(f.pass.planned.plan);
	whole = f.pass.planned.plan->sum.peak;
	end(&f);
	assert_false(run(&f, &toy, ALIGN));
	least = f.pass.planned.minimum_peak;
	assert_true(least > ALIGN && least < whole);
	end(&f);
	for (int64_t b = least; b < whole; b += (whole - least) / 4 + 1) {
		assert_true(run(&f, &toy, b));
		is_a_plan_of_the_toy(f.pass.planned.plan);
		assert_true(f.pass.planned.plan->sum.peak <= b);
		end(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_at_every_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
