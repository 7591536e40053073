/* Room canon: one form for constructs that exporters write in many.
 *
 * in      a static graph
 * out     norms, activations, attention and linear layers as single nodes; the
 *         loss
 * must not know gradients, memory and machines
 */
#ifndef PASSES_CANON_CANON_H
#define PASSES_CANON_CANON_H

#include "passes/pass.h"

PassFn pass_canon, pass_loss;

/* The name of kind number i of losses that pass loss adds; NULL behind the
 * last. */
const char *loss_kind(size_t i);

#endif
