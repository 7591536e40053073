/* Values whose gradients are masked in branches that were not taken. */
#ifndef PASSES_GRAD_SHIELD_H
#define PASSES_GRAD_SHIELD_H

#include "ir/ir.h"

/* By node id, in the arena given: where the adjoint of output 0 is zero, the
 * rule has to say so, as a derivative that it is multiplied by may be infinite
 * or no number.  O(N + E). */
bool *grad_shields(const Graph *, Arena *);

#endif
