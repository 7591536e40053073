/* Dropout with a stored mask, as in frameworks, to compare memory with them.
 * The mask holds the same random bits: it is dropout of ones.
 *
 * Fused attention draws its own random numbers and has no mask to store;
 * --attention=unfused has.
 */
#include "passes/precision/precision.h"

struct mask {
	Graph *g;
	Diag *d;
	NodeId like;
	void (*placed)(void *, NodeId);
	void *of;
};

/* Nothing comes of nothing: 0. */
static ValId
emit_placed(struct mask *m, Op op, int nin, const ValId *in, const Attr *a)
{
	ValId v = nin && !in[nin - 1] ? 0
		: emit_op(m->g, m->d, op, nin, in, a, m->like);

	if (v)
		m->placed(m->of, m->g->val[v].def);
	return v;
}

ValId
precision_mask(Graph *g, Diag *d, NodeId id, void (*placed)(void *, NodeId),
               void *of)
{
	struct mask m = { g, d, id, placed, of };
	ValId x = g->node[id].in[0], one, mask, in[3];
	Attr drop = g->node[id].attr, to = attr_cast(DT_BOOL);
	Attr shape = attr_expand(&g->val[x].shape);
	DType dt = g->val[x].dt;

	one = val_scalar(g, dt, 1);
	mask = emit_placed(&m, OP_EXPAND, 1, &one, &shape);
	mask = emit_placed(&m, OP_DROPOUT, 1, &mask, &drop);
	mask = emit_placed(&m, OP_CAST, 1, &mask, &to);
	in[0] = x;
	in[1] = val_scalar(g, dt, 1 / (1 - drop.DROPOUT.ratio));
	in[1] = emit_placed(&m, OP_MUL, 2, in, NULL);
	in[0] = mask;
	in[2] = val_scalar(g, dt, 0);
	return mask && in[1] ? emit_placed(&m, OP_WHERE, 3, in, NULL) : 0;
}
