/* What import and inspection begin with. */
#ifndef FRONTEND_IMPORT_FLAT_H
#define FRONTEND_IMPORT_FLAT_H

#include "frontend/flat.h"

/* The model flat, with verdicts and without the outputs that the loss can do
 * without and that need missing operators.  NULL after diagnostics; *file is
 * closed by the caller in any case, and may be NULL. */
struct flat *import_flat(const char *path, const struct import_options *,
                         Diag *, Arena *, struct onnx_file **file);
/* The label smoothing that an exporter dropped from a cross entropy, by its
 * own word; 0: none that is known of. */
double import_lost_smoothing(const struct flat_node *);
/* Whether a BatchNormalization is in training form. */
bool import_bn_trains(const struct flat_node *);

#endif
