/* From a flat model to a graph. */
#ifndef FRONTEND_IMPORT_BUILD_GRAPH_H
#define FRONTEND_IMPORT_BUILD_GRAPH_H

#include "frontend/onnx/flat.h"
#include "frontend/params/import_options.h"

/* The graph of a model whose operators are all there; NULL after diagnostics.
 * The arena is for what is not the graph's. */
Graph *build_graph(struct flat *, const struct import_options *, Arena *,
                   const char *name);
/* As much of it as there are operators for, without outputs. */
Graph *build_known_graph(struct flat *, const struct import_options *, Arena *);

#endif
