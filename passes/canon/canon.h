/* Room canon: one form for what exporters write in many.
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

/* What pass loss is to a graph that evaluates, p->forward of another pass: the
 * outputs, no dropout, running statistics in place of the batch's.  The options
 * are those of a graph that is not trained. */
bool canon_evaluate(Pass *, Graph *);

#endif
