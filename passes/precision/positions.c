/* Keep products of integers in float32, such as the angles of rotary
 * embeddings: inverse frequencies times positions.
 *
 * bfloat16 has 8 bits, so that position 1501 would be 1504.  PyTorch's modules
 * switch autocast off around that product, which no export records.
 *
 * method  forward, what is computed of integers and constants alone by ops
 *         without an opinion of their type; a product that takes such a value,
 *         and otherwise constants
 * cost    linear
 */
#include "passes/precision/precision.h"

enum source { FROM_CONSTANTS, FROM_INTEGERS, FROM_OTHERS };

static enum source
source_of_leaf(const Val *v)
{
	if (v->kind == V_CONST || v->kind == V_BUFFER)
		return FROM_CONSTANTS;
	/* 16 bits hold those of 8 */
	return dtype_info[v->dt].nbytes > 1 && (dtype_info[v->dt].cls == 'i'
	                                        || dtype_info[v->dt].cls == 'u')
		? FROM_INTEGERS : FROM_OTHERS;
}

static enum source
source_of_node(const Graph *g, const Node *n, const enum source *source)
{
	enum source s = FROM_CONSTANTS;
	/* what is looked up says what the result is of, not by what */
	int nin = n->op == OP_GATHER || n->op == OP_GATHER_ND
		|| n->op == OP_GATHER_ELEMENTS ? 1 : n->nin;

	if (op_info[n->op].flags & (F_TO_BOOL | F_RNG)
	    || (n->op == OP_CAST && g->val[n->in[0]].dt == DT_BOOL))
		return FROM_OTHERS;
	for (int k = 0; k < nin; k++)
		if (n->in[k] && source[n->in[k]] > s)
			s = source[n->in[k]];
	return s;
}

bool *
precision_positions(const Graph *g, Arena *arena)
{
	enum source *source = arena_array(arena, g->nval, sizeof *source);
	bool *full = arena_array(arena, g->nnode, sizeof *full);

	for (ValId v = 1; v < g->nval; v++)
		source[v] = source_of_leaf(&g->val[v]);
	for (NodeId id = 1; id < g->nnode; id++) {
		const Node *n = &g->node[id];
		enum source s = source_of_node(g, n, source);

		full[id] = s == FROM_INTEGERS
			&& n->op == OP_MATMUL;
		for (int k = 0; k < n->nout; k++)
			source[n->out[k]] = s;
	}
	return full;
}
