/* The first stage of import and inspection. */
#ifndef FRONTEND_IMPORT_LOAD_FLAT_H
#define FRONTEND_IMPORT_LOAD_FLAT_H

#include "frontend/params/params.h"

/* Load a flat model with verdicts.  Drops outputs that need missing operators
 * and that the loss does not need.  NULL after diagnostics.  The caller closes
 * *file, which may be NULL, in any case. */
struct flat *load_flat(const char *path, const struct import_options *,
                       Diag *, Arena *, struct onnx_file **file);
/* resolve.c: the flat model with values that options->fold computed; NULL after
 * diagnostics. */
struct flat *flat_resolve(struct onnx_file *, const struct import_options *,
                          Diag *, Arena *);

#endif
