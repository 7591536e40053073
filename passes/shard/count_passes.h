/* Rounds: nodes that run for all micro-batches before the step, and leave
 * totals over them.
 *
 * A node of a round is a copy of one of the step that the same value takes.  It
 * adds to a state, the total, whose sum nodes of the step, and of later rounds,
 * read: a total that depends on another one is of the round behind that.
 */
#ifndef PASSES_SHARD_ROUNDS_H
#define PASSES_SHARD_ROUNDS_H

#include "passes/pass.h"

struct rounds {
	Pass *p;
	Graph *g;
	ValId *twin;                    /* by value and round: its copy there */
	size_t ntwin, twin_cap;
};

/* The sum of v over all micro-batches, in its shape; 0 after a diagnostic. */
ValId round_total(struct rounds *, ValId v);
/* A copy in g of a node, of another graph perhaps, whose operands are in[]. */
NodeId round_copy(Graph *g, const Graph *of, const Node *, const ValId *in);

#endif
