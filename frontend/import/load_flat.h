/* The first stage of import and inspection. */
#ifndef FRONTEND_IMPORT_LOAD_FLAT_H
#define FRONTEND_IMPORT_LOAD_FLAT_H

#include "frontend/params/params.h"

/* The model flat, with verdicts and without the outputs that the loss can do
 * without and that need missing operators.  NULL after diagnostics; *file is
 * closed by the caller in any case, and may be NULL. */
struct flat *load_flat(const char *path, const struct import_options *,
                       Diag *, Arena *, struct onnx_file **file);
/* resolve.c: the flat model, with all known that options->fold can tell; NULL
 * after diagnostics. */
struct flat *flat_resolve(struct onnx_file *, const struct import_options *,
                          Diag *, Arena *);

#endif
