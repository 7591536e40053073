/* Files of low-rank adapters: trained tensors under PEFT names, or weights with
 * adapters merged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file/peft.h"
#include "runtime/model/files.h"
#include "runtime/model/peers.h"

static ckr_status
need_adapters(ckr_ctx *c)
{
	CKR_TRY(rt_need_quiet(c));
	return c->lib->nadapter ? CKR_OK
	       : err_set(&c->err, CKR_EUNSUPPORTED, "%s: the library has no "
	                 "adapters; compile it with ckc --lora GLOB=RANK",
	                 c->path);
}

/* A parameter that is trained beside adapters, or a buffer that steps write:
 * PEFT's modules_to_save. */
static bool
is_beside(const ckr_ctx *c, uint32_t i)
{
	const struct ckr_tensor *t = &c->lib->program[0].tensor[i];
	bool written = false;

	for (uint32_t k = 0; k < c->finite.nsaved; k++)
		written |= c->finite.saved[k] == i;
	return !files_is_adapter(c, i)
	       && ((t->kind == CKR_PARAM && !(t->flags & CKR_FROZEN))
	           || (t->kind == CKR_BUFFER && written));
}

/* A frozen parameter of a module in the list: PEFT wants modules whole. */
static bool
completes_module(const ckr_ctx *c, uint32_t i, const uint32_t *list, uint32_t n)
{
	const struct ckr_tensor *all = c->lib->program[0].tensor;
	bool any = false;

	if (all[i].kind != CKR_PARAM || !(all[i].flags & CKR_FROZEN)
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
write_adapters(ckr_ctx *c, const char *path, uint32_t *list, uint32_t nbeside)
{
	uint32_t n = nbeside;
	char scales[SCALES_TEXT];

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		list[n++] = (uint32_t)c->lib->adapter[i].a;
		list[n++] = (uint32_t)c->lib->adapter[i].b;
	}
	files_scales(c, scales);
	CKR_TRY(files_write(c, path, PEFT_PREFIX, list, n,
	                    &(struct meta){ SCALES_KEY, scales }, 1));
	return peft_config_write(c, path, list, nbeside);
}

ckr_status
ckr_save_adapters(ckr_ctx *c, const char *path)
{
	uint32_t *list, n = 0, ntrained;
	ckr_status s;

	CKR_TRY(need_adapters(c));
	if (!path)
		return CKR_OK;
	list = malloc((c->lib->nshared + 1) * sizeof(*list));
	if (!list)
		return rt_no_memory(c);
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
is_unadapted_weight(const ckr_ctx *c, uint32_t i)
{
	return rt_is_weight(&c->lib->program[0].tensor[i])
	       && !files_is_adapter(c, i);
}

static ckr_status
write_weight(ckr_ctx *c, struct st_writer *w, size_t entry,
             const struct ckr_tensor *t)
{
	struct ckr_tensor whole = rt_whole(c, t);
	uint64_t n = rt_nelem(&whole) * dtype_row[t->dtype].nbytes;
	const void *from;
	void *copy;
	ckr_status s = files_merged(c, t, &copy);

	from = copy;
	if (s == CKR_OK && !copy)
		s = rt_view_whole(c, &c->plan, t, &from, &copy);
	if (s == CKR_OK)
		s = st_write(w, entry, 0, from, n, &c->err);
	free(copy);
	return s;
}

static ckr_status
write_merged(ckr_ctx *c, const char *path, struct st_entry *entry,
             uint32_t *list)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct st_writer w;
	size_t n = 0;
	ckr_status s = CKR_OK;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (is_unadapted_weight(c, i)) {
			entry[n] = rt_entry(c, &t[i], t[i].name);
			list[n++] = i;
		}
	CKR_TRY(st_begin(&w, path, entry, n, NULL, 0, &c->err));
	for (size_t i = 0; i < n && s == CKR_OK; i++)
		s = write_weight(c, &w, i, &t[list[i]]);
	if (s == CKR_OK)
		return st_commit(&w, &c->err);
	st_abort(&w);
	return s;
}

ckr_status
ckr_save_merged(ckr_ctx *c, const char *path)
{
	struct st_entry *entry;
	uint32_t *list;
	ckr_status s;

	CKR_TRY(need_adapters(c));
	CKR_TRY(files_may_merge(c));
	if (!path)
		return CKR_OK;
	entry = calloc(c->lib->nshared + 1, sizeof(*entry));
	list = calloc(c->lib->nshared + 1, sizeof(*list));
	s = entry && list ? write_merged(c, path, entry, list)
	    : rt_no_memory(c);
	free(entry);
	free(list);
	return s;
}
