/* Room inspect: the contents of a model, and what was lost in its export.
 *
 * in      a flat model
 * out     a report; it changes nothing
 * must not know passes: the driver supplies their results
 */
#ifndef FRONTEND_INSPECT_INSPECT_H
#define FRONTEND_INSPECT_INSPECT_H

#include <stdio.h>

#include "frontend/params/import_options.h"

/* The report of `ckc inspect`. */
bool onnx_inspect(const char *path, const struct import_options *, FILE *out,
                  Diag *);

#endif
