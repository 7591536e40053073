/* Weights and checkpoints of a small model: what is taken must leave a model
 * that still steps, what is refused must leave it as it was. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ckr.h"

enum { WEIGHTS, RESUME, VARIANTS };

const unsigned fuzz_variants = VARIANTS;
const bool fuzz_protobuf = false;

static ckr_ctx *
model(void)
{
	static ckr_ctx *c;
	struct ckr_options opt = { .weights = "", .blas = "own", .seed = 5 };

	if (!c && ckr_open(&c, FUZZ_MODEL, &opt) != CKR_OK)
		fuzz_fail("%s", ckr_error(c));
	return c;
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	static const float zero[12];
	const char *path = fuzz_file(data, n);
	ckr_ctx *c = model();
	ckr_status s;
	struct err e = { 0 };
	double loss;
	float w[6];

	ckr_set(c, "w", zero, 6 * sizeof *zero);
	ckr_set(c, "b", zero, 2 * sizeof *zero);
	ckr_set(c, "x", zero, 12 * sizeof *zero);
	ckr_set(c, "target", zero, 8 * sizeof *zero);
	s = variant == RESUME ? ckr_resume(c, path)
	                      : ckr_load_weights(c, path);
	if (s == CKR_OK) {
		s = ckr_step(c, NULL, &loss);
		if (s != CKR_OK && s != CKR_ENAN)
			fuzz_fail("no step: %s", ckr_error(c));
		return;
	}
	if (ckr_get(c, "w", w, sizeof w) != CKR_OK || memcmp(w, zero, sizeof w))
		fuzz_fail("half of a file was loaded");
	snprintf(e.text, sizeof e.text, "%s", ckr_error(c));
	fuzz_judge_status(s, &e);
}
