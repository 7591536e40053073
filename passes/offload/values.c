/* Which values are offloaded, and the nodes that do so. */
#include "passes/offload/values.h"
#include "passes/cost/cost.h"
#include "passes/place/place.h"

#include <stdlib.h>
#include <string.h>

/* The longest pause between two uses of an owner's bytes. */
struct pause {
	ValId v;
	NodeId from, to;                /* the nodes that use it around it */
	double sec;
	bool wanted;                    /* by name */
};

struct values {
	Graph *g;
	const struct offload_request *request;
	Arena *scratch;
	NodeId end;                     /* nodes from here on are new */
	NodeId boundary;                /* the last node of forward */
	double *start;                  /* by node: seconds before it, of
	                                 * computation and between ranks: what
	                                 * the search counts (remat.c) */
	struct pause *pause;            /* [n], longest first */
	uint32_t n;
	/* new nodes by the node that they go before or behind: chains */
	struct chain {
		NodeId first, last;
	} *before, *behind;
	NodeId *next;                   /* [nnext], by node */
	size_t nnext, next_cap;
};

/* ---- pauses ---- */

/* Of an owner in the arena that is written once and does not outlive the
 * step. */
static bool
is_offloadable(const Graph *g, ValId v)
{
	const Val *x = &g->val[v];
	const Node *def = &g->node[x->def];

	return x->kind == V_TEMP && x->def && !x->base && !x->resident
		&& !x->host && !x->output && !x->param && v != g->loss
		&& !x->low_precision_of && !def->count_pass
		&& !(op_info[def->op].flags & (F_HOST | F_WRITES));
}

/* By owner: whether a node writes over its bytes, or makes something in them
 * that is no view. */
static bool *
overwritten(const Graph *g, Arena *a)
{
	bool *is = arena_array(a, g->nval, sizeof *is);

	FOR_NODES (n, g) {
		uint64_t flags = op_info[n->op].flags;

		for (int k = 0; k < n->nout; k++) {
			int in = op_overwrites(n->op, k);

			if (flags & F_WRITES && in < n->nin && n->in[in])
				is[val_owner(g, n->in[in])] = true;
			if (n->out[k] && g->val[n->out[k]].base
			    && !(flags & F_VIEW))
				is[g->val[n->out[k]].base] = true;
		}
	}
	return is;
}

/* Transfers out and in again have to fit, and latencies not to count. */
static bool
is_worthwhile(const Graph *g, const struct pause *p)
{
	const struct device_profile *d = device_of(g);
	double latency = device_host_seconds(d, 0);
	double sec = device_host_seconds(d, (double)g->val[p->v].nbytes);

	return p->from && (p->wanted || (p->sec >= 2 * sec
	                                 && sec >= 2 * latency));
}

static int
longest_first(const void *a, const void *b)
{
	const struct pause *x = a, *y = b;

	if (x->wanted != y->wanted)
		return x->wanted ? -1 : 1;
	if (x->sec != y->sec)
		return x->sec < y->sec ? 1 : -1;
	return (x->v > y->v) - (x->v < y->v);
}

static bool
is_wanted(const struct values *s, ValId v)
{
	const struct name_list *l = s->request->values;
	bool any = false;

	for (int i = 0; l && i < l->n; i++)
		any |= val_matches(&s->g->val[v], l->v[i]);
	return any;
}

/* Node id uses v's bytes after `last` did. */
static void
note_use(const struct values *s, struct pause *p, NodeId last, NodeId id)
{
	double sec = s->start[id] - s->start[last + 1];

	if (last && id > last + 1 && (!p->from || sec > p->sec)) {
		p->from = last;
		p->to = id;
		p->sec = sec;
	}
}

