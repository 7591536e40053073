/* From a flat model to a graph. */
#ifndef FRONTEND_IMPORT_BUILD_GRAPH_H
#define FRONTEND_IMPORT_BUILD_GRAPH_H

#include "frontend/onnx/flat.h"
#include "frontend/params/import_options.h"

/* The graph of a model without missing operators; NULL after diagnostics.  The
 * arena holds temporary data. */
Graph *build_graph(struct flat *, const struct import_options *, Arena *,
                   const char *name);
/* The subgraph of supported operators, without outputs. */
Graph *build_known_graph(struct flat *, const struct import_options *, Arena *);

#endif
