/* Edits on the node array: see edit.h. */
#include "passes/fuse/edit.h"

struct edit
edit_new(Pass *p, Graph *g)
{
	struct edit e = { .p = p, .g = g, .nold = g->nnode };

	e.uses = graph_uses(g, p->scratch);
	e.dead = arena_array(p->scratch, g->nnode, sizeof *e.dead);
	return e;
}

void
edit_place(struct edit *e, NodeId appended, NodeId id)
{
	size_t i = appended - e->nold;

	e->before = arena_grow(e->p->scratch, e->before, e->nbefore, &e->cap,
	                       i + 1, sizeof *e->before);
	e->before[i] = id;
	e->nbefore = i + 1;
}

void
edit_commit(struct edit *e)
{
	Graph *g = e->g;
	NodeId *order = arena_array(e->p->scratch, g->nnode, sizeof *order);
	NodeId *next = arena_array(e->p->scratch, g->nnode, sizeof *next);
	NodeId *first = arena_array(e->p->scratch, e->nold, sizeof *first);
	uint32_t n = 0;

	/* lists of what stands before each node, in order of emission */
	for (NodeId id = g->nnode; id-- > e->nold; ) {
		next[id] = first[e->before[id - e->nold]];
		first[e->before[id - e->nold]] = id;
	}
	for (NodeId id = 1; id < e->nold; id++) {
		for (NodeId i = first[id]; i; i = next[i])
			order[n++] = i;
		if (!e->dead[id])
			order[n++] = id;
	}
	graph_reorder(g, order, n);
}

int
edit_nuses(const struct edit *e, ValId v)
{
	int n = 0;

	FOR_USES (i, &e->uses, v)
		n += !e->dead[e->uses.node[i]];
	return n;
}

static bool
is_needed_outside(const Graph *g, ValId v)
{
	const Val *x = &g->val[v];

	return x->output || x->resident || g->loss == v
	       || (x->kind == V_TEMP && x->param);
}

bool
edit_single(const struct edit *e, ValId v)
{
	return edit_nuses(e, v) == 1 && !is_needed_outside(e->g, v);
}

ValId
edit_through_reshapes(const Graph *g, ValId v)
{
	while (g->val[v].def && g->node[g->val[v].def].op == OP_RESHAPE)
		v = g->node[g->val[v].def].in[0];
	return v;
}

ValId
edit_reshaped(struct edit *e, ValId v, const Shape *s, NodeId before)
{
	Attr attr = attr_reshape(s);
	ValId y;

	v = edit_through_reshapes(e->g, v);
	if (shape_eq(&e->g->val[v].shape, s))
		return v;
	y = emit_op(e->g, e->p->diag, OP_RESHAPE, 1, &v, &attr, before);
	if (y)
		edit_place(e, e->g->val[y].def, before);
	return y;
}

void
edit_replace_node(struct edit *e, NodeId id, NodeId by)
{
	Graph *g = e->g;
	Node *n = &g->node[id], *m = &g->node[by];
	const Shape *to = &g->val[n->out[0]].shape;

	node_add_origin(g, m, n->origin, n->norigin);
	if (shape_eq(to, &g->val[m->out[0]].shape)) {
		m->out[0] = n->out[0];
		edit_claim(g, m);
		e->dead[id] = true;
		return;
	}
	n->op = OP_RESHAPE;
	n->attr = attr_reshape(to);
	n->nin = 1;
	n->in[0] = m->out[0];
}
