/* The graph for another batch size. */
#ifndef PASSES_EXPLORE_OTHER_BATCH_H
#define PASSES_EXPLORE_OTHER_BATCH_H

#include "passes/passes.h"

/* The graph before pass fold, with more samples; NULL: nothing says which dims
 * have them.  The caller frees it. */
Graph *other_batch_graph(const Pass *, const Graph *);
/* Set p->result.other_batch: g has been through the passes from `fold` to
 * `loss`, and `other_batch` is sent through them. */
void other_batch_check(Pass *, const Graph *g, Graph *other_batch);

#endif
