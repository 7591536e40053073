/* Steps of sharded graphs. */
#include "codegen/cpu/emit.h"

static bool
not_yet(struct emit *e, const Node *n)
{
	return diag_at(e->diag, node_label(e->g, n), node_type(e->g, n),
	               "%s is not carried out yet", op_info[n->op].text);
}

bool
emit_comm(struct emit *e, const Node *n)
{
	return not_yet(e, n);
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
