/* Warnings about state that forward changes in the module but not in the file.
 */
#include "frontend/lint/lint_context.h"
#include "frontend/params/params.h"

/* Dynamo's signature lists the buffers that forward assigns to.  The graph
 * updates those of BatchNormalization only. */
static void
find_mutated_buffers(struct lint_context *s)
{
	struct lint_group g = { 0 };

	for (int i = 0; i < s->f->nmutated; i++)
		for (int v = 1; v < s->f->nval; v++) {
			const struct flat_val *x = &s->f->val[v];

			if (x->init && x->nuse && !x->state_slot
			    && strcmp(x->name, s->f->mutated[i]) == 0)
				group_add_name(s, &g, x->name);
		}
	if (g.n)
		add_warning(s, &g,
		    "%s: the module's forward updates %s, but the file does "
		    "not: each step uses the exported value; make %s of the "
		    "model", group_subject(s, &g),
		    plural(g.n, "this buffer", "these buffers"),
		    plural(g.n, "it an input", "them inputs"));
}

/* TorchScript's form of PyTorch's BatchNorm(momentum=None). */
static void
find_momentum_zero(struct lint_context *s)
{
	struct lint_group g = { 0 };

	for (int i = 0; i < s->f->nnode; i++) {
		const struct flat_node *n = &s->f->node[i];
		const Onnx__AttributeProto *a = attr_find(n, "momentum");

		if (n->needed && is_op_type(n, "BatchNormalization") && a
		    && a->f == 0
		    && (s->opt->batchnorm == BATCHNORM_BATCH
		        || (s->opt->batchnorm == BATCHNORM_GRAPH
		            && batchnorm_trains(n))))
			group_add_name(s, &g, n->name);
	}
	if (g.n)
		add_warning(s, &g,
		    "%s: momentum 0: each step replaces the running "
		    "statistics; for the average over all steps "
		    "(momentum=None in PyTorch), which ONNX cannot express, "
		    "use a small momentum", group_subject(s, &g));
}

void
lint_state(struct lint_context *s)
{
	find_mutated_buffers(s);
	find_momentum_zero(s);
}
