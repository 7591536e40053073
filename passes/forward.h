/* The second program of a library: what the model says of samples, without a
 * step of training.  It is the forward graph before differentiation, without
 * dropout and by running statistics, with all of the model's outputs, and goes
 * through the same passes.  Weights are training's; its arena lies in the one
 * that training has between steps, so that it takes no memory.
 */
#ifndef PASSES_FORWARD_H
#define PASSES_FORWARD_H

#include "passes/passes.h"

/* The plan of p->forward, beside the finished plan of g, in p->keep; if it
 * would not fit there, with the loss as the only output.  NULL after a note,
 * why there is none. */
Plan *forward_plan(Pass *p, const Graph *g);

#endif
