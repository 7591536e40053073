/* Unnamed weights that several modules read: TorchScript folds a transposition
 * into each, then merges equal ones.  The file no longer tells whether modules
 * share the weight or are copies of each other. */
#include "frontend/lint/lint_context.h"

#include <ctype.h>

/* Skip the "_1" that a second call of a module appends to its component. */
static const char *
skip_call_number(const char *s)
{
	const char *end = s + 1;

	if (*s != '_')
		return s;
	while (isdigit((unsigned char)*end))
		end++;
	return end > s + 1 && *end == '/' ? end : s;
}

/* Whether two nodes belong to the same module: "/e/layers.0/linear1/MatMul". */
static bool
same_module(const char *a, const char *b)
{
	const char *enda = strrchr(a, '/'), *endb = strrchr(b, '/');

	if (!enda || !endb)
		return true;
	for (;;) {
		a = skip_call_number(a);
		b = skip_call_number(b);
		if (a >= enda || b >= endb)
			return a >= enda && b >= endb;
		if (*a++ != *b++)
			return false;
	}
}

void
lint_merged(struct lint_context *s)
{
	struct flat *f = s->f;
	struct lint_group g = { 0 };
	const char **first = arena_array(s->arena, (size_t)f->nval,
	                                 sizeof *first);
	bool *told = arena_array(s->arena, (size_t)f->nval, sizeof *told);
	int *copy_of = arena_array(s->arena, (size_t)f->nval, sizeof *copy_of);
	size_t top = f->file->model->graph->n_initializer;

	FOR_FLAT_NODES (n, f) {
		if (is_op_type(n, "Identity") && n->nout
		    && f->val[node_input(n, 0)].init) {
			copy_of[n->out[0]] = node_input(n, 0);
			continue;
		}
		for (int k = 0; n->needed && k < n->nin; k++) {
			int v = copy_of[n->in[k]] ? copy_of[n->in[k]]
				: n->in[k];

			/* each trip reads the weights of a loop's body */
			if (!v || (size_t)v > top
			    || !lost_its_name(&f->val[v]))
				continue;
			if (!first[v])
				first[v] = n->name;
			if (told[v] || same_module(first[v], n->name))
				continue;
			told[v] = true;
			group_add_name(s, &g, f->val[v].name);
		}
	}
	add_warning(s, &g,
	    "several modules read {subject}, which ckc trains as one: the "
	    "export does not tell a shared weight from copies of a module with "
	    "equal values; export with training=TRAINING and "
	    "do_constant_folding=False");
}
