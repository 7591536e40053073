/* Verify the stages of a pipeline against each other.
 *
 * what    messages: each tag is sent once and received once, between the same
 *         stages, with the same type, shape and placement, in the same kind of
 *         turn; forward to the next stage, backward to the one before; both
 *         ends of a link have the same order
 *         turns: each micro-batch runs forward and then backward, in a slot
 *         that no other has meanwhile; backward in the order of micro-batches;
 *         then, if backward is two turns, so does the second one, and none of
 *         its nodes is a message
 *         order: all turns end if each rank takes those of its stages in their
 *         order, and at most one message of a tag is on its way
 * cost    linear in nodes and turns
 */
#include "ir/placement.h"
#include "passes/pipeline/pipeline.h"

#include <stdarg.h>
#include <stdio.h>

struct message_end {
	int stage;                      /* -1: there is none */
	enum turn_kind kind;
	const Node *node;
};

struct stages_check {
	const struct pipeline *l;
	Diag *d;
	Arena *a;
	int64_t ntag;
	struct message_end *sent, *received;    /* by tag */
	/* by stage and kind of turn: tags in the order of nodes, ~tag of what
	 * is received */
	int64_t **list[TURN_KINDS];
	int *count[TURN_KINDS];
	int faults;
};

static void __attribute__((format(printf, 3, 4)))
bad(struct stages_check *c, int stage, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	diag_error(c->d, "stage %d: %s", stage, text);
	c->faults++;
}

/* ---- messages ---- */

static bool
is_message(const Node *n)
{
	return op_info[n->op].flags & F_STAGES;
}

static bool
sends(const Node *n)
{
	return is_message(n) && n->nin > 0;
}

static int64_t
tag_of(const Node *n)
{
	return sends(n) ? n->attr.SEND.tag : n->attr.RECEIVE.tag;
}

static enum turn_kind
turn_of(const Graph *g, const Node *n)
{
	return node_id(g, n) <= graph_boundary(g) ? TURN_FORWARD
		: n->phase == PH_UPDATE ? TURN_UPDATE
		: g->weight_slots && node_id(g, n) > graph_weight_boundary(g)
		? TURN_WEIGHT : TURN_BACKWARD;
}

/* The next message behind node i and its kind of turn; NULL: none. */
static const Node *
next_message(const Graph *g, NodeId *i)
{
	while (++*i < g->nnode)
		if (is_message(&g->node[*i]))
			return &g->node[*i];
	return NULL;
}

bool
stages_have_same_messages(const Graph *a, const Graph *b)
{
	NodeId i = 0, k = 0;

	for (;;) {
		const Node *x = next_message(a, &i), *y = next_message(b, &k);

		if (!x || !y)
			return !x && !y;
		if (tag_of(x) != tag_of(y) || sends(x) != sends(y)
		    || turn_of(a, x) != turn_of(b, y))
			return false;
	}
}

static void
take_end(struct stages_check *c, int stage, const Node *n)
{
	const Graph *g = c->l->stage[stage].graph;
	enum turn_kind kind = turn_of(g, n);
	int64_t tag = tag_of(n) - c->l->first_tag;
	struct message_end *end = sends(n) ? c->sent : c->received;

	if (tag < 0 || tag >= c->ntag || end[tag].node) {
		bad(c, stage, "tag %lld is %s twice or out of range",
		    (long long)tag, sends(n) ? "sent" : "received");
		return;
	}
	end[tag] = (struct message_end){ stage, kind, n };
	c->list[kind][stage][c->count[kind][stage]++] =
		sends(n) ? tag : ~tag;
}

static void
list_messages(struct stages_check *c)
{
	int n = c->l->nstage;

	for (int k = 0; k < n; k++)
		FOR_NODES (m, c->l->stage[k].graph)
			c->ntag += sends(m);
	c->sent = arena_array(c->a, (size_t)c->ntag + 1, sizeof *c->sent);
	c->received = arena_array(c->a, (size_t)c->ntag + 1,
	                          sizeof *c->received);
	for (int kind = 0; kind < TURN_KINDS; kind++) {
		c->list[kind] = arena_array(c->a, (size_t)n,
		                            sizeof *c->list[kind]);
		c->count[kind] = arena_array(c->a, (size_t)n,
		                             sizeof *c->count[kind]);
		for (int k = 0; k < n; k++)
			c->list[kind][k] = arena_array(c->a,
				2 * (size_t)c->ntag + 1, sizeof(int64_t));
	}
	for (int k = 0; k < n; k++)
		FOR_NODES (m, c->l->stage[k].graph)
			if (is_message(m))
				take_end(c, k, m);
}

