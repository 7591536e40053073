/* Memory of the ranks that live here. */
#include "runtime/ranks/stage_messages.h"
#include "runtime/world/inside.h"

#include <stdlib.h>

/* ---- programs ---- */

static ckr_status
open_operands(const struct world *w, struct loaded_program *b)
{
	b->ptr = calloc(w->count, sizeof(*b->ptr));
	b->slot_ptr = calloc(w->count, sizeof(*b->slot_ptr));
	b->slot = calloc(w->count, sizeof(*b->slot));
	return b->ptr && b->slot_ptr && b->slot && world_set_operands(w, b)
	       ? CKR_OK : err_no_memory(w->err);
}

/* Bytes of rank r's arena. */
static uint64_t
arena_bytes(const struct world *w, const struct ckr_program *p, uint32_t r)
{
	return w->stages > 1 ? w->lib->stage[world_stage(w, r)].arena_bytes
	       : p->arena_bytes;
}

ckr_status
world_load(struct world *w, struct loaded_program *b,
           const struct ckr_program *p, bool paint, bool at_end)
{
	*b = (struct loaded_program){ .p = p };
	b->arena = calloc(w->count, sizeof(*b->arena));
	if (!b->arena)
		return err_no_memory(w->err);
	FOR_RANKS (r, w)
		CKR_TRY(device_map(w->device, &b->arena[r],
		                   arena_bytes(w, p, r), paint, at_end,
		                   w->threads, w->err));
	return open_operands(w, b);
}

/* In an arena that is there. */
static ckr_status
load_into(struct world *w, struct loaded_program *b,
          const struct ckr_program *p, struct block *arena)
{
	*b = (struct loaded_program){ .p = p, .arena = arena,
	                              .shares_arena = true };
	return open_operands(w, b);
}

void
world_unload(const struct world *w, struct loaded_program *b)
{
	FOR_RANKS (r, w) {
		if (b->arena && !b->shares_arena)
			device_unmap(w->device, &b->arena[r]);
		if (b->slot_ptr)
			free(b->slot_ptr[r]);
	}
	if (!b->shares_arena)
		free(b->arena);
	free(b->ptr);
	free(b->slot_ptr);
	free(b->slot);
	*b = (struct loaded_program){ .p = NULL };
}

/* ---- resident blocks ---- */

/* Bytes of rank r's block. */
static uint64_t
resident_bytes(const struct world *w, uint32_t r)
{
	const struct ckr_program *p = w->lib->program;
	uint64_t a = p[0].resident_bytes;
	uint64_t b = p[1].ninstr ? p[1].resident_bytes : 0;

	if (w->stages > 1)
		return w->lib->stage[world_stage(w, r)].resident_bytes;
	return a > b ? a : b;
}

/* Constants and inputs lie side by side. */
static void
find_common(struct world *w)
{
	const struct ckr_library *lib = w->lib;
	int64_t from, to;

	for (uint32_t i = 0; i < lib->nshared; i++) {
		const struct ckr_tensor *t = &lib->program[0].tensor[i];

		if (t->kind != CKR_CONSTANT && t->kind != CKR_INPUT)
			continue;
		tensor_reach(t, &from, &to);
		if (!w->memory->common[1])
			w->memory->common[0] = (uint64_t)from;
		w->memory->common[1] = (uint64_t)to;
	}
}

/* The plan, in an arena of its own or in the owner's. */
static ckr_status
load_plan(struct world *w)
{
	const struct ckr_program *p = &w->lib->program[0];

	if (w->owner == w || w->poison)
		return world_load(w, &w->plan, p, true, w->poison);
	CKR_TRY(share_arena(w, p->arena_bytes));
	return load_into(w, &w->plan, p, w->owner->plan.arena);
}

ckr_status
place_open(struct world *w)
{
	struct memory *m = w->memory;

	m->anonymous = mem_anonymous();
	if (!place_open_ties(w))
		return err_no_memory(w->err);
	CKR_TRY(host_block_open(w));
	m->resident = calloc(w->count, sizeof(*m->resident));
	if (!m->resident)
		return err_no_memory(w->err);
	FOR_RANKS (r, w)
		CKR_TRY(device_map(w->device, &m->resident[r],
		                   resident_bytes(w, r) - m->shared,
		                   false, w->poison, w->threads, w->err));
	if (w->tp > 1 && w->stages == 1)
		find_common(w);
	FOR_RANKS (r, w)
		if (place_first_rank(w, r) != r && w->device->addressable)
			block_forget(&m->resident[r],
			             m->common[0] - m->shared,
			             m->common[1] - m->shared);
	CKR_TRY(load_plan(w));
	/* the program that evaluates runs between steps */
	return !w->lib->program[2].ninstr ? CKR_OK
	       : load_into(w, &w->forward, &w->lib->program[2], w->plan.arena);
}

void
place_close(struct world *w)
{
	if (w->device)
		w->device->call->sync(w->device);
	world_unload(w, &w->forward);
	world_unload(w, &w->plan);
	share_close(w);
	for (uint32_t r = 0; r < w->count && w->memory->resident; r++)
		device_unmap(w->device, &w->memory->resident[r]);
	free(w->memory->resident);
	free(w->memory->next_tied);
	host_block_close(w);
}

static uint64_t
own_resident_bytes(const struct world *w)
{
	uint64_t n = 0;

	FOR_RANKS (r, w)
		n += w->memory->resident[r].size;
	return n;
}

static void
copy_own_resident(struct world *w, char *copy, bool back)
{
	FOR_RANKS (r, w) {
		const struct block *b = &w->memory->resident[r];

		if (back)
			w->device->call->copy_h2d(w->device, b->p, copy,
			                          b->size);
		else
			w->device->call->copy_d2h(w->device, copy, b->p,
			                          b->size);
		copy += b->size;
	}
}

uint64_t
world_resident_bytes(const struct world *w)
{
	return own_resident_bytes(w)
	       + (w->owner == w ? 0 : own_resident_bytes(w->owner));
}

uint64_t
world_lasting_bytes(const struct world *w)
{
	return world_resident_bytes(w) + world_host_bytes(w);
}

ckr_status
world_copy_lasting(struct world *w, char *copy, bool back)
{
	copy_own_resident(w, copy, back);
	copy += own_resident_bytes(w);
	if (w->owner != w) {
		copy_own_resident(w->owner, copy, back);
		copy += own_resident_bytes(w->owner);
	}
	return world_copy_host(w, copy, back);
}

/* ---- how much ---- */

uint64_t
world_touched(const struct world *w)
{
	const struct ckr_program *p = &w->lib->program[0];
	uint32_t apart = w->team ? 1 : world_processes(w);
	uint64_t most = 0;

	for (uint32_t first = 0; first < apart; first++) {
		uint64_t all = 0;

		for (uint32_t r = first; r < w->count; r += apart) {
			uint64_t n = device_touched(w->device,
			                            &w->plan.arena[r]);
			/* another library may have touched more of a shared
			 * arena */
			uint64_t planned = arena_bytes(w, p, r);

			all += (n < planned ? n : planned) + (w->stages > 1
				? resident_bytes(w, r) : p->resident_bytes);
		}
		most = all > most ? all : most;
	}
	return most;
}

uint64_t
world_transfer_bytes(const struct world *w)
{
	return messages_bytes(w->memory->messages)
	       + (w->team ? 2 * PG_BUFFER
	          + transfers_bytes(w->memory->transfers) : 0);
}

uint64_t
world_grown_bytes(const struct world *w)
{
	uint64_t now = mem_anonymous(), was = w->memory->anonymous;

	return now > was ? now - was : 0;
}
