/* The rule of a node: of its op, common to all targets or a target's own. */
#include "codegen/rules/target_emitter.h"

static EmitRule *const common_rule[OP_COUNT] = {
#define EMIT(rule) emit_##rule
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#include "ir/ops.h"
};

bool
emit_node(struct emit *e, const Node *n)
{
	EmitRule *own = e->emitter->op[n->op].emit;

	return (own ? own : common_rule[n->op])(e, n);
}
