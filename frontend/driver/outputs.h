/* Output files of a compilation: their names, and checks that none of them
 * overwrites an input, another output or a file of another program. */
#ifndef FRONTEND_DRIVER_OUTPUTS_H
#define FRONTEND_DRIVER_OUTPUTS_H

#include "frontend/import/import.h"
#include "ir/base/arena.h"
#include "ir/base/diag.h"

struct outputs {
	const char *so, *weights;       /* NULL: no code is wanted */
	const char *json, *svg, *page;  /* NULL: not wanted */
};

/* Names of library and weights from -o (NULL: after the model). */
struct outputs outputs_name(const char *model, const char *out, Arena *);
/* Every output can be written and is no other file; false after a diagnostic.
 * Call again when *file, the imported model, is known. */
bool outputs_check(const struct outputs *, const char *model,
                   const struct onnx_file *file, Diag *);
/* The same of the one file that a verb writes about the one that it reads. */
bool outputs_check_report(const char *path, const char *from, Diag *);

#endif
