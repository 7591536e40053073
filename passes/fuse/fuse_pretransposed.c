/* Products of few rows that share a transposed right side get a copy of it as
 * it is read.
 *
 *   y1 = matmul(x1, w, tb = 1); y2 = matmul(x2, w, tb = 1); ..
 *     =>  t = copy(transpose(w)); y1 = matmul(x1, t); y2 = matmul(x2, t); ..
 *
 * A library transposes while it packs its operand, for each product again, and
 * with few rows that is most of the work: steps of recurrent cells.
 */
#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

enum {
	ROWS_MOST = 64,
	PRODUCTS_LEAST = 8
};

static bool
is_flat(const Graph *g, ValId v)
{
	return g->val[v].shape.rank == 2 && g->val[v].dt == DT_F32;
}

static bool
is_candidate(const Graph *g, const Node *n)
{
	return n->op == OP_MATMUL && n->attr.MATMUL.tb && !n->count_pass
		&& is_flat(g, n->in[0])
		&& is_flat(g, n->in[1])
		&& g->val[n->out[0]].shape.dim[0] <= ROWS_MOST;
}

/* What products of one phase share. */
static bool
share_transposed(struct edit *e, Phase phase)
{
	Graph *g = e->g;
	int *readers = arena_array(e->p->scratch, g->nval, sizeof *readers);
	ValId *transposed =
		arena_array(e->p->scratch, g->nval, sizeof *transposed);

	for (NodeId id = 1; id < e->nold; id++) {
		const Node *n = &g->node[id];

		if (n->phase == phase && is_candidate(g, n))
			readers[n->in[1]]++;
	}
	for (NodeId id = 1; id < e->nold; id++) {
		Attr attr = attr_default(OP_TRANSPOSE);
		ValId w, t;

		if (g->node[id].phase != phase
		    || !is_candidate(g, &g->node[id]))
			continue;
		w = g->node[id].in[1];
		if (readers[w] < PRODUCTS_LEAST)
			continue;
		if (!transposed[w]) {
			attr.TRANSPOSE.perm = (IntList){ 2, { 1, 0 } };
			t = emit_op(g, e->p->diag, OP_TRANSPOSE, 1, &w, &attr,
			            id);
			if (!t)
				return false;
			edit_place(e, g->val[t].def, id);
			t = emit_op(g, e->p->diag, OP_COPY, 1, &t, NULL, id);
			if (!t)
				return false;
			edit_place(e, g->val[t].def, id);
			transposed[w] = t;
		}
		g->node[id].in[1] = transposed[w];
		g->node[id].attr.MATMUL.tb = 0;
	}
	return true;
}

bool
fuse_pretransposed(Pass *p, Graph *g)
{
	for (Phase phase = PH_FORWARD; phase <= PH_BACKWARD; phase++) {
		struct edit e = edit_new(p, g);

		if (!share_transposed(&e, phase))
			return false;
		edit_commit(&e);
	}
	return true;
}
