/* Products convert frozen weights of fewer bits themselves.
 *
 *   y = matmul(x, dequantize(w))    =>  y = matmul(x, w)
 *   y = matmul(x, cast(w))          =>  y = matmul(x, w)
 *
 * The converted weights are then never in memory as a whole, and nothing is
 * left to keep or to make again.
 */
#include "passes/fuse/fuse.h"

/* What v is converted from; 0: nothing. */
static ValId
converted_from(const Graph *g, ValId v)
{
	const Node *n = &g->node[g->val[v].def];

	return n->op == OP_DEQUANTIZE || n->op == OP_CAST ? n->in[0] : 0;
}

bool
fuse_frozen(Pass *p, Graph *g)
{
	(void)p;
	FOR_NODES (n, g) {
		ValId w = n->op == OP_MATMUL ? converted_from(g, n->in[1]) : 0;

		if (w && g->val[w].shape.rank == 2
		    && g->val[n->in[0]].shape.rank >= 2
		    && val_takes_stored(&g->val[n->in[0]], &g->val[w]))
			n->in[1] = w;
	}
	return true;
}
