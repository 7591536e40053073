/* alone.c: a batch of one sample. */
#ifndef PASSES_ALONE_H
#define PASSES_ALONE_H

#include "passes/passes.h"

/* The graph before pass fold, with two samples; NULL: that tells nothing.
 * The caller frees it. */
Graph *alone_twice(const Pass *, const Graph *);
/* Set p->alone: g has been through the passes from `fold` to
 * `loss`, and `twice` is sent through them. */
void alone_check(Pass *, const Graph *g, Graph *twice,
                 const struct pass_info *fold);

#endif
