/* Which values may be kept in 16 bits.
 *
 * what    activations in float32 that depend on a trained parameter, of a size
 *         that is worth it.  Not: outputs, statistics of rows, summands of
 *         ranks; masks, which depend on no parameter and may hold the lowest
 *         float32
 *         Not either, what must be met again exactly: backward compares (which
 *         element is the largest?), and forward decides (argmax, topk, indices
 *         computed of floats).  Rounded, or computed again from what is
 *         rounded, it would answer otherwise than it did in forward; so all
 *         that such a value is computed from stays as well.
 *         Not in f16, of which the smallest number is 6e-8: what backward
 *         divides by.
 * method  one walk forwards for the parameters, one backwards for the rest
 * cost    linear
 */
#include "passes/save/save.h"

enum { SMALL = 1024 };                  /* bytes */

/* Floats that depend on a trained parameter. */
static bool *
find_trained(const Graph *g, Arena *a)
{
	bool *trained = arena_array(a, g->nval, sizeof *trained);

	FOR_VALS (v, g)
		trained[val_id(g, v)] = v->kind == V_PARAM && !v->frozen;
	FOR_NODES (n, g) {
		bool any = false;

		for (int i = 0; i < n->nin; i++)
			any |= trained[n->in[i]];
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				trained[n->out[i]] = any
					&& dtype_info[g->val[n->out[i]].dt].cls
					== 'f';
	}
	return trained;
}

static bool
is_number(const Graph *g, const Node *n, int arg)
{
	return arg >= 0 && g->val[n->in[arg]].kind == V_CONST;
}

/* Two values are compared for being the same. */
static bool
compares(const Graph *g, const Node *n)
{
	for (int i = 0; n->body && i < n->body->nmicro; i++) {
		const struct micro *m = &n->body->micro[i];

		if (m->op == OP_EQ && !is_number(g, n, m->arg[0])
		    && !is_number(g, n, m->arg[1]))
			return true;
	}
	return false;
}

/* Operand k of a loop is where the result has poles. */
static bool
has_pole(const Node *n, int k)
{
	for (int i = 0; n->body && i < n->body->nmicro; i++) {
		const struct micro *m = &n->body->micro[i];

		for (int a = 0; a < m->narg; a++)
			if (op_info[m->op].flags & F_POLES && m->arg[a] == k
			    && (m->op != OP_DIV || a == 1))
				return true;
	}
	return false;
}

/* Forward makes whole numbers of floats, for what backward needs. */
static bool
decides(const Graph *g, const Node *n, const bool *needed)
{
	bool whole = false, floats = false;

	for (int i = 0; i < n->nout; i++)
		whole |= n->out[i] && needed[n->out[i]]
			&& (dtype_info[g->val[n->out[i]].dt].cls == 'i'
			    || dtype_info[g->val[n->out[i]].dt].cls == 'u');
	for (int i = 0; i < n->nin; i++)
		floats |= dtype_info[g->val[n->in[i]].dt].cls == 'f';
	return whole && floats;
}

/* By value: it must stay as it is. */
static bool *
find_exact(const Graph *g, DType to, Arena *a)
{
	bool *exact = arena_array(a, g->nval, sizeof *exact);
	bool *needed = arena_array(a, g->nval, sizeof *needed);

	for (NodeId id = g->nnode - 1; id > 0; id--) {
		const Node *n = &g->node[id];
		bool forward = n->phase == PH_FORWARD, need = !forward, keep;

		for (int i = 0; i < n->nout; i++)
			need |= needed[n->out[i]];
		keep = forward ? decides(g, n, needed) : compares(g, n);
		/* an adjoint is not made of such values, but a view is */
		for (int i = 0; i < n->nout; i++)
			keep |= exact[n->out[i]] && (forward
				|| op_info[n->op].flags & F_VIEW);
		for (int i = 0; i < n->nin; i++) {
			ValId o = n->in[i] ? val_owner(g, n->in[i]) : 0;

			needed[n->in[i]] |= need;
			exact[n->in[i]] |= keep;
			if (!forward && to == DT_F16 && has_pole(n, i))
				exact[o] = true;
		}
	}
	exact[0] = false;
	return exact;
}

/* One number for every row, such as a mean, or a second result. */
static bool
is_statistic(const Graph *g, const Val *v)
{
	return (v->slot > 0 && !g->node[v->def].body) || v->shape.rank == 0
		|| v->shape.dim[v->shape.rank - 1] == 1;
}

bool *
save_which(const Graph *g, DType to, Arena *a)
{
	bool *may = find_trained(g, a);
	const bool *exact = find_exact(g, to, a);

	FOR_VALS (v, g) {
		ValId id = val_id(g, v);

		may[id] &= v->kind == V_TEMP && v->def && !v->base
			&& !v->resident && !v->output && !v->param
			&& g->loss != id && v->dt == DT_F32
			&& g->node[v->def].phase == PH_FORWARD
			&& !(op_info[g->node[v->def].op].flags & F_WRITES)
			&& v->nbytes >= SMALL && v->split.kind != SPLIT_P
			&& !is_statistic(g, v) && !exact[id];
	}
	return may;
}
