/* Placement: an offset in the arena for every owner and every scratch area.
 *
 * what    Val.offset of owners in the arena, and of those in host memory in an
 *         arena of their own; Node.workspace_at
 * method  lifetimes from the node order (a value lives from the step that
 *         writes it to the last one that reads it or a view of it, both
 *         included; operands and result of a collective to the step behind
 *         which it ends; an output to the end; scratch during its step), then
 *         pack.c
 * needs   P_LAYOUT, the final order and in-place decisions
 * gives   P_PLACED
 */
#include "passes/place/pack.h"
#include "passes/place/place.h"

/* The lifetime of every owner in the arena, or in that of host memory, as a
 * half-open range of steps, by value; lower == upper: no lifetime. */
static struct buffer *
find_lifetimes(const Graph *g, bool host, Arena *scratch)
{
	struct buffer *b = arena_array(scratch, g->nval, sizeof *b);

	FOR_NODES (n, g) {
		int64_t here = node_id(g, n);

		for (int i = 0; i < n->nin + n->nout; i++) {
			ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];
			ValId o = v ? val_owner(g, v) : 0;

			if (!o || g->val[o].kind != V_TEMP
			    || g->val[o].resident || g->val[o].host != host)
				continue;
			if (b[o].upper == 0)
				b[o].lower = here;
			if (b[o].upper <= here)
				b[o].upper = here + 1;
			/* what is sent, and where it is received */
			if (b[o].upper <= n->wait)
				b[o].upper = n->wait + 1;
			b[o].size = g->val[o].nbytes;
		}
	}
	FOR_VALS (v, g) {
		ValId o = val_owner(g, val_id(g, v));

		if (v->output && b[o].upper)
			b[o].upper = g->nnode;
	}
	return b;
}

/* Owners, in order, then scratch of nodes. */
struct arena_buffers {
	struct buffer *life;            /* by value */
	struct buffer *b;
	size_t n;
};

static struct arena_buffers
find_buffers(const Graph *g, Arena *scratch)
{
	struct arena_buffers a = { .life = find_lifetimes(g, false, scratch),
		.b = arena_array(scratch, (size_t)g->nval + g->nnode,
		                 sizeof *a.b) };

	for (ValId v = 1; v < g->nval; v++)
		if (a.life[v].upper)
			a.b[a.n++] = a.life[v];
	FOR_NODES (s, g)
		if (s->workspace > 0)
			a.b[a.n++] = (struct buffer){ node_id(g, s),
				(int64_t)node_id(g, s) + 1, s->workspace, 0 };
	return a;
}

static struct pack_slots
slots_of(const Graph *g)
{
	return (struct pack_slots){ graph_boundary(g), graph_slots(g),
		graph_weight_boundary(g), g->through_slots, g->weight_slots,
		g->other_slots };
}

void
place_slot_bytes(const Graph *g, int64_t bytes[POOLS], Arena *scratch)
{
	pack_slot_bytes(find_lifetimes(g, false, scratch), g->nval, slots_of(g),
	                bytes);
}

int64_t
place_live_bound(const Graph *g, Arena *scratch)
{
	struct arena_buffers a = find_buffers(g, scratch);

	return pack_slots_bound(a.b, a.n, slots_of(g), scratch);
}

int64_t *
place_live_bytes(const Graph *g, Arena *scratch)
{
	struct arena_buffers a = find_buffers(g, scratch);
	int64_t *live = arena_array(scratch, (size_t)g->nnode + 1,
	                            sizeof *live);

	for (size_t i = 0; i < a.n; i++) {
		live[a.b[i].lower] += a.b[i].size;
		live[a.b[i].upper] -= a.b[i].size;
	}
	for (NodeId id = 1; id < g->nnode; id++)
		live[id] += live[id - 1];
	return live;
}

int64_t
place_within(const Graph *g, int64_t room, bool pack, const struct watch *stop,
             Arena *scratch)
{
	struct arena_buffers a = find_buffers(g, scratch);
	struct pack_limit limit = { .work = PACK_TRIAL_WORK, .stop = stop,
		.enough = room, .most = room };
	int64_t bound = pack_slots_bound(a.b, a.n, slots_of(g), scratch);

	return !pack || bound > room ? bound
		: pack_with_slots(a.b, a.n, slots_of(g), &limit, scratch);
}

int64_t
place_graph(Graph *g, int64_t enough, const struct watch *stop, Arena *scratch)
{
	struct arena_buffers a = find_buffers(g, scratch);
	struct buffer *life = a.life, *b = a.b;
	size_t n = 0;
	int64_t height = pack_with_slots(b, a.n, slots_of(g),
		&(struct pack_limit){ .work = PACK_WORK, .enough = enough,
		                      .stop = stop }, scratch);

	for (ValId v = 1; v < g->nval; v++)
		if (life[v].upper)
			g->val[v].offset = b[n++].offset;
	FOR_NODES (s, g)
		s->workspace_at = s->workspace > 0 ? b[n++].offset : -1;
	return height;
}

/* Offsets in host memory. */
static void
place_in_host(Graph *g, const struct watch *stop, Arena *scratch)
{
	struct buffer *life = find_lifetimes(g, true, scratch);
	struct buffer *b = arena_array(scratch, g->nval, sizeof *b);
	size_t n = 0;

	for (ValId v = 1; v < g->nval; v++)
		if (life[v].upper)
			b[n++] = life[v];
	pack_within(b, n, &(struct pack_limit){ .work = PACK_WORK,
	                                        .stop = stop }, scratch);
	n = 0;
	for (ValId v = 1; v < g->nval; v++)
		if (life[v].upper)
			g->val[v].offset = b[n++].offset;
}

/* A layout that is good enough for the budget may be found although the search
 * for the lowest one ends above it. */
bool
pass_place(Pass *p, Graph *g)
{
	int64_t room = p->planned.budget
		- graph_resident_bytes(g, p->scratch);
	int64_t height = place_graph(g, 0, p->watch, p->scratch);

	if (p->planned.budget > 0 && height > room)
		place_graph(g, room, p->watch, p->scratch);
	place_in_host(g, p->watch, p->scratch);
	return true;
}

int64_t
graph_resident_bytes(const Graph *g, Arena *scratch)
{
	bool *touched = arena_array(scratch, g->nval, sizeof *touched);
	int64_t sum = 0;

	FOR_NODES (n, g) {
		for (int i = 0; i < n->nin; i++)
			touched[val_owner(g, n->in[i])] = true;
		for (int i = 0; i < n->nout; i++)
			touched[val_owner(g, n->out[i])] = true;
	}
	FOR_VALS (v, g) {
		bool always = v->kind == V_PARAM || v->kind == V_BUFFER
			|| v->kind == V_INPUT;

		if (v->base || v->host || (v->kind == V_TEMP && !v->resident)
		    || !(always || touched[val_id(g, v)]))
			continue;
		if (op_info[g->node[v->def].op].flags & F_WRITES)
			continue;       /* becomes its operand's memory */
		sum += v->nbytes;
	}
	return sum;
}
