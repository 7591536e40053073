/* Loops that compute what is transposed next write it transposed at once.
 *
 *   y = loop(x, ..); t = transpose(y); r = reshape(t)
 *     =>  t = loop(transpose(x), ..); r = reshape(t)
 *
 * A loop reads any strides, so transposing its operands is free, while the
 * reshape of a transposed value (heads put back into rows) is a copy.
 */
#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

#include <string.h>

/* The one reader of v, if it transposes in the same phase. */
static const Node *
only_transposition(const struct edit *e, ValId v, Phase phase)
{
	const Graph *g = e->g;

	if (!edit_single(e, v))
		return NULL;
	const Node *n = &g->node[e->uses.node[e->uses.first[v]]];
	return n->op == OP_TRANSPOSE && n->phase == phase ? n : NULL;
}

static bool
is_reshaped(const struct edit *e, ValId v)
{
	FOR_USES (i, &e->uses, v)
		if (e->g->node[e->uses.node[i]].op == OP_RESHAPE)
			return true;
	return false;
}

/* The mask of a dropout is drawn by the element's place in the output. */
static bool
draws_numbers(const struct body *b)
{
	for (int i = 0; i < b->nop; i++)
		if (op_info[b->op[i].op].flags & F_RNG)
			return true;
	return false;
}

/* v, which broadcasts to the loop's rank, with its axes permuted. */
static ValId
transpose_operand(struct edit *e, ValId v, const IntList *perm, NodeId loop)
{
	Graph *g = e->g;
	Shape s = g->val[v].shape, full = { .rank = perm->n };
	Attr attr;

	if (s.rank == 0)
		return v;
	for (int d = 0; d < full.rank; d++) {
		int k = d - (full.rank - s.rank);
		full.dim[d] = k < 0 ? 1 : s.dim[k];
	}
	if (full.rank != s.rank) {
		attr = attr_reshape(&full);
		v = emit_op(g, e->p->diag, OP_RESHAPE, 1, &v, &attr, loop);
		if (!v)
			return 0;
		edit_place(e, g->val[v].def, loop);
	}
	attr = attr_default(OP_TRANSPOSE);
	attr.TRANSPOSE.perm = *perm;
	v = emit_op(g, e->p->diag, OP_TRANSPOSE, 1, &v, &attr, loop);
	if (v)
		edit_place(e, g->val[v].def, loop);
	return v;
}

/* The loop writes what node `to` wrote. */
static bool
transpose_loop(struct edit *e, NodeId loop, NodeId to)
{
	Graph *g = e->g;
	IntList perm = g->node[to].attr.TRANSPOSE.perm;

	for (int k = 0; k < g->node[loop].nin; k++) {
		ValId v =
			transpose_operand(e, g->node[loop].in[k], &perm, loop);
		if (!v)
			return false;
		g->node[loop].in[k] = v;
	}
	e->dead[to] = true;
	g->node[loop].out[0] = g->node[to].out[0];
	edit_claim(g, &g->node[loop]);
	return true;
}

bool
fuse_transposed_stores(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	for (NodeId id = 1; id < e.nold; id++) {
		const Node *n = &g->node[id];
		if (n->op != OP_LOOP || n->nout != 1 || draws_numbers(n->body))
			continue;
		const Node *to = only_transposition(&e, n->out[0], n->phase);
		if (!to || !is_reshaped(&e, to->out[0]))
			continue;
		if (!transpose_loop(&e, id, node_id(g, to)))
			return false;
	}
	edit_commit(&e);
	return true;
}
