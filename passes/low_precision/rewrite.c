/* Keep in 16 bits: the rewrite of a schedule.
 *
 * what    forward as it stands, but behind the last node of forward that
 *         touches value v a loop that rounds it, h; what reads v later reads
 *         h instead:
 *
 *             v = matmul ..             v = matmul ..
 *             .. reads v                .. reads v
 *                                       h = loop v [cast]       (v dies)
 *             d = loop v, dy            d = loop h, dy          (upcasts h)
 *             dw = matmul v, dy         w = loop h [cast]
 *                                       dw = matmul w, dy
 *
 *         So forward computes the same bits as ever, and copies of forward
 *         nodes in backward start from what was rounded.
 * method  one walk over the schedule.  Loops upcast as they read; other
 *         readers get an upcast made right before them, which those share
 *         that stand close together.  Views are repeated over the reduced
 *         value and its upcast.
 * needs   P_PLANNED, nothing shared in place yet
 * gives   Val.low_precision_of; an upcast is a copy (Val.of), its node one of
 *         the loop that rounds
 */
#include "passes/low_precision/low_precision.h"
#include "ir/loop.h"

#include <string.h>

enum { CLOSE = 4 };                     /* nodes between readers of an upcast */

/* What stands for owner v behind forward. */
struct reduced_value {
	NodeId behind;                  /* last node that touches it of those
	                                 * whose results show outside; 0: it
	                                 * stays as it is */
	ValId next;                     /* another one with the same `behind` */
	ValId reduced, upcast;          /* 0: not made yet */
	NodeId round;                   /* node that makes `reduced` */
	NodeId read;                    /* last reader of the upcast, by its
	                                 * number in the old schedule */
};

struct rewriter {
	Graph *g;
	const struct low_precision_request *request;
	const struct target *target;
	Arena *scratch;
	struct reduced_value *of;       /* by owner */
	ValId *first;                   /* by node: owners that end behind it */
	ValId *reduced;                 /* by view: the same of `reduced` */
	ValId *upcast;                  /* ... and of the latest upcast; 0 */
	NodeId weight;                  /* last node before phase weight; 0:
	                                 * there is none */
	NodeId reader;                  /* the node at hand */
	NodeId *order;
	size_t cap;
	uint32_t n;
};

static void
schedule_node(struct rewriter *s, NodeId id)
{
	s->order = arena_grow(s->scratch, s->order, s->n, &s->cap,
	                      (size_t)s->n + 1, sizeof *s->order);
	s->order[s->n++] = id;
}

/* ---- new nodes ---- */

/* Value y lies as v does, in a type of its own. */
static void
lay_out_like(struct rewriter *s, ValId y, ValId v, DType dt)
{
	Graph *g = s->g;
	const Val *from = &g->val[v];
	Val *to = &g->val[y];
	int64_t align = s->target->align;

	to->dt = dt;
	to->shape = from->shape;
	to->onnx = from->onnx;
	to->placement = from->placement;
	to->shard = from->shard;
	to->laid_out = true;
	to->start = from->start;
	memcpy(to->stride, from->stride, sizeof to->stride);
	to->nbytes = from->base ? 0
		: (val_data_bytes(to) + align - 1) / align * align;
}

/* A loop that casts x, which lies as v does. */
static ValId
new_cast_loop(struct rewriter *s, ValId x, ValId v, DType to, NodeId like)
{
	Graph *g = s->g;
	struct body *b = arena_alloc(g->arena, sizeof *b);
	Node *n = node_new(g, OP_LOOP, 1, &x, 1, like);
	ValId y = n->out[0];

	b->nop = 1;
	b->op = arena_array(g->arena, 1, sizeof *b->op);
	b->op[0] = (struct scalar_op){ .op = OP_CAST, .dt = to, .narg = 1,
	                              .attr = attr_default(OP_CAST) };
	b->op[0].attr.CAST.to = to;
	b->result = arena_array(g->arena, 1, sizeof *b->result);
	n->body = b;
	lay_out_like(s, y, v, to);
	schedule_node(s, g->val[y].def);
	return y;
}

/* View v over x, which stands for what v is a view of. */
static ValId
new_view(struct rewriter *s, ValId x, ValId v)
{
	Graph *g = s->g;
	NodeId id = g->val[v].def;
	Node *n = node_new(g, g->node[id].op, 1, &x, 1, id);
	ValId y = n->out[0];

	n->attr = g->node[id].attr;
	lay_out_like(s, y, v, g->val[x].dt);
	g->val[y].base = val_owner(g, x);
	schedule_node(s, node_id(g, n));
	return y;
}

