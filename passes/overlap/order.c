/* The order of nodes around transfers: nodes between the start of a transfer
 * and its first reader run during the transfer.
 *
 * Reductions of gradients are in phase update, after all of backward.  They,
 * and the nodes that gather their operands, move to the place where the last
 * operand is computed, like DDP's buckets (Li et al. 2020).
 *
 * In backward, the gradient of a weight comes before that of the input, for
 * which other ranks wait.  So the weight gradient moves after the start of the
 * transfer.  Only as much work moves as the transfer takes, because moved
 * nodes keep their operands alive.
 *
 * A parameter is gathered from its pieces, which nothing in the step computes,
 * so that the gather begins as long before its first reader as it takes
 * (prefetch of FSDP, Zhao et al. 2023): places are found from the last gather
 * to the first, each to end before the next one begins.  It begins no earlier
 * than the gather before the last one is needed, so that two are in flight.
 *
 * An update in backward moves behind work that hides the sum of its gradient,
 * and so does the sum over zero groups behind that within them.
 */
#include "passes/overlap/overlap.h"
#include "passes/cost/cost.h"

enum { WINDOW = 64 };                   /* nodes that are looked at */

static bool
has_flag(const Node *n, uint64_t flags)
{
	return op_info[n->op].flags & flags;
}

/* ---- sums of gradients ---- */

struct early_move {
	const Graph *g;
	const bool *chosen;
	bool *wanted;                   /* the node moves */
	NodeId *to;                     /* behind this one */
};

static NodeId
def_of(const struct early_move *e, ValId v)
{
	NodeId id = v ? e->g->val[v].def : 0;

	return id && e->wanted[id] ? e->to[id] : id;
}

/* What reads the result of a transfer would have to wait for it. */
static bool
reads_sent(const struct early_move *e, const Node *n)
{
	for (int i = 0; i < n->nin; i++) {
		ValId v = n->in[i];
		const Node *def = &e->g->node[e->g->val[v].def];

		if (v && e->g->val[v].def
		    && (has_flag(def, F_SENDS)
		        || (has_flag(def, F_VIEW) && reads_sent(e, def))))
			return true;
	}
	return false;
}

/* Whether node id, in phase update, and all it needs there can move; marks
 * them. */
static bool
can_move(struct early_move *e, NodeId id)
{
	const Node *n = &e->g->node[id];

	if (e->wanted[id] || n->phase != PH_UPDATE)
		return true;
	if (has_flag(n, F_WRITES | F_UPDATE) || reads_sent(e, n))
		return false;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && e->g->val[n->in[i]].def
		    && !can_move(e, e->g->val[n->in[i]].def))
			return false;
	e->wanted[id] = true;
	return true;
}

/* Nodes of phase update that move, behind the node that makes their last
 * operand; among those of one place the order stays. */
static void
move_early(Graph *g, const bool *chosen, Arena *a)
{
	struct early_move e = { .g = g, .chosen = chosen,
		.wanted = arena_array(a, g->nnode, sizeof *e.wanted),
		.to = arena_array(a, g->nnode, sizeof *e.to) };
	NodeId *next = arena_array(a, g->nnode, sizeof *next);
	NodeId *last = arena_array(a, g->nnode, sizeof *last);
	NodeId *order = arena_array(a, g->nnode, sizeof *order);
	uint32_t n = 0;

	FOR_NODES (s, g)
		if (s->phase == PH_UPDATE && has_flag(s, F_SENDS)
		    && chosen[s->out[0]])
			can_move(&e, node_id(g, s));
	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *s = &g->node[id];
		NodeId to = 0;

		for (int i = 0; e.wanted[id] && i < s->nin; i++)
			if (def_of(&e, s->in[i]) > to)
				to = def_of(&e, s->in[i]);
		e.to[id] = to;
		e.wanted[id] &= to > 0;
		if (!e.wanted[id])
			continue;
		next[last[to] ? last[to] : to] = id;
		last[to] = id;
	}
	for (NodeId id = 1; id < g->nnode; id++)
		for (NodeId k = e.wanted[id] ? 0 : id; k; k = next[k])
			order[n++] = k;
	graph_reorder(g, order, n);
}

/* ---- work behind the beginning ---- */

