/* Device profiles: --device FILE. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "passes/cost/cost.h"

const unsigned fuzz_variants = 1;
const bool fuzz_protobuf = false;

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	Arena *arena = arena_new();
	Diag *diag = diag_new("ckc", fuzz_messages());
	const struct device_profile *d = device_find(fuzz_file(data, n), diag,
	                                             arena);

	(void)variant;
	fuzz_judge(d != NULL, diag_errors(diag));
	if (d && (!d->name || !isfinite(d->product_flops)
	          || d->product_flops <= 0 || d->bandwidth <= 0))
		fuzz_fail("a profile that cannot be divided by");
	if (d)
		device_json(d, arena);
	diag_free(diag);
	arena_free(arena);
}
