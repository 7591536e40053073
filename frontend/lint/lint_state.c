/* Warnings about state that forward changes in the module but not in the file.
 */
#include "frontend/lint/lint_context.h"
#include "frontend/params/params.h"

/* TorchScript's form of PyTorch's BatchNorm(momentum=None). */
static bool
is_momentum_zero(struct lint_context *s, const struct flat_node *n)
{
	const Onnx__AttributeProto *a = attr_find(n, "momentum");
	enum batchnorm form = batchnorm_asked(s->f, s->opt, n);

	return is_needed_batchnorm(n) && a && a->f == 0
		&& (form == BATCHNORM_BATCH
		    || (form == BATCHNORM_GRAPH && batchnorm_trains(n)));
}

void
lint_state(struct lint_context *s)
{
	struct lint_group zero = group_nodes(s, is_momentum_zero);
	struct lint_group buffers = { 0 };

	/* dynamo's signature lists the buffers that forward assigns to; the
	 * graph updates those of BatchNormalization only */
	for (int i = 0; i < s->f->nmutated; i++)
		FOR_FLAT_VALS (v, s->f)
			if (v->init && v->nuse && !v->state_slot
			    && strcmp(v->name, s->f->mutated[i]) == 0)
				group_add_name(s, &buffers, v->name);
	add_warning(s, &buffers,
	    "{subject}: the module's forward updates {this buffer|these "
	    "buffers}, but the file does not: each step uses the exported "
	    "value; make {it an input|them inputs} of the model");
	add_warning(s, &zero,
	    "{subject}: momentum 0: each step replaces the running statistics; "
	    "for the average over all steps (momentum=None in PyTorch), which "
	    "ONNX cannot express, use a small momentum");
}