/* Value h is v in 16 bits. */
static void
mark_reduced(struct rewriter *s, ValId h, ValId v)
{
	Graph *g = s->g;

	val_rename(g, h, arena_printf(g->arena, "%s.%s", g->val[v].name,
	                              dtype_info[s->request->to].text));
	g->val[h].low_precision_of = g->val[v].of ? g->val[v].of : v;
}

static void
round_value(struct rewriter *s, ValId v)
{
	Graph *g = s->g;
	ValId h = new_cast_loop(s, v, v, s->request->to, g->val[v].def);

	mark_reduced(s, h, v);
	s->of[v].reduced = h;
	s->of[v].round = g->val[h].def;
}

static void
mark_copy(struct rewriter *s, ValId y, ValId v, NodeId again)
{
	Graph *g = s->g;
	Node *n = &g->node[g->val[y].def];

	val_rename(g, y, arena_printf(g->arena, "%s.wide", g->val[v].name));
	g->val[y].of = g->val[v].of ? g->val[v].of : v;
	n->phase = PH_RECOMPUTE;
	n->of = g->node[again].of ? g->node[again].of : again;
}

/* ---- what readers read ---- */

/* The reduced value of u, or a view of it. */
static ValId
reduced_of(struct rewriter *s, ValId u)
{
	Graph *g = s->g;

	if (!g->val[u].base)
		return s->of[u].reduced;
	if (!s->reduced[u]) {
		ValId x = reduced_of(s, g->node[g->val[u].def].in[0]);

		s->reduced[u] = new_view(s, x, u);
		x = s->reduced[u];
		mark_reduced(s, x, u);
		g->node[g->val[x].def].phase = s->weight
			&& s->reader > s->weight ? PH_WEIGHT : PH_BACKWARD;
	}
	return s->reduced[u];
}

static ValId
upcast_view_of(struct rewriter *s, ValId u)
{
	Graph *g = s->g;
	ValId o = val_owner(g, u);

	if (u == o)
		return s->of[o].upcast;
	if (!s->upcast[u]
	    || val_owner(g, s->upcast[u]) != s->of[o].upcast) {
		NodeId def = g->val[u].def;
		ValId x = upcast_view_of(s, g->node[def].in[0]);

		s->upcast[u] = new_view(s, x, u);
		mark_copy(s, s->upcast[u], u, def);
	}
	return s->upcast[u];
}

/* Value u in float32 again, for the reader of that number. */
static ValId
upcast_of(struct rewriter *s, ValId u, NodeId reader)
{
	Graph *g = s->g;
	ValId o = val_owner(g, u);
	struct reduced_value *of = &s->of[o];

	if (!of->upcast || reader - of->read > CLOSE) {
		of->upcast = new_cast_loop(s, of->reduced, o, g->val[o].dt,
		                           of->round);
		mark_copy(s, of->upcast, o, of->round);
	}
	of->read = reader;
	return upcast_view_of(s, u);
}

/* The loop upcasts its operand k itself. */
static void
upcast_in_loop(struct rewriter *s, NodeId id, int k)
{
	Graph *g = s->g;
	ValId v = g->node[id].in[k], h = reduced_of(s, v);
	Node *n = &g->node[id];
	const struct body *old = n->body;
	struct body *b = arena_alloc(g->arena, sizeof *b);

	b->nop = old->nop + 1;
	b->op = arena_array(g->arena, (size_t)b->nop, sizeof *b->op);
	b->op[0] = (struct scalar_op){ .op = OP_CAST, .dt = g->val[v].dt,
	                              .narg = 1, .arg = { k },
	                              .attr = attr_default(OP_CAST) };
	b->op[0].attr.CAST.to = g->val[v].dt;
	for (int i = 0; i < old->nop; i++) {
		struct scalar_op *m = &b->op[i + 1];

		*m = old->op[i];
		for (int a = 0; a < m->narg; a++)
			m->arg[a] = m->arg[a] == k ? ~0
				: m->arg[a] < 0 ? ~(~m->arg[a] + 1)
				: m->arg[a];
	}
	b->result = arena_array(g->arena, (size_t)n->nout, sizeof *b->result);
	for (int i = 0; i < n->nout; i++)
		b->result[i] = old->result[i] + 1;
	n->body = b;
	n->in[k] = h;
}

