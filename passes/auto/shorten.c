/* Equal layers, and graphs with fewer of them.
 *
 * what    a layer is a period of the segments of ir/segments.h.  Layers are
 *         equal if their nodes, in order, have the same ops, attributes (but
 *         random streams) and results, and read the same: each the node of its
 *         own layer, the activation before it, a parameter of the same kind,
 *         or one and the same value of outside, such as a mask
 * how     what the layers that stay read of those that go becomes what the
 *         first of these reads; dead nodes go
 * refuses layers of which parameters are shared by some only, and those with
 *         further readers, such as outputs
 * cost    nodes
 */
#include "passes/auto/shorten.h"

#include "ir/segments.h"

#include <string.h>

/* Layers that stay at the end of the model. */
enum { TAIL = 2 };
enum { NONE = -1, SEVERAL = -2 };

struct finder {
	const Graph *g;
	const struct segments *s;
	int32_t *layer;                 /* by node; -1 */
	int32_t *place;                 /* by node: its number in its layer */
	NodeId **node;                  /* by layer: its nodes in order */
	int32_t *n;                     /* by layer: how many */
	Arena *arena;
};

static ValId
before(const struct finder *f, int32_t layer)
{
	int32_t at = f->s->first + layer * f->s->period;

	return at < f->s->n ? f->s->cut[at] : 0;
}

static void
list_nodes(struct finder *f)
{
	const struct segments *s = f->s;
	size_t n = (size_t)s->nlayer + 1;

	f->layer = arena_array(f->arena, f->g->nnode, sizeof *f->layer);
	f->place = arena_array(f->arena, f->g->nnode, sizeof *f->place);
	f->node = arena_array(f->arena, n, sizeof *f->node);
	f->n = arena_array(f->arena, n, sizeof *f->n);
	FOR_NODES (node, f->g) {
		NodeId id = node_id(f->g, node);
		int32_t at = s->of_node[id] - s->first;
		int32_t k = at < 0 ? -1 : at / s->period;

		f->layer[id] = k < s->nlayer ? k : -1;
		if (f->layer[id] >= 0)
			f->place[id] = f->n[k]++;
	}
	for (int32_t k = 0; k < s->nlayer; k++)
		f->node[k] = arena_array(f->arena, (size_t)f->n[k] + 1,
		                         sizeof *f->node[k]);
	FOR_NODES (node, f->g) {
		NodeId id = node_id(f->g, node);

		if (f->layer[id] >= 0)
			f->node[f->layer[id]][f->place[id]] = id;
	}
}

static bool
is_same_kind(const Val *a, const Val *b)
{
	return a->kind == b->kind && a->dt == b->dt
		&& a->frozen == b->frozen && shape_eq(&a->shape, &b->shape);
}

static bool
is_same_content(const Val *a, const Val *b)
{
	if (a->kind != V_CONST)
		return a->kind == V_PARAM;
	return !a->data == !b->data
		&& (!a->data || !memcmp(a->data, b->data,
		                        (size_t)val_data_bytes(a)));
}

/* Whether what layer k reads there is what layer k + 1 reads; *shared: it is
 * one parameter. */
static bool
is_same_operand(const struct finder *f, int32_t k, ValId a, ValId b,
                bool *shared)
{
	const Val *v = &f->g->val[a], *w = &f->g->val[b];
	NodeId p = v->def, q = w->def;

	*shared = a == b && a && v->kind == V_PARAM;
	if (a == before(f, k) || b == before(f, k + 1))
		return a == before(f, k) && b == before(f, k + 1)
			&& is_same_kind(v, w);
	if ((p && f->layer[p] == k) || (q && f->layer[q] == k + 1))
		return p && q && f->layer[p] == k && f->layer[q] == k + 1
			&& f->place[p] == f->place[q]
			&& v->result_index == w->result_index;
	return a == b || (a && b && is_same_kind(v, w)
	                  && is_same_content(v, w));
}

static bool
has_same_attributes(const Node *a, const Node *b)
{
	Attr x = a->attr, y = b->attr;
	int64_t *s = attr_int_of(a->op, &x, "stream");
	int64_t *t = attr_int_of(b->op, &y, "stream");

	if (s)
		*s = *t = 0;
	return attr_equal(a->op, &x, &y);
}

/* Nodes i of layers k and k + 1; which operands are one parameter goes into
 * *shared. */
