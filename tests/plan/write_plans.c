/* Write plans of made-up graphs as JSON: write_plans DIR. */
#include "tests/plan/plan_test.h"
#include "passes/report/report.h"

#include <stdlib.h>

static int
write_plan(Graph *g, double pct, const char *dir, int number)
{
	struct bench b;
	char path[4096];
	FILE *out;
	int written = 0;

	bench_open(&b);
	b.opt.budget_pct = pct;
	snprintf(path, sizeof path, "%s/%d.json", dir, number);
	if (bench_run(&b, g)) {
		out = fopen(path, "w");
		assert_non_null(out);
		plan_write_json(&b.pass, b.pass.planned.plan,
			&(struct report_source){ .model = "" }, out);
		assert_false(ferror(out));
		assert_int_equal(fclose(out), 0);
		written = 1;
	} else if (b.pass.planned.plan) {
		fail_msg("the passes made a plan that replay refuses");
	}
	bench_close(&b);
	graph_free(g);
	return written;
}

int
main(int argc, char **argv)
{
	const struct gen_gpt small = { 2, 64, 2, 8, 64, 256 };
	const struct gen_gpt deep = { 6, 64, 4, 8, 64, 256 };
	int written = 0;

	if (argc != 2)
		return 2;
	for (int i = 0; i < 12; i++)
		written += write_plan(gen_random((uint64_t)i, 3 + i), 90,
		                      argv[1], i);
	for (int pct = 60; pct <= 100; pct += 20)
		written += write_plan(gen_gpt(&small), pct, argv[1], 100 + pct);
	written += write_plan(gen_gpt(&deep), 70, argv[1], 300);
	printf("%d plans\n", written);
	return written < 6;
}
