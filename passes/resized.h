/* The graph for another batch size: resized.c. */
#ifndef PASSES_RESIZED_H
#define PASSES_RESIZED_H

#include "passes/passes.h"

/* The graph before pass fold, with more samples; NULL: nothing says which dims
 * have them.  The caller frees it. */
Graph *resized_graph(const Pass *, const Graph *);
/* Set p->resized: g has been through the passes from `fold` to `loss`, and
 * `resized` is sent through them. */
void resized_check(Pass *, const Graph *g, Graph *resized,
                   const struct pass_info *fold);

#endif
