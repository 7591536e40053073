/* Overlap: transfers between ranks begin as early and end as late as they may.
 *
 * what    Node.wait; the order of nodes, see order.c
 * method  a transfer ends behind the last node before the first that reads
 *         what it receives, or overwrites what it sends.  Neighbours go in
 *         one message where that is faster and fits.  If the arena exceeds the
 *         budget anyhow, some are left out (fit.c).
 * needs   P_PLANNED; before results are laid over operands, which asks for
 *         what is alive.  A graph in which transfers wait stays as it is.
 * gives   never a larger step: what each node costs stays, and what is sent
 *         goes in the same order on all ranks
 */
#include "passes/overlap/moves.h"
#include "passes/cost/lanes.h"
#include "passes/place/place.h"

#include <math.h>

/* For large graphs, of which each trial takes long, and for small ones. */
enum {
	TRIALS = 24, MOST_TRIALS = 128, BRIEF_TRIALS = 4, PLACEMENTS = 4,
	SMALL = 60000
};

static struct overlap_effort
effort_for(const Pass *p, const Graph *g, bool unplaced)
{
	int trials = TRIALS + (int)(SMALL / g->nnode);

	if (unplaced)                   /* one of many graphs */
		return (struct overlap_effort){
			p->opt->brief ? BRIEF_TRIALS : TRIALS, PLACEMENTS };
	return (struct overlap_effort){
		trials < MOST_TRIALS ? trials : MOST_TRIALS,
		PLACEMENTS };
}

/* ---- those that are chosen ---- */

/* Seconds of the nodes, or of those of a micro-batch that is not the last. */
static double
lane_seconds(const Graph *g, const struct overlap_choice *choice, bool micro,
             Arena *scratch)
{
	struct lane_step *step = arena_array(scratch, g->nnode, sizeof *step);

	FOR_NODES (n, g) {
		struct cost c = overlap_cost(choice, g,
			n->of ? &g->node[n->of] : n);

		step[node_id(g, n)] = (struct lane_step){
			node_lane_seconds(g, n, c), c.lane,
			n->wait ? n->wait : node_id(g, n) };
		if (micro && n->phase == PH_UPDATE)
			step[node_id(g, n)] = (struct lane_step){ 0 };
	}
	return lanes_seconds(step, g->nnode, scratch);
}

/* Of a step of all micro-batches. */
static double
step_seconds(const Pass *p, const Graph *g, const struct overlap_choice *c,
             Arena *scratch)
{
	int64_t micro = p->opt->grad_accum;
	double sec = lane_seconds(g, c, false, scratch);

	if (micro > 1)
		sec += (double)(micro - 1) * lane_seconds(g, c, true, scratch);
	return sec;
}

/* By first result; costs do not depend on the order. */
static const struct cost *
costs_of(const Graph *g, Arena *a)
{
	struct cost *cost = arena_array(a, g->nval, sizeof *cost);

	FOR_NODES (n, g)
		if (n->nout > 0 && n->out[0])
			cost[n->out[0]] = node_cost(g, n);
	return cost;
}

static bool *
all_transfers(const Graph *g, Arena *a)
{
	bool *chosen = arena_array(a, g->nval, sizeof *chosen);

	FOR_NODES (n, g)
		if (n->out[0])
			chosen[n->out[0]] = is_transfer(n);
	return chosen;
}

bool
overlap_has_rank_transfers(const Graph *g)
{
	FOR_NODES (n, g)
		if (is_transfer(n) && n->out[0])
			return true;
	return false;
}

static bool
has_host_transfers(const Graph *g)
{
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_HOST)
			return true;
	return false;
}

bool
overlap_has_transfers(const Graph *g)
{
	return overlap_has_rank_transfers(g) || has_host_transfers(g);
}

/* A copy with the nodes in that order; NULL: as they are. */
static Graph *
clone_in_order(const Graph *g, const NodeId *order)
{
	Graph *copy = graph_trial(g);

	if (order)
		graph_reorder(copy, order, g->nnode - 1);
	return copy;
}

