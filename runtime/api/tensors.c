/* Tensors by name: what they are, and their elements. */
#include "runtime/api/context.h"
#include "runtime/base/dtype.h"
#include "runtime/file/array.h"
#include "runtime/library/tensor.h"
#include "runtime/support/blocks.h"

#include <stdlib.h>
#include <string.h>

static const char *
tensor_kind_text(const struct ckr_tensor *t)
{
	static const char *const text[] = { "param", "buffer", "constant",
	                                    "input", "state", "grad", "other" };

	if (t->flags & CKR_METRIC)
		return "metric";
	if (t->flags & (CKR_OUTPUT | CKR_LOSS) && t->kind >= CKR_GRAD)
		return "output";
	return t->kind < sizeof(text) / sizeof(*text) ? text[t->kind] : "other";
}

/* Whether a step looks something up by the input or a view of it. */
static bool
is_index(const struct ckr_program *p, const struct ckr_tensor *t)
{
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_instr *s = &p->instr[i];
		const struct ckr_tensor *by;

		if (strncmp(s->op, "gather", 6) || s->narg < 2
		    || p->arg[s->arg0 + 1] < 0)
			continue;
		by = &p->tensor[p->arg[s->arg0 + 1]];
		if (by->flags & CKR_RESIDENT && by->offset >= t->offset
		    && by->offset < t->offset + t->nbytes)
			return true;
	}
	return false;
}

/* What users see of it: quantised weights are float32. */
static struct ckr_tensor
whole_weights(const ckr_ctx *c, const struct ckr_tensor *t)
{
	struct ckr_tensor whole = world_whole(&c->world, t);

	return tensor_weights(&whole);
}

static void
fill_info(const ckr_ctx *c, const struct ckr_tensor *t,
          struct ckr_info *info)
{
	struct ckr_tensor whole = whole_weights(c, t);

	*info = (struct ckr_info){
		.name = t->name, .dtype = dtype_row[whole.dtype].text,
		.kind = tensor_kind_text(t), .frozen = t->flags & CKR_FROZEN,
		.loss = t->flags & CKR_LOSS,
		.shifted = t->flags & CKR_SHIFTED,
		.label = t->flags & CKR_LABEL,
		.index = t->kind == CKR_INPUT
			&& is_index(&c->library.lib->program[0], t),
		.rows = t->flags & CKR_OWN_ROWS ? 1
			: t->flags & CKR_NO_ROWS ? 0 : -1,
		.rank = t->rank,
		.nbytes = whole.nbytes,
	};
	memcpy(info->dim, whole.dim, sizeof(info->dim));
}

static ckr_status
find_public(ckr_ctx *c, const char *name, const struct ckr_tensor **t)
{
	char text[NAME_TEXT];

	CKR_TRY(world_need_ready(&c->world));
	*t = library_find(c->library.lib, name, NULL);
	if (*t)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "%s: no input, output, parameter, "
	               "buffer or state is called '%s'", c->world.library->path,
	               err_name(text, sizeof(text), name));
}

/* ---- what they are ---- */

ckr_status
ckr_tensor(ckr_ctx *c, size_t i, struct ckr_info *info)
{
	const struct ckr_program *p;

	CKR_TRY(world_need_ready(&c->world));
	p = &c->library.lib->program[0];
	for (uint32_t t = 0; t < p->ntensor; t++)
		if (tensor_is_public(&p->tensor[t]) && !i--) {
			fill_info(c, &p->tensor[t], info);
			return CKR_OK;
		}
	return err_set(&c->err, CKR_EARG, "the index of the tensor is out of "
	               "range");
}

ckr_status
ckr_find(ckr_ctx *c, const char *name, struct ckr_info *info)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	fill_info(c, t, info);
	return CKR_OK;
}

static bool
is_intermediate_output(const struct ckr_tensor *t)
{
	return t->flags & (CKR_OUTPUT | CKR_LOSS) && t->kind > CKR_STATE;
}

/* The program that evaluates. */
static const struct loaded_program *
forward_of(const ckr_ctx *c)
{
	return c->world.forward.p ? &c->world.forward : &c->world.plan;
}

ckr_status
ckr_eval_output(ckr_ctx *c, size_t i, struct ckr_info *info)
{
	const struct ckr_program *p;

	CKR_TRY(world_need_ready(&c->world));
	p = forward_of(c)->p;
	for (uint32_t t = c->library.lib->nshared; t < p->ntensor; t++)
		if (is_intermediate_output(&p->tensor[t]) && !i--) {
			fill_info(c, &p->tensor[t], info);
			return CKR_OK;
		}
	return err_set(&c->err, CKR_EARG, "the index of the output is out of "
	               "range");
}

/* ---- elements ---- */