/* Node id of the old schedule reads what has been rounded by then as that. */
static void
redirect_operands(struct rewriter *s, NodeId id)
{
	Graph *g = s->g;

	s->reader = id;
	for (int k = 0; k < g->node[id].nin; k++) {
		ValId v = g->node[id].in[k], o = val_owner(g, v);
		const Node *n = &g->node[id];

		if (o >= s->request->nval || !s->of[o].reduced)
			continue;
		if (n->body && n->body->nop < LOOP_OPS_MAX) {
			upcast_in_loop(s, id, k);
			continue;
		}
		v = upcast_of(s, v, id);
		g->node[id].in[k] = v;
		if (op_info[g->node[id].op].flags & F_VIEW
		    && g->val[g->node[id].out[0]].base == o)
			g->val[g->node[id].out[0]].base = val_owner(g, v);
	}
}

/* ---- which ---- */

/* By node: what it makes shows outside, in the loss or another output.  That
 * is forward, and of what stands behind it the classifier's loss. */
static bool *
find_shown(const struct rewriter *s)
{
	const Graph *g = s->g;
	bool *shown = arena_array(s->scratch, g->nnode, sizeof *shown);

	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];

		shown[id] |= n->phase == PH_FORWARD;
		for (int i = 0; i < n->nout; i++) {
			ValId v = n->out[i];

			shown[id] |= v && !g->val[v].param
				&& (g->val[v].output || v == g->loss);
		}
		for (int i = 0; shown[id] && i < n->nin; i++)
			shown[g->val[n->in[i]].def] = true;
	}
	return shown;
}

/* The last use in forward of owners that only gradients read later. */
static void
find_last_uses(struct rewriter *s)
{
	const Graph *g = s->g;
	const bool *shown = find_shown(s);
	const bool *fixed = low_precision_exact(g, s->scratch);
	bool *later = arena_array(s->scratch, g->nval, sizeof *later);

	FOR_NODES (n, g)
		for (int i = 0; i < n->nin + n->nout; i++) {
			ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];
			ValId o = val_owner(g, v);

			if (o >= s->request->nval || !s->request->eligible[o])
				continue;
			later[o] = !shown[node_id(g, n)];
			if (!later[o])
				s->of[o].behind = node_id(g, n);
		}
	for (ValId v = 1; v < s->request->nval; v++)
		if (!later[v] || fixed[v]
		    || g->node[s->of[v].behind].phase != PH_FORWARD)
			s->of[v].behind = 0;
}

static int64_t
bytes_found(const struct rewriter *s)
{
	int64_t sum = 0;

	for (ValId v = 1; v < s->request->nval; v++)
		if (s->of[v].behind)
			sum += s->g->val[v].nbytes;
	return sum;
}

/* Of what was found the first parts, by the node that ends them in forward. */
static int
chain_up(struct rewriter *s)
{
	const Graph *g = s->g;
	int64_t most = bytes_found(s) / LOW_PRECISION_PARTS * s->request->parts,
		sum = 0;
	int count = 0;

	FOR_NODES (n, g)
		for (int i = 0; i < n->nout; i++) {
			ValId v = n->out[i];
			struct reduced_value *of = &s->of[v];

			if (v >= s->request->nval || !of->behind)
				continue;
			sum += g->val[v].nbytes;
			if (s->request->parts < LOW_PRECISION_PARTS
			    && sum > most) {
				of->behind = 0;
				continue;
			}
			of->next = s->first[of->behind];
			s->first[of->behind] = v;
			count++;
		}
	return count;
}

int
low_precision_rewrite(Graph *g, const struct low_precision_request *request,
                      const struct target *target, Arena *scratch)
{
	struct rewriter s = { .g = g, .request = request, .target = target,
	                      .scratch = scratch,
	                      .weight = graph_weight_boundary(g) };
	uint32_t nnode = g->nnode;
	int count;

	s.of = arena_array(scratch, g->nval, sizeof *s.of);
	s.first = arena_array(scratch, nnode, sizeof *s.first);
	s.reduced = arena_array(scratch, g->nval, sizeof *s.reduced);
	s.upcast = arena_array(scratch, g->nval, sizeof *s.upcast);
	find_last_uses(&s);
	count = chain_up(&s);
	for (NodeId id = 1; id < nnode; id++) {
		redirect_operands(&s, id);
		schedule_node(&s, id);
		for (ValId v = s.first[id]; v; v = s.of[v].next)
			round_value(&s, v);
	}
	graph_reorder(g, s.order, s.n);
	return count;
}