/* Of a step in that order, with all chosen transfers. */
static double
seconds_in_order(const Pass *p, const Graph *g, const NodeId *order,
                 const struct overlap_choice *c)
{
	Graph *trial = clone_in_order(g, order);
	Arena *a = arena_new();
	double sec;

	overlap_apply(trial, c, NULL, a);
	sec = step_seconds(p, trial, c, a);
	arena_free(a);
	graph_free(trial);
	return sec;
}

static bool
order_fits(const Pass *p, const Graph *g, const NodeId *order)
{
	Graph *trial = clone_in_order(g, order);
	Arena *a = arena_new();
	int once = 1;
	bool fits = overlap_excess(p, trial, &once, a) <= 0;

	arena_free(a);
	graph_free(trial);
	return fits;
}

/* Interleave the halves of a batch, if that is faster and fits. */
static void
interleave_halves(const Pass *p, Graph *g, const struct overlap_choice *c,
                  Arena *scratch)
{
	const NodeId *order = overlap_interleave(g, scratch);

	if ((p->planned.budget <= 0 || order_fits(p, g, order))
	    && seconds_in_order(p, g, order, c)
	       < seconds_in_order(p, g, NULL, c))
		graph_reorder(g, order, g->nnode - 1);
}

static bool
any_may_join(const Graph *g)
{
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_JOINS)
			return true;
	return false;
}

/* Whether a step with all transfers takes less than *least seconds, and fits;
 * *least is its seconds then.  *any: the same if nothing has to fit. */
static bool
saves_time(const Pass *p, const Graph *g, const struct overlap_choice *c,
           double *least, double *any)
{
	Graph *trial = graph_trial(g);
	Arena *a = arena_new();
	int once = 1;
	double sec;
	bool faster;

	overlap_apply(trial, c, NULL, a);
	sec = step_seconds(p, trial, c, a);
	*any = fmin(*any, sec);
	faster = sec < *least && (p->planned.budget <= 0
	                          || overlap_excess(p, trial, &once, a) <= 0);
	if (faster)
		*least = sec;
	arena_free(a);
	graph_free(trial);
	return faster;
}

/* Neighbours in one message save latencies, but are in memory together, and
 * none arrives before all: the fastest of some sizes of messages with which all
 * transfers fit.  *c is alone, and false is returned, if there is none.  *any:
 * the least seconds if nothing has to fit. */
static bool
choose_messages(const Pass *p, const Graph *g, struct overlap_choice *c,
                double *any)
{
	static const double share[] = { 1, 0.1, 0.2, 0.4 };
	const int n = any_may_join(g) ? sizeof share / sizeof share[0] : 1;
	struct overlap_choice t = *c;
	double least = INFINITY;

	*any = INFINITY;
	c->latency = share[0];
	for (int i = 0; i < n && !watch_over(p->watch); i++) {
		t.latency = share[i];
		if (saves_time(p, g, &t, &least, any))
			c->latency = share[i];
	}
	return least < INFINITY;
}

/* ---- host memory ---- */

/* Seconds of a step with host transfers in an arena of `room` bytes; INFINITY:
 * they are less than `below`, but it does not fit the budget once it is placed,
 * if it is. */
static double
try_host(const Pass *p, const Graph *g, const struct overlap_choice *c,
         int64_t room, double margin, double below, bool place)
{
	Graph *trial = graph_trial(g);
	Arena *a = arena_new();
	int once = 1;
	double sec;

	overlap_host(trial, room, margin, a);
	sec = step_seconds(p, trial, c, a);
	if (sec < below && p->planned.budget > 0
	    && overlap_excess(p, trial, place ? &once : NULL, a) > 0)
		sec = INFINITY;
	arena_free(a);
	graph_free(trial);
	return sec;
}

/* Predictions are not exact, but a margin takes room.  What fits by live bytes
 * may not fit once it is placed: then less room is tried.  If nothing fits,
 * transfers stay where they are needed.  given: the room, unplaced; 0: that of
 * the budget. */
