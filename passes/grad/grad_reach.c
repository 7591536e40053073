/* The table of gradient rules, and the values that depend on trained parameters
 * through ops that have one. */
#include "passes/grad/grad_rules.h"

GradRule *const grad_table[OP_COUNT] = {
	[OP_NONE] = grad_none,
#define RULES(shape, eval, dynamic, cost, grad, shard) grad_##grad
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#include "ir/ops.h"
};

static bool
has_float_type(const Graph *g, ValId v)
{
	return dtype_info[g->val[v].dt].cls == 'f';
}

bool
grad_passes(const Graph *g, const Node *n, int k)
{
	return n->in[k] != 0 && grad_table[n->op] != grad_zero
	       && has_float_type(g, n->in[k]);
}

bool *
grad_reach(const Graph *g, Arena *arena)
{
	bool *reach = arena_array(arena, g->nval, sizeof *reach);

	FOR_VALS (v, g)
		if (v->kind == V_PARAM && !v->frozen
		    && dtype_info[v->dt].cls == 'f')
			reach[val_id(g, v)] = true;
	FOR_NODES (n, g) {
		bool any = false;

		/* of totals the step's own summands have gradients */
		for (int k = 0; k < n->nin && !n->count_pass; k++)
			any |= grad_passes(g, n, k) && reach[n->in[k]];
		for (int k = 0; any && k < n->nout; k++)
			if (n->out[k] != 0 && has_float_type(g, n->out[k]))
				reach[n->out[k]] = true;
	}
	return reach;
}