static ckr_status
check_byte_count(ckr_ctx *c, const struct ckr_tensor *t, size_t nbytes)
{
	struct ckr_tensor whole = whole_weights(c, t);
	char shape[128];

	if (whole.nbytes == nbytes)
		return CKR_OK;
	return err_set(&c->err, CKR_EARG, "'%s' is %s: expected %llu bytes, "
	               "got %zu", t->name,
	               array_text(shape, sizeof(shape), whole.dtype, t->rank,
	                          whole.dim),
	               (unsigned long long)whole.nbytes, nbytes);
}

/* Weights to the blocks of a tensor, or from them. */
static ckr_status
set_blocks(ckr_ctx *c, const struct ckr_tensor *t, const float *from)
{
	struct ckr_tensor whole = world_whole(&c->world, t);
	void *blocks = malloc(whole.nbytes + 1);
	ckr_status s = blocks ? CKR_OK : err_no_memory(&c->err);

	if (blocks)
		blocks_pack(t->dtype, blocks, from, tensor_nelem(&whole));
	if (s == CKR_OK)
		s = world_scatter(&c->world, t, blocks);
	free(blocks);
	return s;
}

static ckr_status
get_blocks(ckr_ctx *c, const struct ckr_tensor *t, float *to)
{
	struct ckr_tensor whole = world_whole(&c->world, t);
	void *blocks = malloc(whole.nbytes + 1);
	ckr_status s = blocks ? world_gather(&c->world, &c->world.plan, t,
	                                     blocks)
	               : err_no_memory(&c->err);

	if (s == CKR_OK)
		blocks_unpack(t->dtype, to, blocks, tensor_nelem(&whole));
	free(blocks);
	return s;
}

ckr_status
ckr_set(ckr_ctx *c, const char *name, const void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	CKR_TRY(check_byte_count(c, t, nbytes));
	if (t->kind > CKR_STATE)
		return err_set(&c->err, CKR_EARG, "'%s' is an output: it "
		               "cannot be set", t->name);
	if (t->kind != CKR_INPUT)
		CKR_TRY(need_parameters(c));
	CKR_TRY(tensor_is_blocks(t) ? set_blocks(c, t, data)
	        : world_scatter(&c->world, t, data));
	world_mark_input(&c->world, t);
	return CKR_OK;
}

/* What an evaluation without labels has no value of. */
static ckr_status
need_labels(ckr_ctx *c, const struct ckr_tensor *t)
{
	return t->flags & (CKR_LOSS | CKR_METRIC)
	       ? world_need_inputs(&c->world, true) : CKR_OK;
}

/* What ckr_eval has made under this name; NULL: nothing. */
static const struct ckr_tensor *
find_evaluated(const ckr_ctx *c, const char *name)
{
	const struct ckr_program *p = c->world.forward.p;

	if (!p || stepping_outputs(c->steps) != &c->world.forward)
		return NULL;
	for (uint32_t t = c->library.lib->nshared; t < p->ntensor; t++)
		if (is_intermediate_output(&p->tensor[t])
		    && !strcmp(p->tensor[t].name, name))
			return &p->tensor[t];
	return NULL;
}

ckr_status
ckr_get(ckr_ctx *c, const char *name, void *data, size_t nbytes)
{
	const struct ckr_tensor *t;

	CKR_TRY(world_need_ready(&c->world));
	t = find_evaluated(c, name);
	if (t) {
		CKR_TRY(check_byte_count(c, t, nbytes));
		CKR_TRY(need_quiet(c));
		CKR_TRY(need_labels(c, t));
		return world_gather(&c->world, &c->world.forward, t, data);
	}
	CKR_TRY(find_public(c, name, &t));
	CKR_TRY(check_byte_count(c, t, nbytes));
	if (t->kind != CKR_INPUT)
		CKR_TRY(need_quiet(c));
	if (t->kind > CKR_STATE && stepping_outputs(c->steps) != &c->world.plan)
		return err_set(&c->err, CKR_EARG, "output '%s' has no value "
		               "before a step has completed", t->name);
	CKR_TRY(need_labels(c, t));
	return tensor_is_blocks(t) ? get_blocks(c, t, data)
	       : world_gather(&c->world, &c->world.plan, t, data);
}

ckr_status
ckr_input(ckr_ctx *c, const char *name, void **data)
{
	const struct ckr_tensor *t;

	CKR_TRY(find_public(c, name, &t));
	if (t->kind != CKR_INPUT || (tensor_nelem(t) && !tensor_is_dense(t))
	    || !(t->flags & CKR_RESIDENT))
		return err_set(&c->err, CKR_EARG, "'%s' is not an input",
		               t->name);
	*data = world_input(&c->world, t);
	if (!*data)
		*data = world_plan_at(&c->world, 0, t);
	world_mark_input(&c->world, t);
	return CKR_OK;
}
