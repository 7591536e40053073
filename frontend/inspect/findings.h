/* What `ckc inspect` finds: filled by inspect.c, printed by inspect_page.c and
 * inspect_json.c. */
#ifndef FRONTEND_INSPECT_FINDINGS_H
#define FRONTEND_INSPECT_FINDINGS_H

#include "frontend/lint/lint.h"
#include "frontend/params/params.h"
#include "frontend/onnx/onnx.h"

enum support { MISSING, FORWARD, GRADIENT, NOT_NEEDED };

struct coverage {
	const char *domain, *type, *hint, *first;
	int count;
	enum support support;
};

struct dim_use {
	const char *flag, *where;
};

struct inspect_report {
	struct flat *f;
	Graph *g;
	Arena *arena;
	const struct import_options *opt;
	int *target, ntarget;
	struct coverage *op;
	int nop;
	struct dim_use *dim;
	int ndim;
	struct lint_report lint;
	size_t op_cap, dim_cap;
	bool *depends;                  /* value depends on a parameter, by flat
	                                 * value */
	int64_t param_bytes, buffer_bytes, nparam, nbuffer, nelem;
};

/* Warning i of export diagnostics, missing data and the driver's notes; NULL
 * after the last. */
const char *findings_warning(const struct inspect_report *, int i);

/* inspect_page.c, inspect_json.c */
void inspect_page(struct inspect_report *, FILE *);
void inspect_json(struct inspect_report *, FILE *);

#endif
