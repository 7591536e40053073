/* A parameter is gathered from its pieces, which nothing in the step computes,
 * so that the gather begins as long before its first reader as it takes
 * (prefetch of FSDP, Zhao et al. 2023): places are found from the last gather
 * to the first, each to end before the next one begins.  Neighbours begin
 * together, as one message.  A message begins no earlier than the one before
 * the last is needed, so that two are in flight.
 */
#include "passes/overlap/moves.h"

#include <math.h>

struct gather {
	const Node *node, *maker;       /* of its operand, a cast of a resident
	                                 * piece; NULL: the piece itself */
	double needed;                  /* seconds of work before its first
	                                 * reader */
};

struct prefetch {
	const Graph *g;
	const struct overlap_choice *choice;
	struct moves moves;
	struct reads reads;
	struct gather *gather;          /* [n], in the order of nodes */
	uint32_t n;
};

static bool
is_resident(const Graph *g, ValId v)
{
	return g->val[val_owner(g, v)].kind != V_TEMP;
}

/* Whether n gathers a piece whose bytes are there from the start, or that a
 * node makes of one for n alone. */
static bool
find_maker(const struct prefetch *f, const Node *n, const Node **maker)
{
	const Graph *g = f->g;
	ValId x = n->in[0];
	const Node *from = &g->node[g->val[x].def];

	*maker = NULL;
	if (!has_flag(n, F_SENDS) || n->phase == PH_UPDATE
	    || !g->val[x].shard || g->val[n->out[0]].shard)
		return false;
	if (is_resident(g, x))
		return true;
	*maker = from;
	return f->reads.count[x] == 1 && from->nin == 1 && from->nout == 1
		&& from->phase == n->phase && is_resident(g, from->in[0]);
}

static NodeId
begin_of(const Graph *g, const struct gather *p)
{
	return node_id(g, p->maker ? p->maker : p->node);
}

/* Nodes of the gather's side behind the last one that overwrites the piece. */
static bool
stays_before(const Graph *g, const Node *n, const struct gather *p)
{
	const Node *first = &g->node[begin_of(g, p)];

	return n->count_pass != first->count_pass
		|| (n->phase == PH_FORWARD) != (first->phase == PH_FORWARD)
		|| (has_flag(n, F_WRITES | F_UPDATE)
		    && reads_owner(g, n, first->in[0]));
}

static bool
one_stays_before(const Graph *g, const Node *n, const struct gather *p,
                 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (stays_before(g, n, &p[i]))
			return true;
	return false;
}

/* Whether gather k may begin beside those from k + 1 to end - 1, which may
 * begin where k + 1 does. */
static bool
may_join(const struct prefetch *f, uint32_t k, uint32_t end)
{
	const struct gather *p = &f->gather[k];
	NodeId at = begin_of(f->g, &p[1]);

	if (!nodes_may_join(p->node, p[1].node))
		return false;
	while (at > begin_of(f->g, p)
	       && !one_stays_before(f->g, &f->g->node[at - 1], p + 1,
	                            end - k - 1))
		at--;
	return at == begin_of(f->g, p);
}

/* The first gather of the message before gather `end`.  *start: seconds of work
 * by which it must be over, as the lane is not free later; then those when it
 * begins.  A gather that would be on its way at that time joins it. */
static uint32_t
message_before(const struct prefetch *f, uint32_t end, double *start)
{
	uint32_t k = end;
	double latency = transfer_latency(f->g, f->gather[k - 1].node);
	double sec = latency, needed = *start;

	do {
		k--;
		needed = fmin(needed, f->gather[k].needed);
		sec += overlap_cost(f->choice, f->g, f->gather[k].node).sec
			- latency;
		*start = needed - MARGIN * sec;
	} while (k > 0 && latency > f->choice->latency * sec
	         && f->gather[k - 1].needed > *start
	         && may_join(f, k - 1, end));
	return k;
}

/* The first node that gathers k to end - 1 may stand before, at `start` of the
 * work or later. */
static NodeId
prefetch_place(const struct prefetch *f, uint32_t k, uint32_t end, double start)
{
	const struct gather *p = &f->gather[k];
	NodeId at = begin_of(f->g, p);

	while (at > 1 && f->moves.work[at] > start
	       && !one_stays_before(f->g, &f->g->node[at - 1], p, end - k))
		at--;
	return at;
}

static void
place_message(struct prefetch *f, uint32_t k, uint32_t end, NodeId to)
{
	for (uint32_t i = k; i < end; i++) {
		f->moves.to[node_id(f->g, f->gather[i].node)] = to;
		f->moves.to[begin_of(f->g, &f->gather[i])] = to;
	}
}

static void
place_prefetches(struct prefetch *f)
{
	double start = f->moves.work[f->g->nnode];

	for (uint32_t end = f->n, k; end > 0; end = k) {
		uint32_t before = 0;
		double other;

		k = message_before(f, end, &start);
		other = start;
		if (k > 0)
			before = message_before(f, k, &other);
		if (before > 0)
			start = fmax(start, f->gather[before - 1].needed);
		place_message(f, k, end, prefetch_place(f, k, end, start));
	}
}

void
move_gathers(Graph *g, const struct overlap_choice *c, Arena *a)
{
	struct prefetch f = { .g = g, .choice = c,
		.moves = moves_new(g, c, a), .reads = reads_of(g, a),
		.gather = arena_array(a, g->nnode, sizeof *f.gather) };

	FOR_NODES (n, g) {
		struct gather p = { .node = n };
		NodeId read = n->nout ? f.reads.first[n->out[0]] : 0;

		if (!read || !c->chosen[n->out[0]]
		    || !find_maker(&f, n, &p.maker))
			continue;
		p.needed = f.moves.work[read];
		f.gather[f.n++] = p;
	}
	if (f.n == 0)
		return;
	place_prefetches(&f);
	moves_apply(&f.moves, g, a);
}
