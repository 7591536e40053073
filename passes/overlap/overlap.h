/* Room overlap: what goes between ranks while they compute.
 *
 * in      a planned schedule; seconds that nodes and transfers take
 * out     the same nodes, perhaps in another order, with the node after which
 *         each transfer has ended (Node.wait)
 * must not know why a value is kept, and what carries bytes
 */
#ifndef PASSES_OVERLAP_OVERLAP_H
#define PASSES_OVERLAP_OVERLAP_H

#include "passes/pass.h"

PassFn pass_overlap;

/* Between ranks, or to and from host memory. */
bool overlap_has_transfers(const Graph *);
/* ... between ranks. */
bool overlap_has_rank_transfers(const Graph *);
/* The same in less time, for a caller who places the graph then: transfers to
 * and from host memory have so many bytes of the arena. */
double overlap_unplaced_seconds(const Pass *, Graph *, int64_t room);

/* Which transfers run beside computation. */
struct overlap_choice {
	bool *chosen;                   /* by value that they receive */
	uint32_t nval;                  /* values of the graph */
	const struct cost *cost;        /* of nodes, by their first result; the
	                                 * same in every order */
	double latency;                 /* neighbours join a message while its
	                                 * latency is more than this share of
	                                 * its seconds; 1: none do */
};

/* Overlap transfers of this planned graph; the seconds of a step of all
 * micro-batches, which are only a bound if they are `enough` or more.  *all:
 * every transfer runs beside computation as far as it may.  *found, if not
 * NULL: for the pass (struct planned), in p->keep. */
double overlap_exposed_seconds(const Pass *p, Graph *, double enough, bool *all,
                               struct overlap_choice *found);

/* order.c: work that a transfer need not wait for, brought between where it
 * begins and where it is needed. */
void overlap_order(Graph *, const struct overlap_choice *, Arena *scratch);

/* interleave.c: an order of all nodes in which one half of the batch computes
 * while the other waits, in the arena. */
const NodeId *overlap_interleave(const Graph *, Arena *);

#endif
