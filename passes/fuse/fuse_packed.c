/* Fusion of nodes that are not element-wise: packed attention gradients, and
 * sums that become accumulators.
 *
 *   concat(transposed dq, dk, dv of one attention_grad)       =>  packed = 1
 *   add(a, matmul(..)), and what else has an accumulator      =>  acc = a
 */
#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

#include <string.h>

/* ---- packed attention gradient ---- */

/* reshape(transpose(dq)) -> the attention_grad that wrote dq at `slot`. */
static NodeId
packed_grad(const struct edit *e, ValId v, int slot)
{
	const Graph *g = e->g;

	for (int i = 0; i < 2; i++) {
		const Val *x = &g->val[v];
		if (!x->def || !edit_single(e, v))
			return 0;
		const Node *n = &g->node[x->def];
		const IntList *perm = &n->attr.TRANSPOSE.perm;
		if (n->op != (i == 0 ? OP_RESHAPE : OP_TRANSPOSE))
			return 0;
		if (i == 1 && (perm->n != 4 || perm->v[0] != 0
		               || perm->v[1] != 2 || perm->v[2] != 1))
			return 0;
		v = n->in[0];
	}
	NodeId id = g->val[v].def;
	return id && edit_single(e, v) && g->val[v].result_index == slot
	       && g->node[id].op == OP_ATTENTION_GRAD
	       && !g->node[id].attr.ATTENTION_GRAD.packed ? id : 0;
}

/* Rows of [B,T,width]: the parts keep B and T apart or together, but do not
 * mix heads with rows. */
static bool
parts_are_rows(const Graph *g, const Node *concat, const Node *a)
{
	for (int k = 0; k < 3; k++) {
		const Shape *s = &g->val[concat->in[k]].shape;
		const Shape *d = &g->val[a->out[k]].shape;
		if (s->dim[s->rank - 1] != d->dim[1] * d->dim[3])
			return false;
	}
	const Shape *q = &g->val[a->out[0]].shape;
	const Shape *k = &g->val[a->out[1]].shape;
	const Shape *v = &g->val[a->out[2]].shape;
	return q->dim[2] == k->dim[2] && q->dim[3] == v->dim[3];
}

static void
pack_grads(struct edit *e, NodeId id, NodeId grad)
{
	Graph *g = e->g;
	Node *n = &g->node[id], *a = &g->node[grad];
	const Shape *q = &g->val[a->out[0]].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	Shape packed = SHAPE(q->dim[0], q->dim[2], y->dim[y->rank - 1]);

	for (int k = 0; k < 3; k++) {
		NodeId r = g->val[n->in[k]].def;
		e->dead[r] = true;
		e->dead[g->val[g->node[r].in[0]].def] = true;
	}
	a->attr.ATTENTION_GRAD.packed = 1;
	a->nout = 1;
	node_add_origin(g, a, n->origin, n->norigin);
	if (shape_eq(y, &packed)) {
		a->out[0] = n->out[0];
		edit_claim(g, a);
		e->dead[id] = true;
		return;
	}
	Shape flat = *y;
	ValId v = val_new(g, V_TEMP, NULL, g->val[a->out[0]].dt, packed);
	a->out[0] = v;
	edit_claim(g, a);
	n->op = OP_RESHAPE;
	n->attr = attr_reshape(&flat);
	n->nin = 1;
	n->in[0] = v;
}

bool
fuse_packed(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	for (NodeId id = 1; id < e.nold; id++) {
		const Node *n = &g->node[id];
		if (n->op != OP_CONCAT || n->nin != 3)
			continue;
		int rank = g->val[n->out[0]].shape.rank;
		NodeId a = packed_grad(&e, n->in[0], 0);
		if (!a || n->attr.CONCAT.axis != rank - 1
		    || packed_grad(&e, n->in[1], 1) != a
		    || packed_grad(&e, n->in[2], 2) != a
		    || !parts_are_rows(g, n, &g->node[a]))
			continue;
		pack_grads(&e, id, a);
	}
	edit_commit(&e);
	return true;
}

/* ---- sums as accumulators ---- */

/* The node that computes v, behind reshapes perhaps, and could add to an
 * accumulator. */
static NodeId
adder_of(const struct edit *e, ValId v, Phase phase)
{
	const Graph *g = e->g;

	for (;;) {
		NodeId id = g->val[v].def;
		const Node *n = &g->node[id];
		if (!id || !edit_single(e, v) || n->phase != phase)
			return 0;
		int acc = op_accumulator(n->op);
		if (acc > 0)
			return (n->nin <= acc || !n->in[acc])
			       && g->val[v].result_index == 0
			       && (n->op != OP_MATMUL
			           || g->val[v].shape.rank == 2) ? id : 0;
		if (n->op != OP_RESHAPE)
			return 0;
		v = n->in[0];
	}
}

/* Where the value is there: the node that computes it, looking through
 * reshapes. */
static NodeId
ready_at(const Graph *g, ValId v)
{
	return g->val[edit_through_reshapes(g, v)].def;
}

/* Node id, add(other, result of `adder`), becomes adder's accumulator. */
static bool
accumulate_into(struct edit *e, NodeId id, NodeId adder, ValId other)
{
	Graph *g = e->g;
	int slot = op_accumulator(g->node[adder].op);
	Shape s = g->val[g->node[adder].out[0]].shape;
	ValId acc = edit_reshaped(e, other, &s, adder), *in;
	Node *m;

	if (!acc)
		return false;
	m = &g->node[adder];
	/* a rank's shapes alone do not say along which dim it is cut */
	if (g->val[acc].placement.kind == PLACEMENT_REPLICATE)
		g->val[acc].placement = g->val[m->out[0]].placement;
	in = arena_array(g->arena, (size_t)slot + 1, sizeof *in);
	memcpy(in, m->in, (size_t)m->nin * sizeof *in);
	in[slot] = acc;
	m->in = in;
	m->nin = slot + 1;
	edit_replace_node(e, id, adder);
	return true;
}

bool
fuse_accumulators(Pass *p, Graph *g)
{
	struct edit e = edit_new(p, g);

	for (NodeId id = 1; id < e.nold; id++) {
		const Node *n = &g->node[id];
		const Shape *y = &g->val[n->out[0]].shape;
		if (n->op != OP_ADD || n->in[0] == n->in[1]
		    || !shape_eq(&g->val[n->in[0]].shape, y)
		    || !shape_eq(&g->val[n->in[1]].shape, y))
			continue;
		/* the later of the two adds to the earlier, so that nothing
		 * has to move */
		NodeId a = ready_at(g, n->in[0]), b = ready_at(g, n->in[1]);
		int k = a > b ? 0 : 1;
		ValId other = n->in[1 - k];
		NodeId adder = adder_of(&e, n->in[k], n->phase);
		if (!adder || !(k ? a : b))
			continue;
		if (!accumulate_into(&e, id, adder, other))
			return false;
	}
	edit_commit(&e);
	return true;
}
