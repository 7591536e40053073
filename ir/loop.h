/* Loops: their limits, and one that repeats the work of another loop instead of
 * reading its result, which is recomputation without memory. */
#ifndef IR_LOOP_H
#define IR_LOOP_H

#include "ir/ir.h"

/* A loop keeps within these; larger bodies run out of registers. */
enum { LOOP_OPS_MAX = 32, LOOP_INPUTS_MAX = 20 };

/* May `reader` compute what it reads of `first` by itself?  Both are loops
 * over the same shape, and no value is rounded when it is stored. */
bool inline_fits(const Graph *, const Node *first, const Node *reader);

/* What a loop with these operands reads once it has taken in `first`: those
 * that `first` made fall away, the others keep their order, and first's own
 * follow them.  Rewrites in[], which has room; returns how many. */
int inline_operands(const Node *first, ValId *in, int nin);
/* Put the body of `first` before reader's. */
void inline_loop(Graph *, NodeId reader, NodeId first);

#endif
