/* Room lint: what exporters lose silently, each with its remedy.
 *
 * in      a flat model with verdicts on its weights
 * out     one line per kind of loss, and details
 * unaware of who shows it: compiling and `ckc inspect` do
 */
#ifndef FRONTEND_LINT_LINT_H
#define FRONTEND_LINT_LINT_H

#include "frontend/params/import_options.h"
#include "frontend/onnx/flat.h"

/* One line, and further ones with all details. */
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

/* All that is found, in the arena.  The model has its verdicts. */
struct lint_report lint_run(struct flat *, const struct import_options *,
                            Arena *);

/* ---- lint_contents.c: what the contents of an initializer look like ---- */

enum contents {
	CONTENTS_UNKNOWN,               /* they lie in a file that is not read
	                                 */
	CONTENTS_PLAIN,                 /* what a parameter could hold */
	CONTENTS_MASK,                  /* huge negative numbers, or 0 and one
	                                 * other number */
	CONTENTS_SINES,                 /* of positions */
	CONTENTS_STEPS,                 /* equal steps or ratios: frequencies,
	                                 * slopes, edges of bins */
	CONTENTS_COPIES,                /* the same over and over along an axis
	                                 * that is not the last */
	CONTENTS_STATE                  /* copies of 0 */
};

enum contents classify_contents(struct flat *, const struct flat_val *);
bool is_sinusoid_table(struct flat *, const struct flat_val *);
/* Whether b is a transposed; both are matrices of the file, and not of one
 * number alone. */
bool is_transpose_of(struct flat *, const struct flat_val *a,
                     const struct flat_val *b);
/* Whether two initializers have the same shape and contents. */
bool same_contents(struct flat *, const struct flat_val *,
                   const struct flat_val *);

#endif
