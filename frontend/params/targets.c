/* Find the training target: the output that --loss names, or one that looks
 * like a loss. */
#include "frontend/params/params.h"

#include <string.h>

static const Onnx__ValueInfoProto *
output_info(const struct flat *f, int i)
{
	const Onnx__GraphProto *g = f->file->model->graph;

	for (size_t k = 0; k < g->n_output; k++)
		if (g->output[k]->name
		    && strcmp(g->output[k]->name, f->val[f->output[i]].name)
		               == 0)
			return g->output[k];
	return NULL;
}

/* 1 + rank of a float output, -1 for an unknown rank; 0: not a float. */
static int
float_rank(const Onnx__ValueInfoProto *info)
{
	const Onnx__TypeProto__Tensor *t = info && info->type
		? info->type->tensor_type : NULL;
	DType dt = t ? onnx_dtype(t->elem_type) : DT_NONE;

	if (!t)
		return -1;
	if (dt == DT_NONE || dtype_info[dt].cls != 'f')
		return 0;
	return t->shape ? 1 + (int)t->shape->n_dim : -1;
}

static int
find_named_output(const struct flat *f, const char *name)
{
	for (int i = 0; i < f->noutput; i++)
		if (strcmp(f->val[f->output[i]].name, name) == 0)
			return f->output[i];
	return 0;
}

/* The output for a --loss without a name: a scalar for a loss in the graph,
 * otherwise the first float output that is not a scalar. */
static int
guess_output(const struct flat *f, bool scalar)
{
	int named = find_named_output(f, scalar ? "loss" : "logits");

	if (named)
		return named;
	for (int i = 0; i < f->noutput; i++) {
		int rank = float_rank(output_info(f, i));

		if (scalar ? rank == 1 : rank < 0 || rank > 1)
			return f->output[i];
	}
	return 0;
}

/* NAME of "ce:NAME", "" for "ce"; NULL: another kind of loss. */
static const char *
loss_kind(const char *loss, const char *kind)
{
	size_t n = strlen(kind);

	if (strncmp(loss, kind, n) != 0 || (loss[n] && loss[n] != ':'))
		return NULL;
	return loss[n] ? loss + n + 1 : "";
}

void
flat_targets(struct flat *f, const struct import_options *opt, int **list,
             int *n)
{
	const char *loss = opt->loss, *name;
	int target;

	*list = f->output;
	*n = f->noutput;
	if (opt->all_outputs)
		return;
	if (!loss) {
		/* pass `loss` reports a missing loss */
		target = guess_output(f, true);
		if (!target)
			return;
	} else {
		name = find_named_output(f, loss) ? NULL : loss_kind(loss,
		                                                     "ce");
		if (!name && !find_named_output(f, loss))
			name = loss_kind(loss, "mse");
		target = !name ? find_named_output(f, loss)
			: *name ? find_named_output(f, name)
			: guess_output(f, false);
		if (!target)
			return;
	}
	*list = arena_alloc(f->arena, sizeof **list);
	(*list)[0] = target;
	*n = 1;
}

/* Before opset 14, further outputs mean training form. */
bool
batchnorm_trains(const struct flat_node *n)
{
	const Onnx__AttributeProto *a = attr_find(n, "training_mode");

	return n->opset < 14 ? n->nout > 1 : a && a->i != 0;
}

bool
batchnorm_matches(const struct flat *f, const struct flat_node *n,
                  const char *glob)
{
	const char *scale = n->nin > 1 ? f->val[n->in[1]].name : NULL;

	return (n->name && glob_match(glob, n->name))
		|| (scale && glob_match(glob, scale));
}

int
batchnorm_option(const struct flat *f, const struct import_options *o,
                 const struct flat_node *n)
{
	for (int i = o->nbatchnorm; i-- > 0;)
		if (batchnorm_matches(f, n, o->batchnorm[i].glob))
			return i;
	return -1;
}

enum batchnorm
batchnorm_asked(const struct flat *f, const struct import_options *o,
                const struct flat_node *n)
{
	int i = batchnorm_option(f, o, n);

	return i < 0 ? BATCHNORM_GRAPH : o->batchnorm[i].wanted
		? BATCHNORM_BATCH : BATCHNORM_RUNNING;
}

bool
is_needed_batchnorm(const struct flat_node *n)
{
	return n->needed && !*n->domain
		&& strcmp(n->type, "BatchNormalization") == 0;
}

/* A Dropout whose operand training_mode is the constant true. */
static bool
dropout_trains(const struct flat *f, const struct flat_node *n)
{
	Val v;

	return n->nin > 2 && flat_load(f, flat_tensor(f, n->in[2]), &v) == 1
		&& *(const char *)v.data;
}

bool
has_training_form(const struct flat *f)
{
	FOR_FLAT_NODES (n, f) {
		if (is_needed_batchnorm(n) && batchnorm_trains(n))
			return true;
		if (n->needed && !*n->domain && strcmp(n->type, "Dropout") == 0
		    && dropout_trains(f, n))
			return true;
	}
	return false;
}
