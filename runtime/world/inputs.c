/* Inputs: host memory for those of all replicas, and which have been set. */
#include "runtime/world/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether every rank here reads the input where the first one does, so that
 * whoever sets it can write there. */
static bool
is_in_place(const struct world *w, const struct ckr_tensor *t)
{
	return w->device->addressable && !whole_has_batches(w, t)
	       && w->count <= w->tp && w->stages == 1;
}

ckr_status
inputs_open(struct world *w)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	struct memory *m = w->memory;

	m->input_set = calloc(w->lib->nshared + 1, sizeof(*m->input_set));
	if (!m->input_set)
		return err_no_memory(w->err);
	if (w->dp == 1 && w->stages == 1 && w->device->addressable)
		return CKR_OK;
	m->whole = calloc(w->lib->nshared + 1, sizeof(*m->whole));
	if (!m->whole)
		return err_no_memory(w->err);
	for (uint32_t i = 0; i < w->lib->nshared; i++) {
		if (t[i].kind != CKR_INPUT || t[i].tied
		    || is_in_place(w, &t[i]))
			continue;
		m->whole[i] = device_alloc_pinned(w->device, world_whole(w,
			&t[i]).nbytes);
		if (!m->whole[i])
			return device_no_memory(w->device, w->err);
	}
	return CKR_OK;
}

void
inputs_close(struct world *w)
{
	struct memory *m = w->memory;

	for (uint32_t i = 0; m->whole && i < w->lib->nshared; i++)
		device_free_pinned(w->device, m->whole[i]);
	free(m->whole);
	free(m->input_set);
}

/* ---- which have been set ---- */

enum { SHOWN = 8 };

void
world_mark_input(struct world *w, const struct ckr_tensor *t)
{
	if (t->kind == CKR_INPUT)
		w->memory->input_set[t - w->lib->program[0].tensor] = true;
}

ckr_status
world_need_inputs(struct world *w, bool labels)
{
	char list[SHOWN * (NAME_TEXT + 4)] = "", name[NAME_TEXT];
	size_t n = 0;

	for (uint32_t i = 0; i < w->lib->nshared; i++) {
		const struct ckr_tensor *t = &w->lib->program[0].tensor[i];
		size_t at = strlen(list);

		if (t->kind != CKR_INPUT || !tensor_is_public(t)
		    || w->memory->input_set[i]
		    || (t->flags & CKR_LABEL && !labels) || n++ >= SHOWN)
			continue;
		snprintf(list + at, sizeof(list) - at, "%s'%s'",
		         at ? ", " : "", err_name(name, sizeof(name), t->name));
	}
	return !n ? CKR_OK
	       : err_set(w->err, CKR_EARG, "%s: input%s %s%s %s never set",
	                 w->library->path, n == 1 ? "" : "s", list,
	                 n > SHOWN ? ", ..." : "", n == 1 ? "was" : "were");
}

/* ---- to the ranks ---- */

/* The batch of local rank r, from the whole of all replicas. */
static void
copy_batch(const struct world *w, const struct ckr_tensor *t, uint32_t r,
           const char *all, char *one)
{
	uint32_t n = world_batches(w), q = world_replica(w, r) / (w->dp / n);
	struct ckr_tensor of = whole_of_replica(t);
	uint64_t outer = 1, run = tensor_elem_bytes(t);

	for (int i = 0; i < of.rank; i++)
		*(i < t->batch - 1 ? &outer : &run) *= (uint64_t)of.dim[i];
	for (uint64_t o = 0; o < outer; o++)
		memcpy(one + o * run, all + (o * n + q) * run, run);
}

/* An input to where local rank r reads it. */
static ckr_status
scatter_input(struct world *w, const struct ckr_tensor *t, uint32_t r,
              const void *all)
{
	void *at = world_plan_at(w, r, t), *one;
	ckr_status s;

	if (!whole_has_batches(w, t))
		return world_push(w, t, at, all);
	if (w->device->addressable) {
		copy_batch(w, t, r, all, at);
		return CKR_OK;
	}
	one = malloc(whole_of_replica(t).nbytes + 1);
	if (!one)
		return err_no_memory(w->err);
	copy_batch(w, t, r, all, one);
	s = world_push(w, t, at, one);
	w->device->call->sync(w->device);
	free(one);
	return s;
}

ckr_status
world_scatter_inputs(struct world *w, const unsigned char *only)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	void **whole = w->memory->whole;

	for (uint32_t i = 0; i < w->lib->nshared && whole; i++)
		FOR_RANKS (r, w) {
			const struct ckr_tensor *here = whole[i]
				? world_tied(w, &t[i], world_stage(w, r))
				: NULL;

			if (here && place_first_rank(w, r) == r
			    && (!only || only[i]))
				CKR_TRY(scatter_input(w, here, r, whole[i]));
		}
	return CKR_OK;
}
