/* Neighbouring sums of shards begin together, as one message.  An update in
 * backward moves behind work that hides the sum of its gradient; what adds the
 * sum up over micro-batches likewise; and so does the sum over zero groups
 * behind that within them.
 */
#include "passes/overlap/moves.h"

#include <math.h>

/* Transfers of a phase, in the order of nodes, and what reads them. */
struct sums {
	const Graph *g;
	const struct overlap_choice *choice;
	struct moves moves;
	struct reads reads;
	NodeId *sum;                    /* [n] */
	uint32_t n;
	double free[GROUP_COUNT];       /* seconds of work before the lane is
	                                 * free */
};

/* Sums that begin together. */
struct sum_message {
	uint32_t end;                   /* the first sum behind them */
	double begin, sec;
};

static struct sums
sums_new(const Graph *g, const struct overlap_choice *c, Phase phase, Arena *a)
{
	struct sums s = { .g = g, .choice = c, .moves = moves_new(g, c, a),
		.reads = reads_of(g, a),
		.sum = arena_array(a, g->nnode, sizeof *s.sum) };

	FOR_NODES (n, g)
		if (has_flag(n, F_SENDS) && n->phase == phase
		    && c->chosen[n->out[0]])
			s.sum[s.n++] = node_id(g, n);
	return s;
}

/* Whether the sums from k on can wait for sum `end`; readers_move: whatever
 * reads them. */
static bool
can_wait(const struct sums *s, uint32_t k, uint32_t end, bool readers_move)
{
	const Graph *g = s->g;
	const Node *first = &g->node[s->sum[k]], *last = &g->node[s->sum[end]];

	if (!nodes_may_join(first, last))
		return false;
	for (uint32_t i = k; i < end; i++) {
		const Node *n = &g->node[s->sum[i]];
		NodeId read = s->reads.first[n->out[0]];

		if (!readers_move && read && read < s->sum[end])
			return false;
		for (NodeId id = s->sum[end - 1] + 1; id < s->sum[end]; id++)
			if (has_flag(&g->node[id], F_WRITES | F_UPDATE)
			    && reads_owner(g, &g->node[id], n->in[0]))
				return false;
	}
	return true;
}

/* The message that begins with sum k: those that would find the lane busy wait
 * for it. */
static struct sum_message
message_from(struct sums *s, uint32_t k, bool readers_move)
{
	const Graph *g = s->g;
	const Node *first = &g->node[s->sum[k]];
	double latency = transfer_latency(g, first);
	double *busy = &s->free[node_group(first)];
	struct sum_message m = { k, 0, latency };

	do {
		NodeId id = s->sum[m.end++];

		m.begin = fmax(*busy, s->moves.work[id]);
		m.sec += overlap_cost(s->choice, g, &g->node[id]).sec - latency;
	} while (m.end < s->n && latency > s->choice->latency * m.sec
	         && s->moves.work[s->sum[m.end]] < m.begin + m.sec
	         && can_wait(s, k, m.end, readers_move));
	*busy = m.begin + m.sec;
	return m;
}

/* Whether u, which reads a sum, may run behind node n, too. */
static bool
may_follow(const Graph *g, const Node *u, const Node *n)
{
	if (n->count_pass != u->count_pass)
		return false;
	for (int k = 0; k < u->nout; k++)
		if (u->out[k] && reads_owner(g, n, u->out[k]))
			return false;
	for (int k = 0; k < u->nin; k++)
		if (u->in[k] && reads_owner(g, n, u->in[k]))
			return false;
	return n->phase != PH_UPDATE
		|| (u->phase == PH_UPDATE
		    && has_flag(n, F_UPDATE | F_WRITES | F_SENDS));
}

enum { CHAIN = 5 };

/* A chain of n nodes, with the average that alone reads the result of an update
 * at its end. */
static int
append_average(const struct sums *s, NodeId chain[CHAIN], int n)
{
	const Node *last = &s->g->node[chain[n - 1]];
	ValId y = has_flag(last, F_UPDATE) ? last->out[0] : 0;
	const Node *r = &s->g->node[y ? s->reads.first[y] : 0];

	if (!y || s->reads.count[y] != 1 || !has_flag(r, F_WRITES)
	    || has_flag(r, F_COMM))
		return n;
	chain[n] = s->reads.first[y];
	return n + 1;
}

