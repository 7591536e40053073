/* Room verify: whether a graph is well formed.
 *
 * in      a graph, and the properties that it claims
 * out     every fault; the properties that a graph shows by itself
 * must not know which pass, or which text, the graph comes from
 */
#ifndef IR_VERIFY_VERIFY_H
#define IR_VERIFY_VERIFY_H

#include "ir/ir.h"

/* Structure, types, shapes, order, views; all faults are reported.  The
 * properties in g->props decide what is checked beyond structure. */
bool graph_verify(Graph *, Diag *);
/* The properties that a graph shows by itself, for graphs that come from
 * text; P_PLANNED cannot be seen and is left to the text's own `props`. */
uint32_t graph_props(const Graph *);

#endif
