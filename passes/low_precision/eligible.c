/* Which values may be kept in 16 bits.
 *
 * what    activations in float32 that depend on a trained parameter, of a size
 *         that is worth it.  Not: outputs, statistics of rows, summands of
 *         ranks; masks, which depend on no parameter and may hold the lowest
 *         float32.  Not in f16, of which the smallest number is 6e-8: what
 *         backward divides by
 * method  one walk
 * cost    linear
 */
#include "passes/low_precision/low_precision.h"

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

/* Operand k of a loop is where the result has poles. */
static bool
has_pole(const Node *n, int k)
{
	for (int i = 0; n->body && i < n->body->nop; i++) {
		const struct scalar_op *m = &n->body->op[i];

		for (int a = 0; a < m->narg; a++)
			if (op_info[m->op].flags & F_POLES && m->arg[a] == k)
				return true;
	}
	return false;
}

/* Values that backward divides by, where that would not do. */
static void
strike_poles(const Graph *g, DType to, bool *may)
{
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			if (to == DT_F16 && n->phase != PH_FORWARD
			    && has_pole(n, i))
				may[val_owner(g, n->in[i])] = false;
}

/* One number for every row, such as a mean, or a second result. */
static bool
is_statistic(const Graph *g, const Val *v)
{
	return (v->result_index > 0 && !g->node[v->def].body)
		|| v->shape.rank == 0 || v->shape.dim[v->shape.rank - 1] == 1;
}

bool *
low_precision_eligible(const Graph *g, DType to, Arena *a)
{
	bool *may = find_trained(g, a);

	FOR_VALS (v, g) {
		ValId id = val_id(g, v);

		may[id] &= v->kind == V_TEMP && v->def && !v->base
			&& !v->resident && !v->output && !v->param
			&& g->loss != id && v->dt == DT_F32
			&& g->node[v->def].phase == PH_FORWARD
			&& !(op_info[g->node[v->def].op].flags & F_WRITES)
			&& v->nbytes >= SMALL
			&& v->placement.kind != PLACEMENT_PARTIAL
			&& !is_statistic(g, v);
	}
	strike_poles(g, to, may);
	return may;
}

bool
low_precision_check(const Pass *p, const Graph *g)
{
	const char *to = dtype_info[p->opt->save_dtype].text;

	if (!p->opt->save_dtype)
		return true;
	if (p->opt->forward_only)
		return diag_error(p->diag, "--save-dtype %s requires a "
		                  "backward pass, found --forward-only", to);
	FOR_VALS (v, g)
		if (v->kind == V_PARAM && v->dt == DT_F64)
			return diag_error(p->diag, "--save-dtype %s: expected "
			                  "float32 parameters, found '%s' in "
			                  "float64; try: --dtype f32",
			                  to, v->name);
	return true;
}
