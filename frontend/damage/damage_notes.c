/* What PyTorch's dynamo exporter writes beside a node: the call that the node
 * stands for; and beside a constant: of what it was computed.  It tells what
 * the graph does not. */
#include "frontend/damage/damage_search.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of the call that n stands for, behind the opening bracket, if
 * the exporter notes that it is this one; NULL if not. */
static const char *
noted_call(const struct flat_node *n, const char *call)
{
	const char *s = NULL;

	for (size_t i = 0; i < n->p->n_metadata_props && !s; i++)
		if (n->p->metadata_props[i]->value)
			s = strstr(n->p->metadata_props[i]->value, call);
	return s ? s + strlen(call) : NULL;
}

/* Argument k, from 0, as a number; absent if the call has fewer. */
static double
noted_number(const char *args, int k, double absent)
{
	const char *s = args, *end = args + strcspn(args, ")");

	for (int comma = 0; comma < k; comma++) {
		s = memchr(s, ',', (size_t)(end - s));
		if (!s++)
			return absent;
	}
	return strtod(s, NULL);
}

/* PyTorch's dynamo exporter makes a SoftmaxCrossEntropyLoss of a
 * cross_entropy with smoothed labels, too, although that does not smooth:
 *   aten.cross_entropy_loss.default](args = (%z, %y, None, 1, -100, 0.1), */
double
lost_smoothing(const struct flat_node *n)
{
	const char *args = noted_call(n, WIRE_CROSS_ENTROPY), *named;

	if (!args || strcmp(n->type, "SoftmaxCrossEntropyLoss") != 0)
		return 0;
	named = strstr(args, "label_smoothing: ");
	return named ? strtod(strchr(named, ' '), NULL)
	       : noted_number(args, 5, 0);
}

/* aten.embedding.default](args = (%p_weight, %ids, 0), */
int64_t
lost_padding(const struct flat_node *n)
{
	const char *args = noted_call(n, WIRE_EMBEDDING);

	return args && strcmp(n->type, "Gather") == 0
	       ? (int64_t)noted_number(args, 2, -1) : -1;
}

/* aten.embedding.default](args = (%p_weight, %ids, -1, True), */
bool
lost_frequency(const struct flat_node *n)
{
	const char *args = noted_call(n, WIRE_EMBEDDING);

	for (int comma = 0; args && comma < 3; comma++) {
		args += strcspn(args, ",)");
		args = *args == ',' ? args + 1 : NULL;
	}
	return args && strcmp(n->type, "Gather") == 0
		&& strncmp(args, " True", 5) == 0;
}

bool
lost_detach(const struct flat_node *n)
{
	return strcmp(n->type, "Identity") == 0 && noted_call(n, WIRE_DETACH);
}

static const char *
folded_note(const struct flat *f, const char *name)
{
	const Onnx__GraphProto *g = f->file->model->graph;

	for (size_t i = 0; i < g->n_value_info; i++) {
		const Onnx__ValueInfoProto *v = g->value_info[i];

		if (!v->name || strcmp(v->name, name) != 0)
			continue;
		for (size_t k = 0; k < v->n_metadata_props; k++)
			if (v->metadata_props[k]->key
			    && strcmp(v->metadata_props[k]->key, WIRE_FOLDED)
			       == 0)
				return v->metadata_props[k]->value;
	}
	return NULL;
}

/* The note is Python's list of names: ['val_0', 'w']. */
static bool
is_listed(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = list; (s = strstr(s, name)); s++)
		if (s > list && s[-1] == '\'' && s[n] == '\'')
			return true;
	return false;
}

const struct flat_val *
folded_from(const struct flat *f, const struct flat_val *v)
{
	const char *list = v->init ? folded_note(f, v->name) : NULL;

	for (int i = 1; list && i < f->nval; i++) {
		const struct flat_val *w = &f->val[i];

		if (w != v && w->init && w->nuse
		    && w->verdict == VERDICT_PARAM && is_listed(list, w->name))
			return w;
	}
	return NULL;
}
