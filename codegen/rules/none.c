/* Rules of ops for which there is no common kernel. */
#include "codegen/rules/emit.h"

/* Such an op never comes here. */
bool
emit_fail(struct emit *e, const Node *n)
{
	return diag_internal(e->diag, "codegen: op %s was not lowered",
	                     op_info[n->op].text);
}

/* A rule of the target's own is missing. */
bool
emit_own(struct emit *e, const Node *n)
{
	return diag_internal(e->diag, "codegen: op %s has no kernel on this "
	                     "target", op_info[n->op].text);
}
