/* The second program of a library: what the model says of samples, without a
 * step of training.  It is the forward graph before differentiation, without
 * dropout and by running statistics, with all of the model's outputs, and goes
 * through the same passes.  Weights are training's, and so is the arena, which
 * nobody else uses between steps.  Where training needs less than it, as small
 * models do, the arena is larger, if the budget permits.
 */
#ifndef PASSES_FORWARD_H
#define PASSES_FORWARD_H

#include "passes/passes.h"

/* The plan of p->forward, beside the finished plan of g, in p->keep; if the
 * budget does not permit it, with the loss as the only output.  NULL after a
 * note, why there is none: then g says of its outputs what their rows are. */
Plan *forward_plan(Pass *p, Graph *g);

#endif