struct sink_window {
	const Graph *g;
	NodeId *order;                  /* [g->nnode - 1] */
	uint32_t n;
	bool *taken;                    /* by node: it has moved once */
	double *sec;                    /* by node */
	bool *read;                     /* by value: some node that stays needs
	                                 * it behind the place looked at */
};

static void
note_reads(struct sink_window *w, const Node *n, bool on)
{
	for (int i = 0; i < n->nin; i++)
		w->read[n->in[i]] = on;
}

/* Whether node d can go behind those that stay; a view would be nothing to wait
 * for. */
static bool
can_sink(const struct sink_window *w, const Node *d)
{
	NodeId id = node_id(w->g, d);

	if (has_flag(d, F_VIEW) || w->taken[id] || w->sec[id] <= 0)
		return false;
	for (int i = 0; i < d->nout; i++)
		if (w->read[d->out[i]])
			return false;
	return true;
}

/* It overwrites memory that is not its own. */
static bool
overwrites_other(const Graph *g, const Node *n)
{
	if (has_flag(n, F_VIEW))
		return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && g->val[n->out[i]].base)
			return true;
	return has_flag(n, F_WRITES | F_UPDATE);
}

/* Nothing goes from one side of it to the other. */
static bool
is_border(const Graph *g, const Node *n, const Node *from)
{
	return has_flag(n, F_SENDS) || overwrites_other(g, n)
		|| n->phase == PH_UPDATE
		|| n->count_pass != from->count_pass
		|| (n->phase == PH_FORWARD) != (from->phase == PH_FORWARD);
}

static bool
reads_owner(const Graph *g, const Node *n, ValId v)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && val_owner(g, n->in[i]) == val_owner(g, v))
			return true;
	return false;
}

/* Seconds that the transfer at place i takes longer than what runs already
 * between it and its first reader, which stays there. */
static double
missing_behind(struct sink_window *w, uint32_t i)
{
	const Graph *g = w->g;
	ValId y = g->node[w->order[i]].out[0];
	double sec = w->sec[w->order[i]];

	for (uint32_t k = i + 1; k < w->n && k - i < WINDOW && sec > 0; k++) {
		const Node *n = &g->node[w->order[k]];

		if (has_flag(n, F_SENDS | F_UPDATE) || reads_owner(g, n, y))
			break;
		sec -= w->sec[w->order[k]];
		w->taken[w->order[k]] = true;
	}
	return sec;
}

/* Those before the transfer at place i, from the nearest on, that may come
 * behind it, until they take as long as it does. */
static void
sink_nodes(struct sink_window *w, uint32_t i)
{
	const Graph *g = w->g;
	const Node *c = &g->node[w->order[i]];
	double missing = missing_behind(w, i);
	NodeId stay[WINDOW], move[WINDOW];
	uint32_t nstay = 0, nmove = 0, at;

	w->taken[w->order[i]] = true;
	stay[nstay++] = w->order[i];
	note_reads(w, c, true);
	for (at = i; at > 0 && i - at < WINDOW - 1 && missing > 0; at--) {
		NodeId id = w->order[at - 1];

		if (is_border(g, &g->node[id], c))
			break;
		if (!can_sink(w, &g->node[id])) {
			note_reads(w, &g->node[id], true);
			stay[nstay++] = id;
			continue;
		}
		move[nmove++] = id;
		w->taken[id] = true;
		missing -= w->sec[id];
	}
	for (uint32_t k = nstay; k-- > 0;) {
		note_reads(w, &g->node[stay[k]], false);
		w->order[at++] = stay[k];
	}
	while (nmove > 0)
		w->order[at++] = move[--nmove];
}

static void
move_behind(Graph *g, const bool *chosen, Arena *a)
{
	struct sink_window w = { .g = g, .n = g->nnode - 1,
		.order = arena_array(a, g->nnode, sizeof *w.order),
		.taken = arena_array(a, g->nnode, sizeof *w.taken),
		.sec = arena_array(a, g->nnode, sizeof *w.sec),
		.read = arena_array(a, g->nval, sizeof *w.read) };

	FOR_NODES (n, g) {
		w.order[node_id(g, n) - 1] = node_id(g, n);
		w.sec[node_id(g, n)] = node_cost(g, n).sec;
	}
	for (uint32_t i = 0; i < w.n; i++) {
		const Node *c = &g->node[w.order[i]];

		if (has_flag(c, F_SENDS) && c->phase != PH_UPDATE
		    && chosen[c->out[0]])
			sink_nodes(&w, i);
	}
	graph_reorder(g, w.order, w.n);
}