static void
check_message(struct stages_check *c, int64_t tag)
{
	const struct message_end *s = &c->sent[tag], *r = &c->received[tag];
	const Val *x, *y;
	int way;

	if (!s->node || !r->node) {
		bad(c, s->node ? s->stage : r->node ? r->stage : 0,
		    "tag %lld is not both sent and received", (long long)tag);
		return;
	}
	x = &c->l->stage[s->stage].graph->val[s->node->in[0]];
	y = &c->l->stage[r->stage].graph->val[r->node->out[0]];
	way = r->stage - s->stage;
	if (s->node->attr.SEND.peer != r->stage
	    || r->node->attr.RECEIVE.peer != s->stage)
		bad(c, s->stage, "tag %lld (%s) goes to stage %lld, and stage "
		    "%d receives it from stage %lld", (long long)tag, x->name,
		    (long long)s->node->attr.SEND.peer, r->stage,
		    (long long)r->node->attr.RECEIVE.peer);
	if (s->kind != r->kind || (s->kind == TURN_FORWARD && way != 1)
	    || (s->kind == TURN_BACKWARD && way != -1) || way == 0
	    || s->kind == TURN_WEIGHT)
		bad(c, s->stage, "tag %lld (%s) goes the wrong way",
		    (long long)tag, x->name);
	/* a gradient is received as pass optim accumulates it */
	if (s->kind == TURN_UPDATE
	    && !(c->l->stage[s->stage].graph->props & P_UPD))
		return;
	if (x->dt != y->dt || !shape_eq(&x->shape, &y->shape)
	    || (placement_is_replicated(&x->placement)
	        ? !placement_is_replicated(&y->placement)
	        : !placement_eq(&x->placement, &y->placement)))
		bad(c, s->stage, "tag %lld: '%s' is sent and '%s' of another "
		    "type, shape or placement is received", (long long)tag,
		    x->name, y->name);
}

/* What stage k sends to each other one arrives in that order. */
static void
check_order(struct stages_check *c, int kind, int k)
{
	int64_t *last = arena_array(c->a, (size_t)c->l->nstage, sizeof *last);
	int64_t *place = arena_array(c->a, (size_t)c->ntag + 1, sizeof *place);

	for (int s = 0; s < c->l->nstage; s++)
		for (int i = 0; i < c->count[kind][s]; i++)
			if (c->list[kind][s][i] < 0)
				place[~c->list[kind][s][i]] = i + 1;
	for (int i = 0; i < c->count[kind][k]; i++) {
		int64_t tag = c->list[kind][k][i], to;

		if (tag < 0 || !c->received[tag].node)
			continue;
		to = c->received[tag].stage;
		if (place[tag] < last[to])
			bad(c, k, "tag %lld arrives before an earlier one",
			    (long long)tag);
		last[to] = place[tag];
	}
}

/* ---- turns ---- */

/* One turn of each kind for every micro-batch. */
static bool
all_have_run(const struct stages_check *c, const int64_t *next)
{
	return next[TURN_FORWARD] == c->l->nmicro
		&& next[TURN_BACKWARD] == c->l->nmicro
		&& next[TURN_WEIGHT] == (c->l->zero_bubble ? c->l->nmicro : 0);
}

/* A pool of slots of what turns of kind `from` leave to those of kind `to`:
 * micro-batch m has slot m modulo their number.  If there is one slot alone, no
 * other micro-batch runs in between. */
static void
check_pool(struct stages_check *c, int k, enum turn_kind from,
           enum turn_kind to, int slots)
{
	const struct pipeline_stage *s = &c->l->stage[k];
	int64_t *busy = arena_array(c->a, (size_t)slots + 1, sizeof *busy);

	for (int i = 0; i < s->nturn; i++) {
		const struct turn *t = &s->turn[i];
		int64_t *of = slots > 0 ? &busy[t->micro % (uint32_t)slots]
			: busy;
		bool other = slots == 1 && *busy && *busy != t->micro + 1;

		if (t->kind != from && t->kind != to && !other)
			continue;
		if (slots <= 0 || other
		    || *of != (t->kind == to ? t->micro + 1 : 0)) {
			bad(c, k, "turn %d: micro-batch %u cannot run in slot "
			    "%d", i, t->micro, t->slot);
			return;
		}
		*of = t->kind == to ? 0 : (int64_t)t->micro + 1;
	}
}

