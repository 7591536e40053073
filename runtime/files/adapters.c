/* Files of low-rank adapters: trained tensors under PEFT names, or weights with
 * adapters merged. */
#include "runtime/file/peft.h"
#include "runtime/files/inside.h"

#include <stdlib.h>
#include <string.h>

static ckr_status
need_adapters(struct files *c)
{
	return c->lib->nadapter ? CKR_OK
	       : err_set(c->err, CKR_EUNSUPPORTED, "%s: the library has no "
	                 "adapters; compile it with ckc --lora GLOB=RANK",
	                 c->world->library->path);
}

/* A parameter that is trained beside adapters, or a buffer that steps write:
 * PEFT's modules_to_save. */
static bool
is_beside(const struct files *c, uint32_t i)
{
	const struct ckr_tensor *t = &c->lib->program[0].tensor[i];

	return !lora_owns(c->lib, i) && !t->tied
	       && ((t->kind == CKR_PARAM && !(t->flags & CKR_FROZEN))
	           || (t->kind == CKR_BUFFER
	               && stepping_writes_early(c->steps, i)));
}

/* A frozen parameter of a module in the list: PEFT wants modules whole. */
static bool
completes_module(const struct files *c, uint32_t i, const uint32_t *list,
                 uint32_t n)
{
	const struct ckr_tensor *all = c->lib->program[0].tensor;
	bool any = false;

	if (!tensor_is_weight(&all[i]) || all[i].kind != CKR_PARAM
	    || !(all[i].flags & CKR_FROZEN)
	    || !strchr(all[i].name, '.'))
		return false;
	for (uint32_t k = 0; k < n; k++)
		any |= peft_same_module(all[i].name, all[list[k]].name);
	for (uint32_t k = 0; k < c->lib->nadapter; k++)
		any &= !peft_same_module(all[i].name,
		                         all[c->lib->adapter[k].weight].name);
	return any;
}

/* The adapters, and what is trained beside them. */
static ckr_status
write_adapters(struct files *c, const char *path, uint32_t *list,
               uint32_t nbeside)
{
	uint32_t n = nbeside;
	char scales[SCALES_TEXT];

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		list[n++] = (uint32_t)c->lib->adapter[i].a;
		list[n++] = (uint32_t)c->lib->adapter[i].b;
	}
	lora_scales(c, scales);
	CKR_TRY(writer_write(c, &(struct contents){ .path = path,
		.prefix = PEFT_PREFIX, .list = list, .n = n,
		.meta = &(struct meta){ SCALES_KEY, scales }, .nmeta = 1 }));
	return peft_config_write(c, path, list, nbeside);
}

ckr_status
files_save_adapters(struct files *c, const char *path)
{
	uint32_t *list, n = 0, ntrained;
	ckr_status s;

	CKR_TRY(need_adapters(c));
	if (!path)
		return CKR_OK;
	list = malloc((c->lib->nshared + 1) * sizeof(*list));
	if (!list)
		return err_no_memory(c->err);
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_beside(c, i))
			list[n++] = i;
	ntrained = n;
	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (completes_module(c, i, list, ntrained))
			list[n++] = i;
	s = write_adapters(c, path, list, n);
	free(list);
	return s;
}

/* ---- merged ---- */

static bool
is_unadapted_weight(const struct files *c, uint32_t i)
{
	return tensor_is_weight(&c->lib->program[0].tensor[i])
	       && !lora_owns(c->lib, i);
}

/* Its whole value, blocks as float32. */
static ckr_status
read_weights(struct files *c, const struct ckr_tensor *t, void **x)
{
	struct ckr_tensor whole = world_whole(c->world, t);
	float *floats = NULL;
	ckr_status s;

	if (tensor_is_blocks(t)) {
		s = lora_read_floats(c, t, &floats);
		*x = floats;
		return s;
	}
	*x = malloc(whole.nbytes + 1);
	s = *x ? world_gather(c->world, &c->world->plan, t, *x)
	    : err_no_memory(c->err);
	return s;
}

static ckr_status
write_weight(struct files *c, struct st_writer *w, size_t entry,
             const struct ckr_tensor *t)
{
	struct ckr_tensor whole = world_whole(c->world, t);
	struct ckr_tensor weights = tensor_weights(&whole);
	void *x;
	ckr_status s = lora_merge(c, t, &x);

	if (s == CKR_OK && !x)
		s = read_weights(c, t, &x);
	if (s == CKR_OK)
		s = st_write(w, entry, 0, x, weights.nbytes, c->err);
	free(x);
	return s;
}

static ckr_status
write_merged(struct files *c, const char *path, struct st_entry *entry,
             uint32_t *list)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct st_writer w;
	size_t n = 0;
	ckr_status s = CKR_OK;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_unadapted_weight(c, i)) {
			entry[n] = writer_entry(c, &t[i], t[i].name, false);
			list[n++] = i;
		}
	CKR_TRY(st_begin(&w, path, entry, n, NULL, 0, c->err));
	for (size_t i = 0; i < n && s == CKR_OK; i++)
		s = write_weight(c, &w, i, &t[list[i]]);
	if (s == CKR_OK)
		return st_commit(&w, c->err);
	st_abort(&w);
	return s;
}

ckr_status
files_save_merged(struct files *c, const char *path)
{
	struct st_entry *entry;
	uint32_t *list;
	ckr_status s;

	CKR_TRY(need_adapters(c));
	CKR_TRY(lora_may_merge(c));
	if (!path)
		return CKR_OK;
	entry = calloc(c->lib->nshared + 1, sizeof(*entry));
	list = calloc(c->lib->nshared + 1, sizeof(*list));
	s = entry && list ? write_merged(c, path, entry, list)
	    : err_no_memory(c->err);
	free(entry);
	free(list);
	return s;
}