/* ---- nodes that move by work ---- */

enum { PERCENT_MORE = 25 };             /* predictions are not exact */

struct moves {
	const Graph *g;
	double *work;                   /* seconds of the nodes before this one
	                                 * that send nothing */
	NodeId *to;                     /* by node: it moves to the place before
	                                 * this one, which may be behind the
	                                 * last; 0: it stays */
};

static struct moves
moves_new(const Graph *g, Arena *a)
{
	struct moves m = { g,
		arena_array(a, (size_t)g->nnode + 1, sizeof *m.work),
		arena_array(a, g->nnode, sizeof *m.to) };

	FOR_NODES (n, g)
		m.work[node_id(g, n) + 1] = m.work[node_id(g, n)]
			+ (has_flag(n, F_SENDS) ? 0 : node_cost(g, n).sec);
	return m;
}

/* Seconds of work that surely hide the transfer. */
static double
work_to_hide(const Graph *g, const Node *transfer)
{
	return node_cost(g, transfer).sec * (100 + PERCENT_MORE) / 100;
}

static void
moves_apply(const struct moves *m, Graph *g, Arena *a)
{
	NodeId end = g->nnode;
	NodeId *order = arena_array(a, end, sizeof *order);
	NodeId *next = arena_array(a, end, sizeof *next);
	NodeId *first = arena_array(a, (size_t)end + 1, sizeof *first);
	uint32_t n = 0;

	for (NodeId id = end - 1; id > 0; id--)
		if (m->to[id]) {
			next[id] = first[m->to[id]];
			first[m->to[id]] = id;
		}
	for (NodeId id = 1; id <= end; id++) {
		for (NodeId k = first[id]; k; k = next[k])
			order[n++] = k;
		if (id < end && !m->to[id])
			order[n++] = id;
	}
	graph_reorder(g, order, n);
}

/* ---- gathers of pieces ---- */

struct prefetch {
	const Graph *g;
	struct moves moves;
	NodeId *read;                   /* by value: the first node that reads
	                                 * it */
	uint32_t *reads;                /* by value: how many do */
};

static bool
is_resident(const Graph *g, ValId v)
{
	return g->val[val_owner(g, v)].kind != V_TEMP;
}

/* What turns a resident piece into the operand of n, which alone reads it;
 * NULL: n gathers such a piece itself.  *ok is false if n gathers no piece. */
static const Node *
piece_maker(const struct prefetch *f, const Node *n, bool *ok)
{
	const Graph *g = f->g;
	ValId x = n->in[0];
	const Node *from = &g->node[g->val[x].def];

	*ok = has_flag(n, F_SENDS) && n->phase != PH_UPDATE
		&& g->val[x].shard && !g->val[n->out[0]].shard;
	if (!*ok || is_resident(g, x))
		return NULL;
	*ok = f->reads[x] == 1 && from->nin == 1 && from->nout == 1
		&& from->phase == n->phase && is_resident(g, from->in[0]);
	return from;
}

/* Nodes of the side of `like` behind the last one that overwrites v. */
static bool
stays_before(const Graph *g, const Node *n, const Node *like, ValId v)
{
	return n->count_pass != like->count_pass
		|| (n->phase == PH_FORWARD) != (like->phase == PH_FORWARD)
		|| (has_flag(n, F_WRITES | F_UPDATE) && reads_owner(g, n, v));
}

/* The first node that it may stand before, at `start` of the work or later. */
static NodeId
prefetch_place(const struct prefetch *f, const Node *n, const Node *maker,
               double start)
{
	const Graph *g = f->g;
	const Node *first = maker ? maker : n;
	NodeId at = node_id(g, first);

	while (at > 1 && f->moves.work[at] > start
	       && !stays_before(g, &g->node[at - 1], n, first->in[0]))
		at--;
	return at;
}

/* Work before the readers of the last two gathers before node id; -1: there are
 * none. */
static double
before_last_two(const struct prefetch *f, const NodeId *gather, uint32_t k)
{
	return k < 2 ? -1
		: f->moves.work[f->read[f->g->node[gather[k - 2]].out[0]]];
}

