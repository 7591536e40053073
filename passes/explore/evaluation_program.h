/* The evaluation program of a library: outputs of the model without a training
 * step.  It is the forward graph before differentiation, without dropout, with
 * running statistics and all outputs of the model, and goes through the same
 * passes.  It shares the weights of training and its arena, which is free
 * between steps.  If evaluation needs more memory than training, as in small
 * models, the arena grows within the budget.
 */
#ifndef PASSES_EXPLORE_EVALUATION_PROGRAM_H
#define PASSES_EXPLORE_EVALUATION_PROGRAM_H

#include "passes/passes.h"

/* The plan of p->result.forward, beside the finished plan of g, in p->keep; if
 * the budget does not permit it, with the loss as the only output.  NULL after
 * a note, why there is none: then g says of its outputs what their rows are.
 * Of a pipeline it is NULL, and the stages are in its `evaluation`, or none. */
Plan *forward_plan(Pass *p, Graph *g);

#endif
