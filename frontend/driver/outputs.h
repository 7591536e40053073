/* Output files of a compilation: their names, and checks that none of them
 * overwrites an input, another output or a file of another program. */
#ifndef FRONTEND_DRIVER_OUTPUTS_H
#define FRONTEND_DRIVER_OUTPUTS_H

#include "frontend/import/import.h"
#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "passes/report/report.h"

struct outputs {
	const char *so, *weights;       /* NULL: generate no code */
	const char *json, *svg, *page;  /* reports; NULL: none */
};

/* Name library and weights after -o, or if NULL after the model. */
struct outputs outputs_name(const char *model, const char *out, Arena *);
/* Check that every output can be written and overwrites no other file.  False
 * after a diagnostic.  Call again after the import, with its *file. */
bool outputs_check(const struct outputs *, const char *model,
                   const struct onnx_file *file, Diag *);
/* The same for a verb that reads file `from` and writes one report. */
bool outputs_check_report(const char *path, const char *from, Diag *);

/* Write the plan as JSON, if there is a path. */
bool outputs_write_plan(const char *path, const Pass *, const Plan *,
                        const struct report_source *, Diag *);

#endif
