/* The flat list as a whole: see flat.h.
 *
 * needs  an unpacked model, which flat_read.c reads
 * gives  struct flat: its outputs found, its nodes in topological order
 * cost   linear in the nodes
 * refuses  outputs that nothing writes, cycles among nodes
 */
#include "frontend/onnx/flat_read.h"

#include <string.h>

/* ---- order ---- */

/* Depth first in the file's order, which keeps an already sorted list.
 * The stack is explicit: files can be one long chain. */
static bool
sort_nodes(struct flat *f)
{
	size_t n = (size_t)f->nnode;
	struct flat_node *sorted = arena_array(f->arena, n + 1, sizeof *sorted);
	char *state = arena_alloc(f->arena, n + 1);
	int *stack = arena_array(f->arena, n + 1, sizeof *stack);
	int *next = arena_array(f->arena, n + 1, sizeof *next);
	int count = 0;

	for (int root = 0; root < f->nnode; root++) {
		int top = 0;

		if (state[root])
			continue;
		stack[top++] = root;
		state[root] = 1;
		while (top > 0) {
			int i = stack[top - 1];
			const struct flat_node *node = &f->node[i];

			if (next[i] < node->nin) {
				int def = f->val[node->in[next[i]++]].def;

				if (def < 0 || state[def] == 2)
					continue;
				if (state[def] == 1)
					return diag_at(
						f->diag, node->name, node->type,
						"the graph has a cycle through "
						"this node");
				state[def] = 1;
				stack[top++] = def;
				continue;
			}
			state[i] = 2;
			top--;
			sorted[count++] = *node;
		}
	}
	f->node = sorted;
	for (int i = 0; i < count; i++)
		for (int k = 0; k < sorted[i].nout; k++)
			if (sorted[i].out[k]) {
				f->val[sorted[i].out[k]].def = i;
				f->val[sorted[i].out[k]].slot = k;
			}
	return true;
}

void
flat_mark_needed(struct flat *f)
{
	for (int i = 0; i < f->nval; i++)
		f->val[i].nuse = 0;
	for (int i = f->nnode - 1; i >= 0; i--) {
		struct flat_node *n = &f->node[i];

		n->needed = false;
		for (int k = 0; k < n->nout; k++) {
			const struct flat_val *y = &f->val[n->out[k]];

			/* an untied parameter has no writer any more */
			n->needed |= n->out[k] && y->def == i
				&& (y->output || y->nuse);
		}
		for (int k = 0; n->needed && k < n->nin; k++)
			f->val[n->in[k]].nuse += n->in[k] != 0;
	}
}

static bool
find_outputs(struct flat *f, const struct context *c,
             const Onnx__GraphProto *g)
{
	f->output = arena_array(f->arena, g->n_output + 1, sizeof *f->output);
	for (size_t i = 0; i < g->n_output; i++) {
		const char *name = flat_text(g->output[i]->name);
		int v = flat_name_get(&c->names, name);

		if (!v)
			return diag_error(f->diag, "graph output '%s' is never "
			                  "written", name);
		if (f->val[v].output)
			return diag_error(f->diag, "graph output '%s' occurs "
			                  "twice; rename one of them with an "
			                  "Identity node", name);
		f->val[v].output = true;
		f->output[f->noutput++] = v;
	}
	if (f->noutput == 0)
		return diag_error(f->diag, "the graph has no outputs");
	return true;
}

struct flat *
flat_new(struct onnx_file *file, Diag *diag, Arena *arena,
         const struct flat_known *known, int nknown)
{
	struct flat *f = arena_alloc(arena, sizeof *f);
	const Onnx__ModelProto *m = file->model;
	struct context c = { .prefix = "", .opset = m->opset_import,
	                     .nopset = m->n_opset_import, .top = true };

	*f = (struct flat){ .arena = arena, .file = file, .known = known,
	                    .known_at = arena_array(arena, 1,
	                                            sizeof *f->known_at),
	                    .nested = arena_array(arena, 1, sizeof *f->nested),
	                    .diag = diag, .opset = opset_of(&c, "") };
	for (int i = 0; i < nknown; i++)
		flat_name_set(f, f->known_at, known[i].name, i + 1);
	f->input = arena_array(arena, m->graph->n_input + 1, sizeof *f->input);
	flat_add_val(f, &c, "");             /* 0: absent */
	if (!ir_check(f) || !opset_check(f, &c) || !flat_read_model(f, &c)
	    || !find_outputs(f, &c, m->graph) || !sort_nodes(f))
		return NULL;
	flat_mark_needed(f);
	return f;
}
