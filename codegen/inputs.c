/* Tables of inputs, of the outputs that ckc adds, and of the loss of data
 * sets.
 */
#include "codegen/stages.h"
#include "codegen/tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- labels that the graph shifts itself ---- */

static ValId
labels_of(const Node *n)
{
	unsigned flags = op_info[n->op].flags;

	return flags & F_LABELS_1 ? n->in[1] : flags & F_LABELS_2 ? n->in[2]
	     : 0;
}

static bool
skips_first(const Node *n)
{
	for (int i = 0; i < n->attr.SLICE.start.n; i++)
		if (n->attr.SLICE.start.v[i] > 0
		    && n->attr.SLICE.step.v[i] == 1)
			return true;
	return false;
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
	if (n->op == OP_SLICE && !graph_half_of(g, n))
		shifted |= skips_first(n);
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
	                     || !strcmp(v->name, EVAL_ENTROPY)
	                     || !strncmp(v->name, EVAL_TERM,
	                                 sizeof EVAL_TERM - 1));
}

/* Mark the operands that marked outputs of a loop depend on: a loop may hold
 * ops of the loss beside those of an output. */
static void
mark_loop_operands(const Node *n, Arena *a, bool *needed)
{
	const struct body *b = n->body;
	bool *read = arena_array(a, (size_t)b->nop, sizeof *read);

	for (int k = 0; k < n->nout; k++)
		read[b->result[k]] |= n->out[k] && needed[n->out[k]];
	for (int i = b->nop; i-- > 0;)
		for (int k = 0; read[i] && k < b->op[i].narg; k++) {
			int arg = b->op[i].arg[k];

			if (arg < 0)
				read[~arg] = true;
			else
				needed[n->in[arg]] = true;
		}
}

static void
need_of_node(const Node *n, bool *needed)
{
	bool some = false;

	for (int k = 0; k < n->nout; k++)
		some |= n->out[k] && needed[n->out[k]];
	for (int k = 0; some && k < n->nin; k++)
		needed[n->in[k]] = n->in[k] != 0;
}

/* Inputs that only the loss and the outputs computed with it depend on, if
 * there are other outputs. */
static void
mark_labels(const Graph *g, Arena *a, unsigned char *input)
{
	bool *needed = arena_array(a, g->nval, sizeof *needed), any = false;

	FOR_VALS (v, g)
		any |= needed[val_id(g, v)] = v->output
			&& val_id(g, v) != g->loss && !tables_is_metric(v);
	for (Node *n = g->node + g->nnode; any && --n > g->node;)
		if (n->body)
			mark_loop_operands(n, a, needed);
		else
			need_of_node(n, needed);
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
	mark_labels(forward ? forward : g, a, input);
	return input;
}

/* ---- the loss of a data set ---- */

/* Index of an operand's tensor; -1: there is none. */
static int64_t
term_tensor(const struct emitted_library *lib, const struct formula_term *t)
{
	const struct emitted_program *p = &lib->program[
		lib->program[PROGRAM_FORWARD].plan ? PROGRAM_FORWARD
		: PROGRAM_PLAN];
	ValId v;

	if (lib->stages)
		return stages_find_evaluated(lib->stages, t->output);
	v = t->output ? val_find(p->g, t->output) : p->g->loss;
	return v ? p->index_of_val[v] : -1;
}

bool
tables_emit_formula(struct out *o, const struct emitted_library *lib, Diag *d)
{
	const struct loss_formula *formula = lib->formula;
	int n = formula ? formula->n : 0;

	if (n)
		out_put(o, "\nstatic const struct ckr_formula_term term[] "
		        "= {\n");
	for (int i = 0; i < n; i++) {
		const struct formula_term *t = &formula->term[i];
		bool has = t->op > FORMULA_NUMBER && t->op <= FORMULA_SAME;
		int64_t at = has ? term_tensor(lib, t) : -1;

		if (has && at < 0)
			return diag_internal(d, "codegen: '%s', which "
			                     "evaluation reports, is not in "
			                     "the plan",
			                     t->output ? t->output : "loss");
		out_put(o, "\t{ %d, %" PRId64 ", ", (int)t->op, at);
		if (isfinite(t->number))
			out_put(o, "%.17g },\n", t->number);
		else
			out_put(o, "%s__builtin_%s },\n",
			        t->number < 0 ? "-" : "",
			        isnan(t->number) ? "nan(\"\")" : "inf()");
	}
	if (n)
		out_put(o, "};\n");
	return true;
}