static void
check_turns(struct stages_check *c, int k)
{
	const struct pipeline_stage *s = &c->l->stage[k];
	bool two = c->l->zero_bubble;
	int slots = two ? s->through_slots : s->slots;
	int64_t next[TURN_KINDS] = { 0 };

	for (int i = 0; i < s->nturn; i++) {
		const struct turn *t = &s->turn[i];

		if (t->kind == TURN_UPDATE) {
			if (i + 1 != s->nturn || !all_have_run(c, next))
				bad(c, k, "turn %d: the update is not the last "
				    "turn", i);
			continue;
		}
		if (t->micro != next[t->kind]++ || slots <= 0
		    || t->slot != t->micro % (uint32_t)slots) {
			bad(c, k, "turn %d: micro-batch %u cannot run in slot "
			    "%d", i, t->micro, t->slot);
			return;
		}
	}
	if (!all_have_run(c, next))
		bad(c, k, "not all micro-batches run");
	check_pool(c, k, TURN_FORWARD, TURN_BACKWARD, s->slots);
	if (two) {
		check_pool(c, k, TURN_BACKWARD, TURN_WEIGHT, s->weight_slots);
		check_pool(c, k, TURN_FORWARD, TURN_WEIGHT, s->through_slots);
	}
}

/* Both plans of a stage, of which the last micro-batch has the first. */
static void
check_second(struct stages_check *c, int k)
{
	const struct pipeline_stage *s = &c->l->stage[k];
	int n = 0;

	if (!s->second.graph)
		return;
	for (int i = 0; i < s->slots; i++)
		n += s->second.has[i];
	if (n != s->second.slots || n < 1 || n >= s->slots
	    || graph_slots(s->graph) + n != s->slots
	    || s->second.has[s->turn[s->nturn - 1].slot]
	    || !stages_have_same_messages(s->graph, s->second.graph))
		bad(c, k, "its two plans do not fit each other");
}

/* Turns contain their nodes one after the other. */
static void
check_phases(struct stages_check *c, int k, const Graph *g)
{
	NodeId boundary = graph_boundary(g), weight = graph_weight_boundary(g);
	bool updates = false;

	FOR_NODES (n, g) {
		updates |= n->phase == PH_UPDATE;
		if (updates && n->phase != PH_UPDATE) {
			bad(c, k, "node %u stands behind the start of the "
			    "update", node_id(g, n));
			return;
		}
		if ((node_id(g, n) <= boundary && n->wait > boundary)
		    || (node_id(g, n) <= weight && n->wait > weight))
			bad(c, k, "node %u is a transfer that ends in another "
			    "turn", node_id(g, n));
	}
}

/* Where each stage is. */
struct cursor {
	int turn, at;
};

/* As far as stage k comes; order: the next turn of its rank.  Whether it was
 * one message at least. */
static bool
advance(struct stages_check *c, int k, struct cursor *p, uint32_t *order,
        bool *full)
{
	const struct pipeline_stage *s = &c->l->stage[k];
	bool moved = false;

	while (p->turn < s->nturn && s->turn[p->turn].order == *order) {
		enum turn_kind kind = s->turn[p->turn].kind;
		int64_t tag;

		if (p->at == c->count[kind][k]) {
			p->turn++;
			p->at = 0;
			++*order;
			moved = true;
			continue;
		}
		tag = c->list[kind][k][p->at];
		if (tag < 0 ? !full[~tag] : full[tag])
			break;
		full[tag < 0 ? ~tag : tag] = tag >= 0;
		p->at++;
		moved = true;
	}
	return moved;
}

static void
check_ends(struct stages_check *c)
{
	int n = c->l->nstage;
	struct cursor *p = arena_array(c->a, (size_t)n, sizeof *p);
	uint32_t *order = arena_array(c->a, (size_t)c->l->nrank, sizeof *order);
	bool *full = arena_array(c->a, (size_t)c->ntag + 1, sizeof *full);
	bool moved = true;

	while (moved) {
		moved = false;
		for (int k = 0; k < n; k++)
			moved |= advance(c, k, &p[k],
			                 &order[k % c->l->nrank], full);
	}
	for (int k = 0; k < n; k++)
		if (p[k].turn < c->l->stage[k].nturn) {
			bad(c, k, "turn %d waits for other stages forever",
			    p[k].turn);
			return;
		}
}

bool
stages_verify(const struct pipeline *l, Diag *d)
{
	struct stages_check c = { .l = l, .d = d, .a = arena_new() };

	list_messages(&c);
	for (int64_t tag = 0; tag < c.ntag; tag++)
		check_message(&c, tag);
	for (int k = 0; k < l->nstage; k++) {
		for (int kind = 0; kind < TURN_KINDS; kind++)
			check_order(&c, kind, k);
		check_turns(&c, k);
		check_phases(&c, k, l->stage[k].graph);
		if (l->stage[k].second.graph)
			check_phases(&c, k, l->stage[k].second.graph);
		check_second(&c, k);
	}
	if (!c.faults)
		check_ends(&c);
	arena_free(c.a);
	return !c.faults;
}
