/* What a file tells of its values and nodes: who writes a value and under which
 * name; and the notes of PyTorch's dynamo exporter, which name the call that a
 * node stands for. */
#include "frontend/lint/lint_context.h"
#include "frontend/params/signature.h"

#include <stdlib.h>
#include <string.h>

const struct flat_node *
producer_of(const struct flat *f, int v)
{
	const struct flat_node *n = v && f->val[v].def >= 0
		? &f->node[f->val[v].def] : NULL;

	return n && !*n->domain ? n : NULL;
}

const struct flat_node *
sum_producer(const struct flat *f, int v)
{
	const struct flat_node *n = producer_of(f, v);

	return is_op_among(n, "Add Sub Sum Mul Div Neg Identity Cast Squeeze "
	                   "Reshape") ? n : NULL;
}

const Onnx__TypeProto *
declared_type(const struct flat *f, int v)
{
	const Onnx__ValueInfoProto *info = f->val[v].info ? f->val[v].info
		: flat_value_info(f, f->val[v].name);

	return info ? info->type : NULL;
}

bool
is_pytorch(const struct flat *f)
{
	const char *by = f->file->model->producer_name;

	return by && strcmp(by, "pytorch") == 0;
}

bool
is_trained(const struct flat *f, const char *name)
{
	FOR_FLAT_VALS (v, f)
		if (v->init && v->nuse && v->verdict == VERDICT_PARAM
		    && strcmp(v->name, name) == 0)
			return true;
	return false;
}

bool
lost_its_name(const struct flat_val *v)
{
	return v->verdict == VERDICT_PARAM && v->init && v->nuse
		&& !flat_is_path(v->name)
		&& strcmp(v->reason, "used as a weight") == 0;
}

/* ---- notes ---- */

/* Arguments of n's call, after the opening bracket, if the exporter's note
 * names this call; else NULL. */
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
		if (!s)
			return absent;
		s++;
	}
	return strtod(s, NULL);
}

/* PyTorch's dynamo exporter writes even a cross_entropy with label smoothing as
 * SoftmaxCrossEntropyLoss, which does not smooth:
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

/* aten.scatter_reduce.two](args = (%z, 0, %i, %x, mean),
 *      kwargs = {include_self: False}) */
bool
lost_mean(const struct flat_node *n, bool *with_self)
{
	const char *args = noted_call(n, WIRE_SCATTER_REDUCE);

	*with_self = args && !strstr(args, "include_self: False");
	return args && memmem(args, strcspn(args, ")"), ", mean", 6);
}

bool
notes_overwriting(const struct flat_node *n)
{
	const char *put = noted_call(n, WIRE_INDEX_PUT);

	return noted_call(n, WIRE_SCATTER)
		|| (put && !memmem(put, strcspn(put, ")"), ", True", 6));
}

bool
lost_detach(const struct flat_node *n)
{
	return strcmp(n->type, "Identity") == 0 && noted_call(n, WIRE_DETACH);
}

static bool
any_holds(Onnx__StringStringEntryProto *const *props, size_t n,
          const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (props[i]->value && strstr(props[i]->value, text))
			return true;
	return false;
}

bool
lost_projection(const struct flat *f)
{
	const Onnx__ModelProto *m = f->file->model;

	return any_holds(m->graph->metadata_props, m->graph->n_metadata_props,
	                 "weight_hr_l")
		|| any_holds(m->metadata_props, m->n_metadata_props,
		             "weight_hr_l");
}
