/* Room canon: one form for constructs that exporters write in many.
 *
 * in      a static graph
 * out     norms, activations, attention and linear layers as single nodes; the
 *         loss
 * unaware of gradients, memory and machines
 */
#ifndef PASSES_CANON_CANON_H
#define PASSES_CANON_CANON_H

#include "passes/pass.h"

PassFn pass_canon, pass_loss;

/* Pass loss for an evaluation graph, the forward graph of another pass:
 * outputs, no dropout, running statistics instead of the batch's.  Takes the
 * options of a graph without training. */
bool canon_evaluate(Pass *, Graph *);

/* The name of kind number i of losses that pass loss adds; NULL behind the
 * last. */
const char *loss_kind(size_t i);

#endif
