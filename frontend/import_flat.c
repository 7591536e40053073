/* What import and inspection begin with: the model flat, with verdicts, and
 * what its exporter says it dropped. */
#include "frontend/import_flat.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/optable.h"

/* Outputs beside the one that is trained on are dropped if they need what
 * ckc does not have: metrics, decoded ids. */
static void
drop_outputs(struct flat *f, const struct import_options *opt)
{
	bool *bad = arena_array(f->arena, (size_t)f->nval + 1, sizeof *bad);
	int *target, n, kept = 0;

	flat_targets(f, opt, &target, &n);
	if (n != 1 || f->noutput == 1)
		return;
	for (int i = 0; i < f->nnode; i++) {
		const struct flat_node *node = &f->node[i];
		bool lost = node->needed && !onnx_op_can(f, node);

		for (int k = 0; k < node->nin; k++)
			lost |= bad[node->in[k]];
		for (int k = 0; lost && k < node->nout; k++)
			bad[node->out[k]] = node->out[k] != 0;
	}
	if (bad[target[0]])
		return;                 /* refused as a whole */
	for (int i = 0; i < f->noutput; i++) {
		struct flat_val *y = &f->val[f->output[i]];

		if (!bad[f->output[i]]) {
			f->output[kept++] = f->output[i];
			continue;
		}
		y->output = false;
		diag_warn(f->diag, "output '%s' is left out: it needs "
		          "operators that are not supported", y->name);
	}
	f->noutput = kept;
	flat_mark_needed(f);
}

struct flat *
import_flat(const char *path, const struct import_options *opt, Diag *diag,
            Arena *arena, struct onnx_file **file)
{
	struct flat *f;

	diag_file(diag, path);
	*file = onnx_open(path, opt->no_weights, diag);
	f = *file ? flat_resolve(*file, opt, diag, arena) : NULL;
	if (!f || !classify(f, opt))
		return NULL;
	drop_outputs(f, opt);
	return f;
}

/* PyTorch's dynamo exporter makes a SoftmaxCrossEntropyLoss of a
 * cross_entropy with smoothed labels, too, although that does not smooth, and
 * writes the call into the node's metadata:
 *   aten.cross_entropy_loss.default](args = (%z, %y, None, 1, -100, 0.1), */
double
import_lost_smoothing(const struct flat_node *n)
{
	const char *s = NULL, *end, *named;

	for (size_t i = 0; i < n->p->n_metadata_props && !s; i++)
		if (n->p->metadata_props[i]->value)
			s = strstr(n->p->metadata_props[i]->value, WIRE_NOTE);
	if (!s || strcmp(n->type, "SoftmaxCrossEntropyLoss") != 0)
		return 0;
	named = strstr(s, "label_smoothing: ");
	if (named)
		return strtod(strchr(named, ' '), NULL);
	s += strlen(WIRE_NOTE);
	end = s + strcspn(s, ")");
	for (int comma = 0; comma < 5; comma++) {
		s = memchr(s, ',', (size_t)(end - s));
		if (!s++)
			return 0;
	}
	return strtod(s, NULL);
}
