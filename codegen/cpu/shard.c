/* Steps of sharded graphs. */
#include "codegen/cpu/emit.h"

static bool
not_yet(struct emit *e, const Node *n)
{
	return diag_at(e->diag, node_label(e->g, n), node_type(e->g, n),
	               "%s is not carried out yet", op_info[n->op].text);
}

/* No kernel: the run time moves it.  What is added must have a type that it
 * adds. */
bool
emit_comm(struct emit *e, const Node *n)
{
	DType dt = emit_in(e, n, 0)->dt;
	bool adds = n->op == OP_ALL_REDUCE || n->op == OP_REDUCE_SCATTER;

	return !adds || dtype_info[dt].cls == 'f' || dt == DT_I64
		|| dt == DT_I32 || emit_unsupported(e, n, dt);
}

bool
emit_vocab_stats(struct emit *e, const Node *n)
{
	return not_yet(e, n);
}

bool
emit_sum_squares(struct emit *e, const Node *n)
{
	return not_yet(e, n);
}