static bool
is_same_node(const struct finder *f, int32_t k, int32_t i, uint64_t *shared)
{
	const Node *a = &f->g->node[f->node[k][i]];
	const Node *b = &f->g->node[f->node[k + 1][i]];

	if (a->op != b->op || a->nin != b->nin || a->nout != b->nout || a->body
	    || a->phase != PH_FORWARD || !has_same_attributes(a, b))
		return false;
	for (int j = 0; j < a->nin; j++) {
		bool one;

		if (!is_same_operand(f, k, a->in[j], b->in[j], &one))
			return false;
		*shared = (*shared ^ one) * 0x100000001b3;
	}
	for (int j = 0; j < a->nout; j++)
		if (!a->out[j] != !b->out[j]
		    || !is_same_kind(&f->g->val[a->out[j]],
		                     &f->g->val[b->out[j]]))
			return false;
	return true;
}

/* Whether layers k and k + 1 are equal; *shared: a number for the set of
 * parameters that both have. */
static bool
is_same_layer(const struct finder *f, int32_t k, uint64_t *shared)
{
	*shared = 1;
	if (f->n[k] != f->n[k + 1] || !before(f, k) || !before(f, k + 1))
		return false;
	for (int32_t i = 0; i < f->n[k]; i++)
		if (!is_same_node(f, k, i, shared))
			return false;
	return true;
}

/* The longest run of equal layers, of which what follows is known. */
static void
find_run(const struct finder *f, struct layers *l)
{
	int32_t begin = 0, best = 0;
	uint64_t last = 0, shared;
	ValId *v;

	for (int32_t k = 0; k + 1 < f->s->nlayer; k++) {
		if (!is_same_layer(f, k, &shared)) {
			begin = k + 1;
			continue;
		}
		if (k > begin && shared != last)
			begin = k;
		last = shared;
		if (before(f, k + 2) && k + 2 - begin > l->n) {
			l->n = k + 2 - begin;
			best = begin;
		}
	}
	v = arena_array(f->arena, (size_t)l->n + 1, sizeof *v);
	for (int32_t k = 0; k <= l->n; k++)
		v[k] = before(f, best + k);
	l->nodes = l->n ? f->n[best] : 0;
	l->node = (const NodeId *const *)f->node + best;
	l->before = v;
}

void
layers_find(struct layers *l, const Graph *g, Arena *arena)
{
	struct segments s;
	struct finder f = { .g = g, .s = &s, .arena = arena };

	*l = (struct layers){ 0 };
	segments_find(&s, g, arena);
	if (s.nlayer <= LAYERS_LEAST)
		return;
	list_nodes(&f);
	find_run(&f, l);
	if (l->n <= LAYERS_LEAST + 1)
		l->n = 0;
}

/* By value: whether a node reads it. */
static bool *
find_read(const Graph *g, Arena *arena)
{
	bool *read = arena_array(arena, g->nval, sizeof *read);

	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			read[n->in[i]] = true;
	return read;
}

bool
layers_shorten(Graph *g, const struct layers *l, int32_t keep)
{
	ValId from = l->before[l->n - TAIL], to = l->before[keep - TAIL];
	uint32_t nodes = g->nnode;
	bool *was_read = find_read(g, g->arena), *is_read;

	val_replace(g, from, to, 1, g->nnode);
	graph_dce(g);
	is_read = find_read(g, g->arena);
	FOR_VALS (v, g)
		if (was_read[val_id(g, v)] && !is_read[val_id(g, v)]
		    && v->kind == V_PARAM)
			v->kind = V_CONST;
	return nodes - g->nnode == (uint32_t)((l->n - keep) * l->nodes);
}

static void
take_origins(const Node *n, int32_t layer, int32_t *of)
{
	for (int i = 0; i < n->norigin; i++) {
		int32_t *at = &of[n->origin[i]];

		*at = *at == NONE || *at == layer ? layer : SEVERAL;
	}
}

int32_t *
layers_of_origins(const Graph *g, const struct layers *l, int32_t keep,
                  Arena *arena)
{
	int32_t *of = arena_array(arena, g->norigin, sizeof *of);

	for (uint32_t i = 0; i < g->norigin; i++)
		of[i] = NONE;
	for (int32_t k = 0; k < keep; k++) {
		int32_t layer = k < keep - TAIL ? k : l->n - keep + k;

		for (int32_t i = 0; i < l->nodes; i++)
			take_origins(&g->node[l->node[layer][i]], k, of);
	}
	for (uint32_t i = 0; i < g->norigin; i++)
		of[i] = of[i] < 0 ? -1 : of[i];
	return of;
}