static void
place_prefetches(struct prefetch *f, const NodeId *gather, uint32_t n)
{
	double next = f->moves.work[f->g->nnode];

	for (uint32_t k = n; k-- > 0;) {
		const Node *c = &f->g->node[gather[k]];
		bool ok;
		const Node *maker = piece_maker(f, c, &ok);
		double end = f->moves.work[f->read[c->out[0]]];
		double least = before_last_two(f, gather, k);
		NodeId to;

		next = (end < next ? end : next) - work_to_hide(f->g, c);
		if (next < least)
			next = least;
		to = prefetch_place(f, c, maker, next);
		f->moves.to[gather[k]] = to;
		if (maker)
			f->moves.to[node_id(f->g, maker)] = to;
	}
}

static void
move_up(Graph *g, const bool *chosen, Arena *a)
{
	struct prefetch f = { .g = g,
		.read = arena_array(a, g->nval, sizeof *f.read),
		.reads = arena_array(a, g->nval, sizeof *f.reads) };
	NodeId *gather = arena_array(a, g->nnode, sizeof *gather);
	uint32_t n = 0;
	bool ok;

	FOR_NODES (c, g)
		for (int i = 0; i < c->nin; i++) {
			if (!f.read[c->in[i]])
				f.read[c->in[i]] = node_id(g, c);
			f.reads[c->in[i]]++;
		}
	FOR_NODES (c, g) {
		piece_maker(&f, c, &ok);
		if (ok && chosen[c->out[0]] && f.read[c->out[0]])
			gather[n++] = node_id(g, c);
	}
	if (n == 0)
		return;
	f.moves = moves_new(g, a);
	place_prefetches(&f, gather, n);
	moves_apply(&f.moves, g, a);
}

/* ---- updates in backward ---- */

/* Whether update u may run behind node n, too. */
static bool
may_follow(const Graph *g, const Node *u, const Node *n)
{
	for (int k = 0; k < u->nout; k++)
		if (u->out[k] && reads_owner(g, n, u->out[k]))
			return false;
	for (int k = 0; k < u->nin; k++)
		if (u->in[k] && reads_owner(g, n, u->in[k]))
			return false;
	return n->phase != PH_UPDATE || has_flag(n, F_UPDATE | F_SENDS);
}

/* The gradient that update n reads; 0: it is none. */
static ValId
updating_gradient(const Graph *g, const Node *n)
{
	(void)g;
	return has_flag(n, F_UPDATE) ? n->in[1] : 0;
}

/* The shard of a gradient that n adds up over zero groups; 0: none. */
static ValId
added_shard(const Graph *g, const Node *n)
{
	return has_flag(n, F_SENDS) && g->val[n->in[0]].shard
		&& g->val[n->out[0]].shard ? n->in[0] : 0;
}

/* What follows the sum of a gradient runs when that has had time to arrive: the
 * shard of a gradient is all that is kept for it.  gradient_of: what such a
 * node reads, 0 for others. */
static void
defer_readers(Graph *g, const bool *chosen,
              ValId (*gradient_of)(const Graph *, const Node *), Arena *a)
{
	struct moves m = { .to = NULL };

	FOR_NODES (u, g) {
		NodeId sum = g->val[gradient_of(g, u)].def;
		const Node *s = &g->node[sum];
		NodeId at = node_id(g, u) + 1;
		double until;

		if (!sum || !has_flag(s, F_SENDS) || s->phase == PH_UPDATE
		    || !chosen[s->out[0]])
			continue;
		if (!m.to)
			m = moves_new(g, a);
		until = m.work[sum] + work_to_hide(g, s);
		while (at < g->nnode && m.work[at] < until
		       && may_follow(g, u, &g->node[at]))
			at++;
		m.to[node_id(g, u)] = at;
	}
	if (m.to)
		moves_apply(&m, g, a);
}

void
overlap_order(Graph *g, const bool *chosen, Arena *scratch)
{
	move_up(g, chosen, scratch);
	defer_readers(g, chosen, added_shard, scratch);
	defer_readers(g, chosen, updating_gradient, scratch);
	move_behind(g, chosen, scratch);
	move_early(g, chosen, scratch);
}
