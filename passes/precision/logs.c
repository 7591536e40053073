/* Keep the inputs of logarithms in float32.
 *
 * A sigmoid near 1 has steps of 2^-8 in bfloat16, so that log(1 - p) is
 * infinite or wrong by a factor.  Losses written by hand are made of that;
 * autocast keeps logarithms and losses in float32, and log_softmax and
 * softplus have no such middle.
 *
 * Likewise log(1 + u) and exp(u) - 1, as exporters write log1p and expm1: of a
 * small u, 1 + u in 16 bits is 1.
 *
 * method  forward, what is computed of a saturating op by ops without an
 *         opinion of their type; backward, what of that a logarithm reads, and
 *         the sums, products and quotients that it reads
 * cost    linear
 */
#include "passes/precision/precision.h"

static bool
has_opinion(const Node *n)
{
	return op_info[n->op].flags & (F_HALF | F_HALF_0 | F_FULL | F_WIDE_0
	                               | F_TO_BOOL | F_TO_I64);
}

/* Sums, products and quotients. */
static bool
is_arithmetic(const Node *n)
{
	const uint64_t want = F_EW | F_LIN0;

	return (op_info[n->op].flags & want) == want && n->nin == 2
		&& !has_opinion(n);
}

bool *
precision_differences(const Graph *g, Arena *arena)
{
	bool *full = arena_array(arena, g->nnode, sizeof *full);

	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];
		double x;

		for (int k = 0; k < 2 && is_arithmetic(n)
		     && op_info[n->op].flags & F_JOINT; k++) {
			NodeId of = g->val[n->in[k]].def;

			if (of && g->node[of].op == OP_EXP
			    && val_splat(g, n->in[1 - k], &x))
				full[id] = full[of] = true;
		}
	}
	return full;
}

bool *
precision_logs(const Graph *g, Arena *arena)
{
	bool *ends = arena_array(arena, g->nval, sizeof *ends);
	bool *read = arena_array(arena, g->nval, sizeof *read);
	bool *full = arena_array(arena, g->nnode, sizeof *full);

	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];
		bool any = op_info[n->op].flags & F_ENDS;

		for (int k = 0; k < n->nin && !has_opinion(n); k++)
			any |= ends[n->in[k]];
		for (int k = 0; k < n->nout; k++)
			ends[n->out[k]] = any && n->out[k];
	}
	for (NodeId id = g->nnode; id-- > 1;) {
		const Node *n = &g->node[id];
		uint64_t flags = op_info[n->op].flags;

		for (int k = 0; k < n->nout; k++)
			full[id] |= read[n->out[k]];
		full[id] |= (flags & F_LOG) != 0;
		for (int k = 0; k < n->nin && full[id]; k++)
			if ((ends[n->in[k]] && (flags & F_LOG
			                        || !(flags & F_ENDS)))
			    || is_arithmetic(&g->node[g->val[n->in[k]].def]))
				read[n->in[k]] = true;
	}
	return full;
}
