/* The one table of ONNX operators. */
#ifndef FRONTEND_IMPORT_OPTABLE_H
#define FRONTEND_IMPORT_OPTABLE_H

#include "frontend/onnx/onnx_op.h"

const struct onnx_op *onnx_op_find(const char *domain, const char *name);
/* Whether the importer supports the node. */
bool onnx_op_can(const struct flat *, const struct flat_node *);

#endif
