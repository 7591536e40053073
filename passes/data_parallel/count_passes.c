/* Build the count passes over micro-batches, and the totals that they leave. */
#include "passes/data_parallel/count_passes.h"

#include "passes/data_parallel/data_parallel.h"

#include <string.h>

enum { COUNT_PASSES = 16 };

/* ---- copies ---- */

/* Nodes of g that make v, up to totals; the latest count pass of these. */
static bool *
find_cone(const struct count_passes *m, ValId v, int *pass)
{
	const Graph *g = m->g;
	bool *in = arena_array(m->p->scratch, g->nnode, sizeof *in);

	in[g->val[v].def] = true;
	*pass = 0;
	for (NodeId id = g->nnode; --id > 0; ) {
		const Node *n = &g->node[id];

		if (!in[id])
			continue;
		if (n->count_pass) {
			*pass = n->count_pass > *pass ? n->count_pass : *pass;
			in[id] = false;
			continue;
		}
		for (int k = 0; k < n->nin; k++)
			in[g->val[n->in[k]].def] = true;
	}
	in[0] = false;
	return in;
}

static ValId
first_wanted_output(const Graph *g, NodeId id)
{
	const Node *n = &g->node[id];
	int k = 0;

	while (k < n->nout - 1 && !n->out[k])
		k++;
	return n->out[k];
}

static void
copy_value(Graph *g, ValId to, const Val *of)
{
	Val *v = &g->val[to];

	v->dt = of->dt;
	v->shape = of->shape;
	val_rename(g, to, of->name);
}

NodeId
count_pass_copy(Graph *g, const Graph *of, const Node *from, const ValId *in)
{
	const Node n = *from;
	Node *y = node_new(g, n.op, n.nin, in, n.nout, 0);
	NodeId id = node_id(g, y);

	y->attr = n.attr;
	node_add_origin(g, y, n.origin, n.norigin);
	for (int k = 0; k < n.nout; k++) {
		ValId v = g->node[id].out[k];

		if (n.out[k]) {
			copy_value(g, v, &of->val[n.out[k]]);
			continue;
		}
		g->node[id].out[k] = 0;
		g->val[v].def = 0;
	}
	return id;
}

/* The copy of v of g in a count pass; 0: none yet. */
static ValId *
twin_slot(struct count_passes *m, ValId v, int pass)
{
	size_t at = (size_t)v * COUNT_PASSES + (size_t)pass % COUNT_PASSES;
	size_t had = m->ntwin;

	if (at >= had) {
		m->twin = arena_grow(m->p->scratch, m->twin, had, &m->twin_cap,
		                     at + 1, sizeof *m->twin);
		m->ntwin = at + 1;
		memset(m->twin + had, 0, (m->ntwin - had) * sizeof *m->twin);
	}
	return &m->twin[at];
}

/* Copy node id to a count pass. */
static void
copy_to_count_pass(struct count_passes *m, NodeId id, int pass)
{
	Graph *g = m->g;
	const Node from = g->node[id];
	ValId *with = arena_array(m->p->scratch, (size_t)from.nin + 1,
	                          sizeof *with);
	NodeId to;

	for (int k = 0; k < from.nin; k++) {
		ValId y = *twin_slot(m, from.in[k], pass);

		with[k] = y ? y : from.in[k];
	}
	to = count_pass_copy(g, g, &from, with);
	g->node[to].count_pass = pass;
	for (int k = 0; k < from.nout; k++)
		if (from.out[k])
			*twin_slot(m, from.out[k], pass) = g->node[to].out[k];
}

/* Copy v to the count pass after all its operands; 0 after a diagnostic. */
static ValId
copy_cone(struct count_passes *m, ValId v, int *pass)
{
	Graph *g = m->g;
	bool *in = find_cone(m, v, pass);
	uint32_t n = g->nnode;

	if (++*pass >= COUNT_PASSES)
		return diag_error(m->p->diag, "the loss divides by nested "
		                  "sums: expected a depth of less than %d",
		                  COUNT_PASSES);
	for (NodeId id = 1; id < n; id++)
		if (in[id] && !*twin_slot(m, first_wanted_output(g, id), *pass))
			copy_to_count_pass(m, id, *pass);
	return *twin_slot(m, v, *pass) ? *twin_slot(m, v, *pass) : v;
}

/* Convert to float32, the type of totals, and back. */
static ValId
emit_count_cast(struct count_passes *m, ValId v, DType to, int pass)
{
	ValId y = emit_cast(m->g, m->p->diag, v, to, 0);

	if (y != v)
		m->g->node[m->g->nnode - 1].count_pass = pass;
	return y;
}

ValId
count_total(struct count_passes *m, ValId v)
{
	Graph *g = m->g;
	DType dt = g->val[v].dt;
	int pass;
	ValId in[2] = { 0, copy_cone(m, v, &pass) }, y;

	in[1] = emit_count_cast(m, in[1], DT_F32, pass);
	if (!in[1])
		return 0;
	in[0] = val_new(g, V_STATE, "total", DT_F32, g->val[v].shape);
	g->val[in[0]].state = "total";
	y = emit_op(g, m->p->diag, OP_ACCUMULATE, 2, in, NULL, 0);
	if (!y)
		return 0;
	val_rename(g, y, arena_printf(g->arena, "%s.next",
	                              g->val[in[0]].name));
	g->node[g->nnode - 1].count_pass = pass;
	return emit_count_cast(m, y, dt, 0);
}

/* ---- order ---- */

void
count_pass_order(Graph *g, Arena *scratch)
{
	NodeId *order = arena_array(scratch, g->nnode, sizeof *order);
	bool *read = arena_array(scratch, g->nval, sizeof *read);
	int last = 1;
	uint32_t at = g->nnode, end = g->nnode;

	FOR_NODES (n, g)
		last = n->count_pass > last ? n->count_pass : last;
	for (int pass = 0; pass <= last; pass++)
		for (NodeId id = end; --id > 0; ) {
			const Node *n = &g->node[id];
			bool live = !n->count_pass
				&& op_info[n->op].flags & F_WRITES;

			if (n->count_pass != (pass ? last + 1 - pass : 0))
				continue;
			for (int k = 0; k < n->nout; k++)
				live |= n->out[k] && (read[n->out[k]]
				        || g->val[n->out[k]].output);
			for (int k = 0; k < n->nin && live; k++)
				read[n->in[k]] = true;
			if (live)
				order[--at] = id;
		}
	graph_reorder(g, order + at, end - at);
}
