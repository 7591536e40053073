/* Logs of runs, JSON lines or CSV, as `ckrun report` reads them. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "runtime/ckrun/run_report/history.h"

const unsigned fuzz_variants = 1;
const bool fuzz_protobuf = false;

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	struct history h = { 0 };
	struct err e = { 0 };
	ckr_status s = history_read(&h, fuzz_file(data, n), &e);

	(void)variant;
	fuzz_judge_status(s, &e);
	for (size_t i = 0; s == CKR_OK && i < h.n; i++) {
		if (i > 0 && h.row[i].step <= h.row[i - 1].step)
			fuzz_fail("row %zu: steps do not increase", i);
		for (enum series k = 0; k < NSERIES; k++)
			if (isinf(h.row[i].v[k]))
				fuzz_fail("row %zu: series %d is infinite", i,
				          (int)k);
	}
	history_free(&h);
}