static void
find_pauses(struct values *s)
{
	Graph *g = s->g;
	bool *busy = overwritten(g, s->scratch);
	NodeId *last = arena_array(s->scratch, g->nval, sizeof *last);
	struct pause *of = arena_array(s->scratch, g->nval, sizeof *of);

	FOR_NODES (n, g)
		for (int i = 0; i < n->nin + n->nout; i++) {
			ValId v = i < n->nin ? n->in[i] : n->out[i - n->nin];
			ValId o = v ? val_owner(g, v) : 0;

			if (!o || busy[o] || !is_offloadable(g, o))
				continue;
			note_use(s, &of[o], last[o], node_id(g, n));
			last[o] = node_id(g, n);
		}
	s->pause = arena_array(s->scratch, g->nval, sizeof *s->pause);
	for (ValId v = 1; v < g->nval; v++) {
		of[v].v = v;
		of[v].wanted = of[v].from && is_wanted(s, v);
		if (is_worthwhile(g, &of[v]))
			s->pause[s->n++] = of[v];
	}
	qsort(s->pause, s->n, sizeof *s->pause, longest_first);
}

/* ---- which ---- */

/* The first node at which more is alive than the arena may have, in a pause; 0:
 * none. */
static NodeId
first_over_budget(const struct values *s, const int64_t *live, NodeId from,
                  NodeId to)
{
	for (NodeId id = from + 1; id < to && s->request->arena > 0; id++)
		if (live[id] > s->request->arena)
			return id;
	return 0;
}

/* Moves the pauses that are taken to the front, *n of them.  Whether what
 * remains fits. */
static bool
choose_pauses(struct values *s, uint32_t *n)
{
	Graph *placed = graph_trial(s->g);
	int64_t *live, host = s->request->host;

	inplace_graph(placed, s->scratch);
	live = place_live_bytes(placed, s->scratch);
	graph_free(placed);
	*n = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		struct pause p = s->pause[i];
		int64_t bytes = s->g->val[p.v].nbytes;

		if (bytes > host
		    || (!p.wanted && !first_over_budget(s, live, p.from, p.to)))
			continue;
		host -= bytes;
		for (NodeId id = p.from + 1; id < p.to; id++)
			live[id] -= bytes;
		s->pause[(*n)++] = p;
	}
	return !first_over_budget(s, live, 0, s->g->nnode);
}

/* ---- nodes ---- */

static void
append(struct values *s, struct chain *c, NodeId id)
{
	s->next = arena_grow(s->scratch, s->next, s->nnext, &s->next_cap,
	                     (size_t)id + 1, sizeof *s->next);
	s->nnext = (size_t)id + 1;
	s->next[id] = 0;
	if (c->last)
		s->next[c->last] = id;
	else
		c->first = id;
	c->last = id;
}

/* A value like v, copied by a transfer or for a view of such a copy. */
static ValId
copy_of_value(Graph *g, ValId v, const char *suffix)
{
	const char *name = arena_printf(g->arena, "%s.%s", g->val[v].name,
	                                suffix);
	ValId c = val_new(g, V_TEMP, name, g->val[v].dt, g->val[v].shape);
	const Val *from = &g->val[v];
	Val *to = &g->val[c];

	to->onnx = from->onnx;
	to->of = from->of ? from->of : v;
	to->placement = from->placement;
	to->shard = from->shard;
	to->laid_out = true;
	to->start = from->start;
	to->nbytes = from->nbytes;
	memcpy(to->stride, from->stride, sizeof to->stride);
	return c;
}

/* What is recomputed may stand in forward. */
static Phase
transfer_phase(const struct values *s, NodeId beside)
{
	Phase phase = s->g->node[beside].phase;

	return phase != PH_RECOMPUTE ? phase
	       : beside < s->boundary ? PH_FORWARD : PH_BACKWARD;
}

static ValId
add_transfer(struct values *s, Op op, ValId x, NodeId beside)
{
	Graph *g = s->g;
	bool fetch = op_info[op].flags & F_FETCH;
	Node *n = node_new(g, op, 1, &x, 1, beside);
	ValId drop = n->out[0], y;
	NodeId id = node_id(g, n);

	g->val[drop].def = 0;
	y = copy_of_value(g, x, fetch ? "fetched" : "offloaded");
	n = &g->node[id];
	n->out[0] = y;
	n->phase = transfer_phase(s, beside);
	g->val[y].def = id;
	g->val[y].host = !fetch;
	append(s, fetch ? &s->before[beside] : &s->behind[beside], id);
	return y;
}

