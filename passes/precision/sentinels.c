/* Numbers that stand for minus infinity in masks, such as float32's least.  In
 * 16 bits they become infinite, and a row of scores that is masked as a whole
 * has no softmax, where float32 gives equal shares.
 *
 * A sentinel is a constant beyond 1e9 and the target's largest number, or what
 * is computed from one and from inputs and constants alone, that is only added
 * to other values, compared with them or chosen among them.  A cast brings it
 * to half of the target's largest number, so that a score added to it does not
 * overflow.  Factors and other large constants stay as they are: that they
 * overflow is seen.
 *
 * cost    linear, in elements of constants too
 */
#include "passes/precision/precision.h"

#include <math.h>

static bool
has_sentinel(const Val *v, double limit)
{
	bool found = false;

	if (v->kind != V_CONST || !v->data || dtype_info[v->dt].cls != 'f')
		return false;
	for (int64_t i = 0; i < val_nelem(v) && !found; i++) {
		double x = fabs(val_float(v, i));

		found = x > limit && x >= 1e9 && isfinite(x);
	}
	return found;
}

/* Sums and choices, in which it hides what stands beside it. */
static bool
hides_others(Op op)
{
	return op == OP_ADD || op == OP_SUB || op == OP_MAX || op == OP_MIN
	       || op == OP_WHERE;
}

bool *
precision_sentinels(const Graph *g, Arena *arena, DType to)
{
	bool *found = arena_array(arena, g->nval, sizeof *found);
	bool *given = arena_array(arena, g->nval, sizeof *given);
	double limit = 2 * precision_sentinel(to);

	FOR_VALS (v, g) {
		found[val_id(g, v)] = has_sentinel(v, limit);
		given[val_id(g, v)] = v->kind == V_CONST || v->kind == V_INPUT;
	}
	FOR_NODES (n, g) {
		bool any = false, all = op_info[n->op].flags & (F_EW | F_VIEW);

		for (int k = 0; k < n->nin; k++) {
			any |= found[n->in[k]];
			all &= !n->in[k] || given[n->in[k]];
		}
		for (int k = 0; k < n->nout; k++) {
			given[n->out[k]] = all;
			found[n->out[k]] = all && any;
		}
	}
	/* what is multiplied, or read in another way, but by what is itself
	 * computed of such values */
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			if (!hides_others(n->op) && !given[n->out[0]])
				found[n->in[k]] = false;
	found[0] = false;
	return found;
}

double
precision_sentinel(DType to)
{
	return (to == DT_F16 ? 65504 : 0x1.fep127) / 2;
}