/* Nodes from value v on, each of which alone reads the one before: to one that
 * sends, or to one that updates or adds up, and its average.  Returns how many;
 * 0: there is no such chain. */
static int
chain_from(const struct sums *s, ValId v, bool sends, NodeId chain[CHAIN])
{
	for (int n = 0; n < CHAIN - 1; n++) {
		const Node *r = &s->g->node[s->reads.first[v]];

		if (!s->reads.first[v] || s->reads.count[v] != 1)
			return 0;
		chain[n] = s->reads.first[v];
		if (has_flag(r, F_SENDS))
			return sends ? n + 1 : 0;
		if (has_flag(r, F_UPDATE | F_WRITES))
			return sends ? 0 : append_average(s, chain, n + 1);
		if (r->nout != 1 || !r->out[0])
			return 0;
		v = r->out[0];
	}
	return 0;
}

static bool
chain_may_follow(const Graph *g, const NodeId *chain, int n, const Node *at)
{
	for (int i = 0; i < n; i++)
		if (!may_follow(g, &g->node[chain[i]], at))
			return false;
	return true;
}

static bool
is_in_chain(const NodeId *chain, int n, NodeId id)
{
	for (int i = 0; i < n; i++)
		if (chain[i] == id)
			return true;
	return false;
}

/* All of the chain behind seconds `until` of the work, or as far as it may. */
static void
defer_chain(struct sums *s, const NodeId *chain, int n, double until)
{
	const Graph *g = s->g;
	NodeId last = chain[n - 1], at = chain[0] + 1;

	/* an average hides nothing of the sum that it waits for */
	if (n > 1 && has_flag(&g->node[chain[n - 2]], F_UPDATE))
		until += s->moves.work[last + 1] - s->moves.work[last];
	while (at < g->nnode && (at <= last || s->moves.work[at] < until)
	       && (is_in_chain(chain, n, at)
	           || chain_may_follow(g, chain, n, &g->node[at])))
		at++;
	if (at <= last)
		return;
	for (int i = 0; i < n; i++)     /* part of it may follow another sum */
		if (s->moves.to[chain[i]] < at)
			s->moves.to[chain[i]] = at;
}

/* What follows the sum of a gradient runs when that has had time to arrive: the
 * shard of a gradient is all that is kept for it.  sends: what sums up over
 * zero groups, else what updates or adds up. */
static void
defer_readers(Graph *g, const struct overlap_choice *c, bool sends, Arena *a)
{
	struct sums s = sums_new(g, c, PH_BACKWARD, a);
	struct sum_message m;

	for (uint32_t k = 0; k < s.n; k = m.end) {
		double until;

		m = message_from(&s, k, true);
		until = s.moves.work[s.sum[m.end - 1]] + MARGIN * m.sec;
		for (uint32_t i = k; i < m.end; i++) {
			NodeId chain[CHAIN];
			int n = chain_from(&s, g->node[s.sum[i]].out[0], sends,
			                   chain);

			if (n > 0)
				defer_chain(&s, chain, n, until);
		}
	}
	if (s.n > 0)
		moves_apply(&s.moves, g, a);
}

/* Those of a message begin where its last one does. */
void
join_sums(Graph *g, const struct overlap_choice *c, Phase phase, Arena *a)
{
	struct sums s = sums_new(g, c, phase, a);
	struct sum_message m;

	for (uint32_t k = 0; k < s.n; k = m.end) {
		m = message_from(&s, k, false);
		for (uint32_t i = k; i < m.end; i++)
			s.moves.to[s.sum[i]] = s.sum[m.end - 1];
	}
	if (s.n > 0)
		moves_apply(&s.moves, g, a);
}

void
move_sums(Graph *g, const struct overlap_choice *c, Arena *a)
{
	defer_readers(g, c, true, a);
	defer_readers(g, c, false, a);
	join_sums(g, c, PH_BACKWARD, a);
}
