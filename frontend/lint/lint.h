/* Room lint: what exporters lose silently, each with its remedy.
 *
 * in      a flat model with verdicts on its weights
 * out     one line per kind of loss, and details
 * must not know its callers, compiling and `ckc inspect`
 */
#ifndef FRONTEND_LINT_LINT_H
#define FRONTEND_LINT_LINT_H

#include "frontend/params/import_options.h"
#include "frontend/onnx/flat.h"

/* A warning of one line, with lines of details. */
struct lint_warning {
	const char *text;
	int ndetail;
	const char *const *detail;
};

struct lint_report {
	struct lint_warning *at;
	int n;
	size_t cap;
};

/* Run all checks on a model with verdicts.  The report lives in the arena. */
struct lint_report lint_run(struct flat *, const struct import_options *,
                            Arena *);

/* ---- lint_contents.c: class of an initializer's contents ---- */

enum contents {
	CONTENTS_UNKNOWN,               /* external data is absent */
	CONTENTS_PLAIN,                 /* possible parameter */
	CONTENTS_MASK,                  /* huge negative numbers, or 0 and one
	                                 * other number */
	CONTENTS_SINES,                 /* sinusoidal table of positions */
	CONTENTS_STEPS,                 /* equal steps or ratios: frequencies,
	                                 * slopes, edges of bins */
	CONTENTS_COPIES,                /* equal slices along an axis other
	                                 * than the last */
	CONTENTS_STATE                  /* copies of 0 */
};

enum contents classify_contents(struct flat *, const struct flat_val *);
bool is_sinusoid_table(struct flat *, const struct flat_val *);
/* Whether matrix b is matrix a transposed.  False if all elements are equal. */
bool is_transpose_of(struct flat *, const struct flat_val *a,
                     const struct flat_val *b);
/* Whether two initializers have the same shape and contents. */
bool same_contents(struct flat *, const struct flat_val *,
                   const struct flat_val *);

#endif