static void
overlap_host_transfers(const Pass *p, Graph *g, const struct overlap_choice *c,
                       int64_t given, Arena *scratch)
{
	static const double margin[] = { MARGIN, 1 };
	static const double share[] = { 1, 0.98, 0.95, 0.9 };
	int64_t room = given ? given : p->planned.budget > 0
		? p->planned.budget - graph_resident_bytes(g, scratch) : 0;
	int64_t best_room = 0;
	double least = step_seconds(p, g, c, scratch), best = 0;

	for (int m = 0; m < 2; m++)
		for (int k = 0; k < (given ? 1 : 4); k++) {
			int64_t in = (int64_t)(share[k] * (double)room);
			double enough = least * (1 - 1e-9);
			double sec = try_host(p, g, c, in, margin[m],
			                      enough, !given);

			if (sec < enough) {
				least = sec;
				best = margin[m];
				best_room = in;
			}
			if (sec < INFINITY)
				break;
		}
	if (best > 0)
		overlap_host(g, best_room, best, scratch);
}

/* room: bytes of the arena for host transfers, unplaced; 0: as many as fit
 * placed.  known: what was found for an equal graph; NULL: nothing.  If a step
 * takes `enough` seconds even with all transfers, these stay chosen, though
 * they do not fit.  Returns what is chosen; *all: every transfer runs beside
 * computation. */
static struct overlap_choice
overlap_graph(const Pass *p, Graph *g, int64_t room,
              const struct overlap_choice *known, double enough, bool *all,
              Arena *scratch)
{
	struct overlap_choice c = { all_transfers(g, scratch), g->nval,
		costs_of(g, scratch), 0.1 };
	double any;

	*all = true;
	if (g->halves == HALVES_BOTH)
		interleave_halves(p, g, &c, scratch);
	if (overlap_has_rank_transfers(g)) {
		if (known) {
			c.chosen = known->chosen;
			c.latency = known->latency;
		}
		if (!known && !(*all = choose_messages(p, g, &c, &any))
		    && any < enough)
			overlap_choose_fitting(p, g, &c,
			                       effort_for(p, g, room > 0),
			                       scratch);
		overlap_apply(g, &c, NULL, scratch);
	}
	if (has_host_transfers(g))
		overlap_host_transfers(p, g, &c, room, scratch);
	return c;
}

/* Of a step of all micro-batches. */
static double
compute_seconds(const Pass *p, const Graph *g)
{
	double sum = 0;

	FOR_NODES (n, g) {
		struct cost c = first_cost(g, n);

		if (c.lane == LANE_COMPUTE)
			sum += n->phase == PH_UPDATE ? c.sec
				: c.sec * (double)p->opt->grad_accum;
	}
	return sum;
}

double
overlap_exposed_seconds(const Pass *p, Graph *g, double enough, bool *all,
                        struct overlap_choice *found)
{
	Arena *scratch;
	struct overlap_choice c;
	double sec;

	*all = false;
	if (compute_seconds(p, g) >= enough)
		return INFINITY;
	scratch = arena_new();
	c = overlap_graph(p, g, 0, NULL, enough, all, scratch);
	sec = step_seconds(p, g, &c, scratch);
	if (found) {
		*found = c;
		found->cost = NULL;
		found->chosen = arena_copy(p->keep, c.chosen,
		                           g->nval * sizeof *c.chosen);
	}
	arena_free(scratch);
	return sec;
}

double
overlap_unplaced_seconds(const Pass *p, Graph *g, int64_t room)
{
	Arena *scratch = arena_new();
	struct overlap_choice c;
	double sec;
	bool all;

	c = overlap_graph(p, g, room, NULL, INFINITY, &all, scratch);
	sec = step_seconds(p, g, &c, scratch);
	arena_free(scratch);
	return sec;
}

/* A dump may come from behind this pass, or from behind inplace. */
static bool
was_overlapped(const Graph *g)
{
	const uint64_t own = F_VIEW | F_WRITES | F_UPDATE;

	FOR_NODES (n, g)
		if (n->wait || (n->nout > 0 && g->val[n->out[0]].base
		                && !(op_info[n->op].flags & own)))
			return true;
	return false;
}

bool
pass_overlap(Pass *p, Graph *g)
{
	const struct overlap_choice *known = p->planned.transfers;
	bool all;

	if (known && known->nval != g->nval)
		known = NULL;
	if (!p->no_overlap && overlap_has_transfers(g) && !was_overlapped(g))
		overlap_graph(p, g, 0, known, INFINITY, &all, p->scratch);
	return true;
}
