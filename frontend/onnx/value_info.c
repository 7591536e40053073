/* Metadata of inner values: types, and the notes of PyTorch's optimizer. */
#include "frontend/onnx/flat.h"
#include "frontend/onnx/wire.h"

#include <string.h>

const Onnx__ValueInfoProto *
flat_value_info(const struct flat *f, const char *name)
{
	const Onnx__GraphProto *g = f->file->model->graph;

	for (size_t i = 0; i < g->n_value_info; i++)
		if (g->value_info[i]->name
		    && strcmp(g->value_info[i]->name, name) == 0)
			return g->value_info[i];
	return NULL;
}

const char *
flat_folded_from(const struct flat *f, const char *name)
{
	const Onnx__ValueInfoProto *v = flat_value_info(f, name);

	for (size_t k = 0; v && k < v->n_metadata_props; k++)
		if (v->metadata_props[k]->key
		    && strcmp(v->metadata_props[k]->key, WIRE_FOLDED) == 0)
			return v->metadata_props[k]->value;
	return NULL;
}
