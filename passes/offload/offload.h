/* Room offload: what lies in host memory between its uses.
 *
 * in      a graph with updates, before memory is laid out
 * out     states marked Val.host, transfers around the updates that use them
 * must not know when transfers run (passes/overlap), and how bytes move
 */
#ifndef PASSES_OFFLOAD_OFFLOAD_H
#define PASSES_OFFLOAD_OFFLOAD_H

#include "passes/pass.h"

PassFn pass_offload;

/* How many states an update has that may be offloaded: operands 2 and those
 * after it. */
int offload_states_of(const Node *);
/* Whether a state is large enough, and not in host memory yet. */
bool offload_takes_state(const Graph *, ValId);

#endif
