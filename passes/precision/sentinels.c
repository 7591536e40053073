/* Numbers that stand for minus infinity in masks of scores, such as float32's
 * least.  In 16 bits they become infinite, and a row of scores that is masked
 * as a whole has no softmax, where float32 gives equal shares.
 *
 * A sentinel is a constant beyond 1e9 and the target's largest number, or what
 * is computed from one and from inputs and constants alone, that is only added
 * to scores or put in their place: what nothing but a softmax reads, behind
 * sums, choices and moves.  A cast brings it to half of the target's largest
 * number, so that a score added to it does not overflow.  Everywhere else
 * numbers beyond the target's are infinite, which bounds are anyway, and which
 * is seen where it matters.
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

/* Whether operand k of the node is a score, or becomes one. */
static bool
is_score(const Node *n, int k, const bool *score)
{
	if (n->op == OP_SOFTMAX || n->op == OP_LOG_SOFTMAX)
		return k == 0;
	if (!score[n->out[0]])
		return false;
	return n->op == OP_ADD || (n->op == OP_SUB && k == 0)
	       || (n->op == OP_WHERE && k > 0)
	       || op_info[n->op].flags & F_VIEW;
}

/* By value: nothing but a softmax reads it, or what becomes of it. */
static bool *
find_scores(const Graph *g, Arena *arena)
{
	bool *score = arena_array(arena, g->nval, sizeof *score);

	FOR_VALS (v, g)
		score[val_id(g, v)] = !v->output;
	for (NodeId id = g->nnode; id-- > 1;)
		for (int k = 0; k < g->node[id].nin; k++)
			score[g->node[id].in[k]] &=
				is_score(&g->node[id], k, score);
	return score;
}

bool *
precision_sentinels(const Graph *g, Arena *arena, DType to)
{
	bool *found = arena_array(arena, g->nval, sizeof *found);
	bool *given = arena_array(arena, g->nval, sizeof *given);
	const bool *score = find_scores(g, arena);
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
	/* what is computed of such values alone stays float32 */
	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			if (!given[n->out[0]] && !is_score(n, k, score))
				found[n->in[k]] = false;
	found[0] = false;
	return found;
}

double
precision_sentinel(DType to)
{
	return (to == DT_F16 ? 65504 : 0x1.fep127) / 2;
}
