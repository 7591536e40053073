/* What the rules of order share: nodes that move by the work between them. */
#ifndef PASSES_OVERLAP_MOVES_H
#define PASSES_OVERLAP_MOVES_H

#include "passes/cost/cost.h"
#include "passes/overlap/overlap.h"

/* Of work that hides a transfer, as predictions are not exact. */
static const double MARGIN = 1.25;

static inline bool
has_flag(const Node *n, uint64_t flags)
{
	return op_info[n->op].flags & flags;
}

/* Between stages they end where they begin. */
static inline bool
is_transfer(const Node *n)
{
	return op_info[n->op].flags & F_SENDS
		&& !(op_info[n->op].flags & (F_HOST | F_STAGES));
}

static inline struct cost
overlap_cost(const struct overlap_choice *c, const Graph *g, const Node *n)
{
	return n->nout > 0 && n->out[0] ? c->cost[n->out[0]] : node_cost(g, n);
}

/* Whether n reads bytes that are v's, too. */
bool reads_owner(const Graph *, const Node *n, ValId v);

/* Of values: the first node that reads them, and how many do. */
struct reads {
	NodeId *first;
	uint32_t *count;
};

struct reads reads_of(const Graph *, Arena *);

struct moves {
	const Graph *g;
	double *work;                   /* seconds of the nodes before this one
	                                 * that send nothing */
	NodeId *to;                     /* by node: it moves to the place before
	                                 * this one, which may be behind the
	                                 * last; 0: it stays */
};

struct moves moves_new(const Graph *, const struct overlap_choice *, Arena *);
/* Among those of one place the order stays, but for transfers, which come
 * last. */
void moves_apply(const struct moves *, Graph *, Arena *);

/* Sets of transfers that are tried, and those of them whose live bytes fit, but
 * not their layouts. */
struct overlap_effort {
	int trials, placements;
};

/* waits.c: order the nodes, and let the chosen transfers end as late as they
 * may; sec: by value, what each then saves, if it is asked for. */
void overlap_apply(Graph *, const struct overlap_choice *, double *sec,
                   Arena *);
/* fit.c: bytes that the graph, which this changes, takes beyond the budget;
 * placements: how many graphs may still be placed in vain, else they do not
 * fit; NULL: live bytes are enough. */
int64_t overlap_excess(const Pass *, Graph *, int *placements, Arena *);
/* fit.c: of all chosen ones, which do not fit, leave out some. */
void overlap_choose_fitting(const Pass *, const Graph *,
                            const struct overlap_choice *,
                            struct overlap_effort, Arena *);
/* prefetch.c: gathers of pieces begin before they are needed. */
void move_gathers(Graph *, const struct overlap_choice *, Arena *);
/* sums.c: what reads sums in backward waits, and sums of a phase begin
 * together. */
void move_sums(Graph *, const struct overlap_choice *, Arena *);
void join_sums(Graph *, const struct overlap_choice *, Phase, Arena *);
/* host_transfers.c: all that is to and from host memory, in an arena of `room`
 * bytes (0: of as many as it takes now); the lanes are taken to be slower than
 * predicted by the factor `margin`. */
void overlap_host(Graph *, int64_t room, double margin, Arena *);

#endif
