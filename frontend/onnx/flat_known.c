/* Values needed while a model is read: constants of the file, results of
 * folding, or requests, which resolve.c answers. */
#include "frontend/onnx/flat_read.h"

#include <string.h>

const struct flat_known *
flat_find(const struct flat *f, int val)
{
	int i = val ? flat_name_here(f->known_at, f->val[val].name) : 0;

	return i ? &f->known[i - 1] : NULL;
}

const struct flat_known *
flat_request(struct flat *f, int val)
{
	const struct flat_known *k = flat_find(f, val);

	if (k)
		return k;
	f->requested = arena_grow(f->arena, f->requested, (size_t)f->nrequested,
	                          &f->requested_cap, (size_t)f->nrequested + 1,
	                          sizeof *f->requested);
	f->requested[f->nrequested++] = val;
	return NULL;
}

bool
tensor_number(struct flat *f, const Onnx__TensorProto *p, int64_t *x)
{
	struct onnx_tensor t;

	if ((p->data_type != 7 && p->data_type != 9)
	    || !onnx_tensor_load(f->file, p, &t) || !t.data || t.nelem != 1)
		return false;
	if (t.dt == DT_BOOL)
		*x = *(const char *)t.data != 0;
	else
		memcpy(x, t.data, sizeof *x);
	return true;
}

bool
flat_number(struct flat *f, int val, int64_t *x)
{
	const Onnx__TensorProto *p = flat_tensor(f, val);
	const struct flat_known *k;

	if (p)
		return tensor_number(f, p, x);
	k = flat_request(f, val);
	*x = k ? k->number : 0;
	return k && k->is_number;
}

/* ---- values that the importer needs ---- */

/* Importing needs the rank of an Einsum's ellipsis and its dims of 1, ranks for
 * compositions that list all axes, the length of a DFT, and whether heads have
 * a dim of their own. */
static bool
needs_shapes(const struct flat_node *n)
{
	return strcmp(n->type, "Einsum") == 0
		|| strcmp(n->type, "ReverseSequence") == 0
		|| strcmp(n->type, "DFT") == 0
		|| (strcmp(n->type, "Attention") == 0
		    && attr_find(n, "q_num_heads"))
		|| (strcmp(n->type, "RotaryEmbedding") == 0
		    && attr_find(n, "num_heads"))
		|| (strcmp(n->type, "CenterCropPad") == 0
		    && !attr_find(n, "axes"));
}

/* Index of the input with a position in a sequence; -1: none. */
static int
position_input(const struct flat_node *n)
{
	if (strcmp(n->type, "SequenceInsert") == 0)
		return 2;
	return strcmp(n->type, "SequenceAt") == 0
		|| strcmp(n->type, "SequenceErase") == 0 ? 1 : -1;
}

void
flat_request_inputs(struct flat *f, const struct flat_node *n)
{
	/* a list at import, whose length follows from extents */
	bool listed = strcmp(n->type, "SplitToSequence") == 0;
	int at = position_input(n);
	int64_t ignored;

	if (at >= 0 && at < n->nin && n->in[at])
		flat_number(f, n->in[at], &ignored);
	if (!listed && !needs_shapes(n))
		return;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !flat_tensor(f, n->in[i])
		    && (listed || !f->val[n->in[i]].info))
			flat_request(f, n->in[i]);
}
