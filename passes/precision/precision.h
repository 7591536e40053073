/* Room precision: in which float type each value of the step is.
 *
 * in      a canonical forward graph with its loss
 * out     the same with casts; stored dropout masks
 * unaware of gradients, memory and machines
 *
 * Words.  narrow: the type of --dtype.  full: float32.  soft: float32 that
 * nothing demands, so that it takes the type of what it meets: parameters,
 * constants, inputs, and what is computed from these alone.
 */
#ifndef PASSES_PRECISION_H
#define PASSES_PRECISION_H

#include "passes/pass.h"

PassFn pass_precision;

/* mask.c: the node's dropout as where(mask, x / keep, 0) with a mask that is a
 * value, appended; each new node is told to `placed`.  0 after a
 * diagnostic. */
ValId precision_mask(Graph *, Diag *, NodeId, void (*placed)(void *, NodeId),
                     void *of);

#endif
