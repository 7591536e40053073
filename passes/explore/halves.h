/* --halves: a batch as two chains. */
#ifndef PASSES_EXPLORE_HALVES_H
#define PASSES_EXPLORE_HALVES_H

#include "passes/pass.h"

/* Give the inputs of the graph, which is bound and no more, half the samples,
 * so that pass replicate makes both halves.  False after a diagnostic. */
bool halve_batch(Pass *, Graph *);

#endif
