/* Keep the loss in float32 where float32 and 16 bits meet behind the last
 * product, such as a target less an output.
 *
 * A target of 1000 has steps of 8 in bfloat16, so that its distance to a mean
 * has errors of 4.  PyTorch computes in float32 what float32 and 16 bits meet
 * in.  ckc does so where nothing large follows: between products 16 bits win,
 * as x + f(x) there is the residual stream.
 *
 * method  backward, what the loss reads and no product does
 * cost    linear
 */
#include "passes/precision/precision.h"

static bool
any_result(const Node *n, const bool *of)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && of[n->out[k]])
			return true;
	return false;
}

bool *
precision_loss_side(const Graph *g, Arena *arena)
{
	bool *loss = arena_array(arena, g->nval, sizeof *loss);
	bool *product = arena_array(arena, g->nval, sizeof *product);
	bool *side = arena_array(arena, g->nnode, sizeof *side);

	loss[g->loss] = g->loss != 0;
	for (NodeId id = g->nnode; id-- > 1;) {
		const Node *n = &g->node[id];
		bool before = any_result(n, product)
			|| op_info[n->op].flags & (F_HALF | F_HALF_0);
		bool read = any_result(n, loss);

		side[id] = read && !before;
		for (int k = 0; k < n->nin; k++) {
			product[n->in[k]] |= before;
			loss[n->in[k]] |= read;
		}
	}
	return side;
}
