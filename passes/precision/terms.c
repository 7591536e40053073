/* Keep the terms of sums in float32, such as the squares of a vector's norm.
 *
 * float16 ends at 65,504, so that the square of 256 is infinite, and x / |x| is
 * 0 with a gradient of 0.  Autocast computes norms, distances and cosine
 * similarities as a whole in float32.
 *
 * method  products that only reductions read, which take float32 anyway
 * cost    linear
 */
#include "passes/precision/precision.h"

bool *
precision_terms(const Graph *g, Arena *arena)
{
	bool *summed = arena_array(arena, g->nval, sizeof *summed);
	bool *other = arena_array(arena, g->nval, sizeof *other);
	bool *full = arena_array(arena, g->nnode, sizeof *full);

	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++)
			(op_info[n->op].flags & F_REDUCE ? summed
			 : other)[n->in[k]] = true;
	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];

		full[id] = n->op == OP_MUL && summed[n->out[0]]
			&& !other[n->out[0]] && !g->val[n->out[0]].output;
	}
	return full;
}