/* The view w of an owner as a view of another one. */
static ValId
view_again(struct values *s, ValId w, ValId base, ValId *again, NodeId before)
{
	Graph *g = s->g;
	NodeId def = g->val[w].def, id;
	ValId in, out;
	Node *n;

	if (again[w])
		return again[w];
	in = view_again(s, g->node[def].in[0], base, again, before);
	n = node_new(g, g->node[def].op, 1, &in, 1, def);
	id = node_id(g, n);
	n->attr = g->node[def].attr;
	n->phase = PH_RECOMPUTE;
	n->of = g->node[def].of ? g->node[def].of : def;
	g->val[n->out[0]].def = 0;
	out = copy_of_value(g, w, "again");
	g->node[id].out[0] = out;
	g->val[out].def = id;
	g->val[out].base = base;
	again[w] = out;
	append(s, &s->before[before], id);
	return out;
}

/* From node `from` on, what lies in v's bytes lies in y's. */
static void
redirect_uses(struct values *s, ValId v, ValId y, NodeId from)
{
	Graph *g = s->g;
	Arena *a = arena_new();
	ValId *again = arena_array(a, g->nval, sizeof *again);

	again[v] = y;
	for (NodeId id = from; id < s->end; id++) {
		for (int i = 0; i < g->node[id].nin; i++) {
			ValId in = g->node[id].in[i];

			if (!in || val_owner(g, in) != v)
				continue;
			in = in == v || g->val[in].def < from
				? view_again(s, in, y, again, from) : in;
			g->node[id].in[i] = in;
		}
		for (int i = 0; i < g->node[id].nout; i++) {
			ValId out = g->node[id].out[i];

			if (out && g->val[out].base == v)
				g->val[out].base = y;
		}
	}
	arena_free(a);
}

static void
offload_value(struct values *s, const struct pause *p)
{
	ValId h = add_transfer(s, OP_OFFLOAD, p->v, p->from);
	ValId y = add_transfer(s, OP_FETCH, h, p->to);

	redirect_uses(s, p->v, y, p->to);
}

static void
put_in_order(struct values *s)
{
	Graph *g = s->g;
	NodeId *order = arena_array(s->scratch, g->nnode, sizeof *order);
	uint32_t n = 0;

	for (NodeId id = 1; id < s->end; id++) {
		for (NodeId k = s->before[id].first; k; k = s->next[k])
			order[n++] = k;
		order[n++] = id;
		for (NodeId k = s->behind[id].first; k; k = s->next[k])
			order[n++] = k;
	}
	graph_reorder(g, order, n);
}

int64_t
offload_host_room(const struct options *o, const Graph *g)
{
	int64_t room = o->host_memory > 0 ? o->host_memory : INT64_MAX;

	FOR_VALS (v, g)
		if (v->host && v->kind != V_TEMP)
			room -= v->nbytes;
	return room;
}

bool
offload_values(Graph *g, const struct offload_request *request, Arena *scratch)
{
	struct values s = { .g = g, .request = request, .scratch = scratch,
		.end = g->nnode, .boundary = graph_boundary(g) };
	uint32_t n;

	s.start = arena_array(scratch, (size_t)g->nnode + 1, sizeof *s.start);
	s.before = arena_array(scratch, g->nnode, sizeof *s.before);
	s.behind = arena_array(scratch, g->nnode, sizeof *s.behind);
	FOR_NODES (node, g) {
		struct cost c = first_cost(g, node);

		s.start[node_id(g, node) + 1] = s.start[node_id(g, node)]
			+ (lane_is_host(c.lane) ? 0 : c.sec);
	}
	find_pauses(&s);
	if (!choose_pauses(&s, &n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		offload_value(&s, &s.pause[i]);
	put_in_order(&s);
	return true;
}
