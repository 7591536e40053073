/* Segments and layers of a forward graph, for reports.
 *
 * what    the forward nodes between two places where a single activation
 *         crosses; the longest run of segments that repeats with a period
 * method  liveness of owners in forward alone.  Two segments are alike if
 *         their nodes, views apart, have the same ops and shapes in the same
 *         order; among the periods the one that covers most segments wins,
 *         the smallest at equality.
 * needs   P_LAYOUT
 * cost    nodes + segments * longest period
 */
#include "ir/segments.h"

enum { PERIOD_MAX = 64, FIRST = 1, SECOND = 2 };

bool *
segments_active(const Graph *g, Arena *arena)
{
	bool *active = arena_array(arena, g->nval, sizeof *active);

	FOR_VALS (v, g)
		active[val_id(g, v)] = v->kind == V_PARAM;
	FOR_NODES (n, g) {
		bool any = false;

		for (int i = 0; i < n->nin; i++)
			any |= active[n->in[i]];
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				active[n->out[i]] = any;
	}
	return active;
}

/* By owner: the last forward node that reads it or a view of it. */
static NodeId *
last_forward_reads(const Graph *g, Arena *arena)
{
	NodeId *end = arena_array(arena, g->nval, sizeof *end);

	FOR_NODES (n, g)
		for (int i = 0; n->phase == PH_FORWARD && i < n->nin; i++)
			if (n->in[i])
				end[val_owner(g, n->in[i])] = node_id(g, n);
	return end;
}

uint32_t *
segments_crossing(const struct crossing *c, NodeId nnode, Arena *arena)
{
	size_t n = (size_t)nnode + 1;
	int32_t *delta = arena_array(arena, n, sizeof *delta), count = 0;
	uint32_t *which = arena_array(arena, n, sizeof *which), sum = 0;

	/* the sum of the only one that is live is itself; modulo 2^32 */
	for (uint32_t k = 0; k < c->n; k++) {
		if (c->begin[k] >= c->end[k])
			continue;
		delta[c->begin[k]]++;
		delta[c->end[k]]--;
		which[c->begin[k]] += c->id[k];
		which[c->end[k]] -= c->id[k];
	}
	for (NodeId i = 0; i < nnode; i++) {
		count += delta[i];
		sum += which[i];
		which[i] = count == 1 ? sum : 0;
	}
	return which;
}

/* By value: which halves of the batch it depends on, or would cross with; each
 * is a bit. */
static uint8_t *
find_halves(const Graph *g, Arena *arena)
{
	uint8_t *half = arena_array(arena, g->nval, sizeof *half);

	FOR_VALS (v, g)
		if (v->kind == V_INPUT)
			half[val_id(g, v)] = FIRST | SECOND;
	FOR_NODES (n, g) {
		int only = graph_half_of(g, n);
		uint8_t any = (uint8_t)only;

		for (int i = 0; i < n->nin && !only; i++)
			any |= half[n->in[i]];
		for (int i = 0; i < n->nout; i++)
			half[n->out[i]] = any;
	}
	FOR_VALS (v, g)
		if (!half[val_id(g, v)])
			half[val_id(g, v)] = FIRST | SECOND;
	return half;
}

/* By node: the only activation, of those of a half, that lives on after it;
 * 0. */
static ValId *
find_crossing(const Graph *g, const uint8_t *half, uint8_t which, Arena *arena)
{
	bool *active = segments_active(g, arena);
	NodeId *end = last_forward_reads(g, arena);
	struct crossing c = { 0 };

	c.begin = arena_array(arena, g->nval, sizeof *c.begin);
	c.end = arena_array(arena, g->nval, sizeof *c.end);
	c.id = arena_array(arena, g->nval, sizeof *c.id);
	FOR_VALS (v, g) {
		ValId id = val_id(g, v);

		if (v->base || v->kind != V_TEMP || !v->def || !active[id]
		    || (half && !(half[id] & which))
		    || g->node[v->def].phase != PH_FORWARD)
			continue;
		c.begin[c.n] = v->def;
		c.end[c.n] = end[id];
		c.id[c.n++] = id;
	}
	return segments_crossing(&c, g->nnode, arena);
}

