/* Room grad: the backward graph and the updates.
 *
 * in      a canonical forward graph with a loss
 * out     the same with gradients of all trained parameters, and one update
 *         of each
 * must not know memory and machines
 */
#ifndef PASSES_GRAD_GRAD_H
#define PASSES_GRAD_GRAD_H

#include "passes/pass.h"

/* settle puts every update behind the last node that may need what it
 * overwrites, when a plan runs forward nodes again. */
PassFn pass_autodiff, pass_optim, pass_settle;

/* settle.c: the same as a call. */
void settle_updates(Graph *, Arena *scratch);
/* Whether updates may run in backward, if nobody has said so. */
bool optim_may_update_in_backward(const Pass *, const Graph *);
/* Whether updates write 16-bit copies of parameters, as pass optim finds the
 * graph; low_memory: in the variant for small budgets. */
bool optim_copies(const Pass *, const Graph *, bool low_memory);

#endif
