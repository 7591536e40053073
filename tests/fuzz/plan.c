#include "tests/fuzz/plan.h"

#include "frontend/driver/opts.h"
#include "tests/fuzz/fuzz.h"
#include "passes/explore/explore.h"
#include "passes/passes.h"
#include "passes/replay/replay.h"
#include "passes/report/report.h"
#include "codegen/cpu/cpu.h"

struct options
plan_options(void)
{
	char *argv[] = { "ckc", "x.onnx", "--plan-only", NULL };
	Arena *arena = arena_new();
	struct cli c;

	if (cli_parse(&c, 3, argv, arena, fuzz_null(), stderr) != CLI_GO)
		fuzz_fail("the command line is refused");
	arena_free(arena);
	c.opt.fold_limit = 1 << 20;
	c.opt.plan_sec = 0.2;
	return c.opt;
}

bool
plan_all(Graph *g, const struct options *opt, const char *passes, Diag *diag)
{
	struct dump_request none = { NULL, NULL };
	Pass p = { .target = &target_cpu, .diag = diag, .opt = opt,
	           .keep = arena_new() };
	bool ok = passes ? pass_run(&p, g, passes, NULL, &none)
		: explore(&p, g, NULL, &none);

	if (ok && p.planned.plan) {
		plan_write_json(&p, p.planned.plan,
			&(struct report_source){ .model = "" }, fuzz_null());
		plan_print_table(&p, p.planned.plan, fuzz_null());
		plan_print_memory(&p, p.planned.plan, fuzz_null());
		if (!plan_replay(p.planned.plan, diag))
			fuzz_fail("the plan does not replay: %s", fuzz_said());
	}
	graph_free(p.planned.reference);
	arena_free(p.retired);
	arena_free(p.keep);
	return ok;
}
