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
 */
#include "passes/overlap/moves.h"

enum { WINDOW = 64 };                   /* nodes that are looked at */

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

/* The last gradient that a stage sends to others in its update; 0: none.  What
 * waits for all stages comes behind it, or they would wait for each other. */
static NodeId
last_sent(const Graph *g)
{
	NodeId last = 0;

	FOR_NODES (n, g)
		if (has_flag(n, F_STAGES) && n->nin > 0
		    && n->phase == PH_UPDATE)
			last = node_id(g, n);
	return last;
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
	NodeId sent = last_sent(g);
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
		if (to && to < sent && id > sent)
			to = sent;
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
move_behind(Graph *g, const struct overlap_choice *choice, Arena *a)
{
	struct sink_window w = { .g = g, .n = g->nnode - 1,
		.order = arena_array(a, g->nnode, sizeof *w.order),
		.taken = arena_array(a, g->nnode, sizeof *w.taken),
		.sec = arena_array(a, g->nnode, sizeof *w.sec),
		.read = arena_array(a, g->nval, sizeof *w.read) };

	FOR_NODES (n, g) {
		w.order[node_id(g, n) - 1] = node_id(g, n);
		w.sec[node_id(g, n)] = overlap_cost(choice, g, n).sec;
	}
	for (uint32_t i = 0; i < w.n; i++) {
		const Node *c = &g->node[w.order[i]];
		bool joins = i + 1 < w.n
			&& nodes_may_join(c, &g->node[w.order[i + 1]]);
		bool joined = i > 0
			&& nodes_may_join(c, &g->node[w.order[i - 1]]);

		if (has_flag(c, F_SENDS) && c->phase != PH_UPDATE
		    && choice->chosen[c->out[0]] && !joins && !joined)
			sink_nodes(&w, i);
	}
	graph_reorder(g, w.order, w.n);
}

/* ---- turns ---- */

/* Node.place is the turn of a stage: forward, backward, weight, update. */
static void
mark_turns(Graph *g)
{
	NodeId boundary = graph_boundary(g);
	NodeId weight = g->weight_slots ? graph_weight_boundary(g) : g->nnode;

	FOR_NODES (n, g)
		n->place = node_id(g, n) <= boundary ? 1
			: n->phase == PH_UPDATE ? 4
			: node_id(g, n) <= weight ? 2 : 3;
}

/* What was moved into another turn stands at its border. */
static void
restore_turns(Graph *g, Arena *a)
{
	NodeId *order = arena_array(a, g->nnode, sizeof *order);
	uint32_t n = 0;

	for (uint32_t turn = 1; turn <= 4; turn++)
		FOR_NODES (m, g)
			if (m->place == turn)
				order[n++] = node_id(g, m);
	graph_reorder(g, order, n);
	FOR_NODES (m, g)
		m->place = 0;
}

void
overlap_order(Graph *g, const struct overlap_choice *c, Arena *scratch)
{
	if (g->stages)
		mark_turns(g);
	move_gathers(g, c, scratch);
	move_sums(g, c, scratch);
	move_behind(g, c, scratch);
	move_early(g, c->chosen, scratch);
	join_sums(g, c, PH_UPDATE, scratch);
	if (g->stages)
		restore_turns(g, scratch);
}