static uint64_t
hash_segment_word(uint64_t h, int64_t x)
{
	return (h ^ (uint64_t)x) * 0x100000001b3;
}

/* Where a view of what comes in stands says nothing. */
static uint64_t
sign_word(const Graph *g, const Node *n, uint64_t h)
{
	if (op_info[n->op].flags & F_VIEW && g->val[n->out[0]].base)
		return h;
	h = hash_segment_word(h, n->op);
	for (int i = 0; i < n->nout; i++) {
		const Val *v = &g->val[n->out[i]];

		if (!n->out[i])
			continue;
		h = hash_segment_word(hash_segment_word(h, v->dt),
		                      v->shape.rank);
		for (int k = 0; k < v->shape.rank; k++)
			h = hash_segment_word(h, v->shape.dim[k]);
	}
	return h;
}

/* The longest run with key[i] == key[i + period]; 0 if no two periods. */
static int32_t
longest_run(const uint64_t *key, int32_t n, int32_t period, int32_t *start)
{
	int32_t best = 0, run = 0;

	for (int32_t i = 0; i + period < n; i++) {
		run = key[i] == key[i + period] ? run + 1 : 0;
		if (run > best) {
			best = run;
			*start = i - run + 1;
		}
	}
	return best >= period ? (best + period) / period * period : 0;
}

static void
find_period(struct segments *s, const uint64_t *key)
{
	int32_t covered = 0;

	for (int32_t p = 1; p <= PERIOD_MAX && 2 * p <= s->n; p++) {
		int32_t start = 0, run = longest_run(key, s->n, p, &start);

		if (run <= covered)
			continue;
		covered = run;
		s->first = start;
		s->period = p;
		s->nlayer = run / p;
	}
}

static void
record_node(struct segments *s, const Node *n, NodeId id, int32_t at)
{
	s->attention[at] |= n->op == OP_SOFTMAX || n->op == OP_ATTENTION;
	if (n->op != OP_MATMUL)
		return;
	if (!s->product[at])
		s->product[at] = id;
}

/* The node puts a new value there, perhaps over an old one. */
static bool
writes_value(const Graph *g, const Node *n, ValId owner)
{
	bool hit = false;

	for (int i = 0; i < n->nout; i++)
		hit |= n->out[i] && val_owner(g, n->out[i]) == owner;
	return hit && !(op_info[n->op].flags & F_VIEW
	                && g->val[n->out[0]].base);
}

void
segments_find(struct segments *s, const Graph *g, Arena *arena)
{
	uint8_t *half = g->halves == HALVES_BOTH ? find_halves(g, arena) : NULL;
	ValId *crossing = find_crossing(g, half, FIRST, arena);
	ValId *other = half ? find_crossing(g, half, SECOND, arena) : NULL;
	uint64_t *key = arena_array(arena, (size_t)g->nnode + 1, sizeof *key);
	ValId last = 0;
	int32_t at = 0;

	*s = (struct segments){ 0 };
	s->of_node = arena_array(arena, g->nnode, sizeof *s->of_node);
	s->attention = arena_array(arena, (size_t)g->nnode + 1, 1);
	s->product = arena_array(arena, (size_t)g->nnode + 1,
	                         sizeof *s->product);
	s->cut = arena_array(arena, (size_t)g->nnode + 1, sizeof *s->cut);
	s->other = arena_array(arena, (size_t)g->nnode + 1, sizeof *s->other);
	FOR_NODES (n, g) {
		NodeId id = node_id(g, n);

		s->of_node[id] = -1;
		if (n->phase != PH_FORWARD)
			continue;
		s->of_node[id] = at;
		key[at] = sign_word(g, n, key[at]);
		record_node(s, n, id, at);
		if (!crossing[id] || (other && !other[id])
		    || (crossing[id] == last && !writes_value(g, n, last)))
			continue;
		s->cut[++at] = last = crossing[id];
		s->other[at] = other ? other[id] : 0;
	}
	s->n = at + 1;
	find_period(s, key);
}
