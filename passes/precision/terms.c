/* Keep the terms of sums in float32, such as the squares of a vector's norm.
 *
 * float16 ends at 65,504, so that the square of 256 is infinite, as is the
 * third power of 41, and x / |x| is 0 with a gradient of 0.  Autocast computes
 * norms, distances and cosine similarities as a whole in float32.
 *
 * method  backward, products and powers that only reductions read, which take
 *         float32 anyway, and powers that only such terms read: |x|^3 is
 *         |x| * |x| * |x|
 * cost    linear
 */
#include "passes/precision/precision.h"

static bool
is_product(const Node *n)
{
	return n->op == OP_MUL || n->op == OP_POW;
}

/* x * x, or x to any power. */
static bool
is_power(const Node *n)
{
	return is_product(n) && (n->op == OP_POW || n->in[0] == n->in[1]);
}

bool *
precision_terms(const Graph *g, Arena *arena)
{
	bool *summed = arena_array(arena, g->nval, sizeof *summed);
	bool *other = arena_array(arena, g->nval, sizeof *other);
	bool *full = arena_array(arena, g->nnode, sizeof *full);

	for (NodeId id = g->nnode; id-- > 1;) {
		const Node *n = &g->node[id];

		full[id] = is_product(n)
			&& summed[n->out[0]] && !other[n->out[0]]
			&& !g->val[n->out[0]].output;
		for (int k = 0; k < n->nin; k++) {
			const Node *from = &g->node[g->val[n->in[k]].def];
			bool term = op_info[n->op].flags & F_REDUCE
				|| (full[id] && is_power(from));

			(term ? summed : other)[n->in[k]] = true;
		}
	}
	return full;
}
