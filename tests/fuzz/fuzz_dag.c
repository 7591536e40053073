/* `ckc plan`: graphs of costs in JSON, and the plan file it writes. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/verb.h"

static const double budgets[] = { 1, 0.7, 0.3, 0 };

const unsigned fuzz_variants = sizeof budgets / sizeof *budgets;
const bool fuzz_protobuf = false;

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	struct cli c = { .model = fuzz_file(data, n), .opt.quiet = true,
	                 .budget = budgets[variant], .place = variant % 2 };

	c.opt.plan_sec = 0.05;
	c.json = verb_output();
	verb_try(verb_plan, &c);
}
