/* What the tables say of inputs, and of what ckc adds to outputs. */
#include "codegen/tables.h"

#include <string.h>

/* ---- labels that the graph shifts itself ---- */

static ValId
labels_of(const Node *n)
{
	unsigned flags = op_info[n->op].flags;

	return flags & F_LABELS_1 ? n->in[1] : flags & F_LABELS_2 ? n->in[2]
	     : 0;
}

/* Walk from the loss' labels back to an input; a slice that skips the first
 * positions on the way means that the graph predicts the next token. */
static bool
mark_shifted(const Graph *g, ValId at, bool shifted, unsigned char *input,
             unsigned char *seen)
{
	const Val *v = &g->val[at];
	const Node *n;

	if (!at || seen[at] & 1 << shifted)
		return false;
	seen[at] |= (unsigned char)(1 << shifted);
	if (v->kind == V_INPUT) {
		input[at] |= shifted ? INPUT_SHIFTED : 0;
		return true;
	}
	if (!v->def)
		return false;
	n = &g->node[v->def];
	if (n->op == OP_SLICE)
		for (int i = 0; i < n->attr.SLICE.start.n; i++)
			shifted |= n->attr.SLICE.start.v[i] > 0 &&
			           n->attr.SLICE.step.v[i] == 1;
	for (int i = 0; i < n->nin; i++)
		if (mark_shifted(g, n->in[i], shifted, input, seen))
			return true;
	return false;
}

/* ---- inputs that predictions do not need ---- */

bool
tables_is_metric(const Val *v)
{
	return v->output && (!strcmp(v->name, EVAL_COUNTED)
	                     || !strcmp(v->name, EVAL_CORRECT)
	                     || !strcmp(v->name, EVAL_ENTROPY));
}

/* Those that outputs other than the loss and what comes with it do not depend
 * on, if there are any such outputs. */
static void
mark_labels(const Graph *g, Arena *a, unsigned char *input)
{
	bool *needed = arena_array(a, g->nval, sizeof *needed), any = false;

	FOR_VALS (v, g)
		any |= needed[val_id(g, v)] = v->output
			&& val_id(g, v) != g->loss && !tables_is_metric(v);
	for (Node *n = g->node + g->nnode; any && --n > g->node;) {
		bool some = false;

		for (int k = 0; k < n->nout; k++)
			some |= n->out[k] && needed[n->out[k]];
		for (int k = 0; some && k < n->nin; k++)
			needed[n->in[k]] = n->in[k] != 0;
	}
	FOR_VALS (v, g)
		if (any && v->kind == V_INPUT && !needed[val_id(g, v)])
			input[val_id(g, v)] |= INPUT_LABEL;
}

unsigned char *
tables_inputs(Arena *a, const Graph *g, const Graph *forward)
{
	unsigned char *input = arena_array(a, g->nval, 1);

	FOR_NODES (n, g)
		if (labels_of(n))
			mark_shifted(g, labels_of(n), false, input,
			             arena_array(a, g->nval, 1));
	if (forward)
		mark_labels(forward, a, input);
	return input;
}
