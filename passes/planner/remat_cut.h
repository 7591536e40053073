/* Keep or recompute as a least cut.
 *
 * What backward reads must be kept, or its node run again; a node that runs
 * again needs its operands.  If being needed, being kept and running again have
 * their prices, the cheapest set is a least cut: on the source's side are the
 * storages that are needed and the nodes that run again, and what is needed and
 * not made again is kept.
 *
 *     source --(read by backward)--> storage s
 *     storage s --(price of needing it)--> sink
 *     storage s --(price of keeping it)--> its node n
 *     node n --(price of running it again)--> sink
 *     node n --(unbounded)--> storages that n reads
 *
 * remat_cut.c has the network, cut_bound.c a bound of it, and cut_search.c
 * plans.  PyTorch's partitioner decides by such cuts what to save, at the price
 * of a byte each.
 */
#ifndef PASSES_PLANNER_REMAT_CUT_H
#define PASSES_PLANNER_REMAT_CUT_H

#include "passes/planner/max_flow.h"
#include "passes/remat_model/plan_pool.h"

#include <math.h>

/* Units of flow in the seconds of a step. */
#define CUT_UNITS 1e12

/* Edges of one storage; -1: it is not free. */
struct storage_edges {
	int32_t read, need, keep;
};

struct cut_net {
	const struct remat *r;
	const uint8_t *constraint;
	Arena *arena;
	struct flow *flow;
	struct storage_edges *of;       /* by storage */
	int32_t *again;                 /* edge, by node; -1: not free */
	NodeId *end_forward;            /* by storage: the last node of forward
	                                 * that touches it */
	NodeId *first, *last;           /* by storage: nodes of backward that
	                                 * read it; 0: none */
};

struct cut_net *cut_net_new(const struct remat *, const uint8_t *constraint,
                            Arena *);
/* The plan chooses whether to keep it. */
static inline bool
cut_is_free(const struct cut_net *c, int32_t s)
{
	return c->of[s].keep >= 0;
}

/* Units of running a node again. */
static inline double
cut_again_units(const struct cut_net *c, NodeId n)
{
	return floor(c->r->node[n].least_sec / c->r->base_sec * CUT_UNITS);
}

/* Nothing has a price any more, but running again: its seconds. */
void cut_forget_prices(struct cut_net *);
/* Units from 0 up; more than FLOW_UNBOUNDED is that. */
void cut_price(struct cut_net *, int32_t edge, double units);
/* False: the time is over. */
bool cut_solve(struct cut_net *);
/* What the solution says. */
bool cut_keeps(const struct cut_net *, int32_t s);
bool cut_runs_again(const struct cut_net *, NodeId);
void cut_set(const struct cut_net *, uint8_t *drop);

/* cut_bound.c */
struct cut_bound;

/* What a bound says, and the price per byte at a node that leads to it. */
struct cut_proof {
	double sec;
	NodeId at;
	double price;
};

struct cut_bound *cut_bound_new(struct cut_net *);
/* Bytes that any plan needs. */
int64_t cut_bound_least(const struct cut_bound *);
/* Bytes of the other micro-batches' slots in any plan. */
int64_t cut_bound_slots(const struct cut_bound *);
/* No plan that needs at most `memory` bytes in the arena spends fewer seconds
 * on clones, however often it repeats a node, if first runs keep their order;
 * INFINITY: there is none. */
struct cut_proof cut_bound_at(struct cut_bound *, int64_t memory);

/* cut_search.c: sets for targets from `low` to `high`, into the pool.  The work
 * ends early where one in the middle is within `gap` seconds of what the proof
 * says. */
void cut_search(struct cut_net *, struct plan_pool *, int64_t low, int64_t high,
                const struct cut_proof *, double gap);

#endif
