/* Where operands lie.
 *
 * Constants and inputs, which no step writes, lie in the memory of a replica's
 * first rank alone, unless there are stages.  Parameters, buffers and states,
 * which come first, may lie in the memory of another library of the model: see
 * share.c.
 */
#include "runtime/world/inside.h"

#include <stdlib.h>

static bool
is_common(const struct world *w, const struct ckr_tensor *t)
{
	return t->flags & CKR_RESIDENT && t->offset >= w->memory->common[0]
	       && t->offset < w->memory->common[1];
}

uint32_t
place_first_rank(const struct world *w, uint32_t r)
{
	uint32_t before = w->stages > 1 ? 0 : world_rank(w, r);

	return before < r ? r - before : 0;
}

void *
world_at(const struct world *w, const struct loaded_program *b, uint32_t r,
         const struct ckr_tensor *t)
{
	const struct memory *m = w->memory;

	if (t->flags & CKR_HOST)
		return world_host_block(w, r) + t->offset;
	if (t->flags & CKR_SLOT)
		return b->arena[r].p + t->offset
		       + library_slot(&w->lib->stage[t->stage], t, b->slot[r]);
	if (!(t->flags & CKR_RESIDENT))
		return b->arena[r].p + t->offset;
	if (t->offset < m->shared)
		return w->owner->memory->resident[r].p + t->offset;
	return m->resident[is_common(w, t) ? place_first_rank(w, r) : r].p
	       + (t->offset - m->shared);
}

bool
world_is_direct(const struct world *w, const struct ckr_tensor *t)
{
	return w->device->addressable && tensor_is_dense(t)
	       && !(t->flags & CKR_HOST);
}

void *
world_input(const struct world *w, const struct ckr_tensor *t)
{
	const struct ckr_tensor *first = w->lib->program[0].tensor;
	bool here = t >= first && t < first + w->lib->nshared;

	return w->memory->whole && here ? w->memory->whole[t - first] : NULL;
}

const struct ckr_tensor *
world_tied(const struct world *w, const struct ckr_tensor *t, uint32_t stage)
{
	const struct ckr_tensor *all = w->lib->program[0].tensor;
	const uint32_t *next = w->memory->next_tied;

	if (t->stage == stage)
		return t;
	if (!next || t < all || t >= all + w->lib->nshared)
		return NULL;
	for (uint32_t i = next[t - all]; i; i = next[i])
		if (all[i].stage == stage)
			return &all[i];
	return NULL;
}

bool
place_open_ties(struct world *w)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;
	uint32_t *next;

	if (w->stages == 1)
		return true;
	next = w->memory->next_tied = calloc(w->lib->nshared + 1,
	                                     sizeof(*next));
	for (uint32_t i = w->lib->nshared; next && i-- > 0;) {
		if (!t[i].tied)
			continue;
		next[i] = next[t[i].tied - 1];
		next[t[i].tied - 1] = i;
	}
	return next;
}

static uint32_t
slots_of(const struct world *w, uint32_t r)
{
	return w->stages > 1 ? w->lib->stage[world_stage(w, r)].slots : 1;
}

static uint64_t
count_args(const struct ckr_program *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->ninstr; i++)
		if (n < (uint64_t)p->instr[i].arg0 + p->instr[i].narg)
			n = (uint64_t)p->instr[i].arg0 + p->instr[i].narg;
	return n;
}

/* Of all slots; NULL: no memory. */
static void **
bind_operands(const struct world *w, const struct loaded_program *b,
              uint32_t r)
{
	uint32_t slots = slots_of(w, r), was = b->slot[r];
	const struct ckr_program *p = b->p;
	void **ptr = malloc((slots * b->narg + 1) * sizeof(*ptr));

	for (uint32_t k = 0; ptr && k < slots; k++) {
		b->slot[r] = k;
		for (uint64_t i = 0; i < b->narg; i++) {
			const struct ckr_tensor *t = p->arg[i] < 0 ? NULL
				: &p->tensor[p->arg[i]];

			ptr[k * b->narg + i] = t && t->stage
				== world_stage(w, r) ? world_at(w, b, r, t)
				: NULL;
		}
	}
	b->slot[r] = was;
	return ptr;
}

static void
take_slot(struct loaded_program *b, uint32_t r, uint32_t slot)
{
	b->slot[r] = slot;
	b->ptr[r] = b->slot_ptr[r] + slot * b->narg;
}

void
operands_take_slot(const struct world *w, struct loaded_program *b,
                   uint32_t stage, uint32_t slot)
{
	FOR_STAGE (r, w, stage)
		take_slot(b, r, slot);
}

bool
world_set_operands(const struct world *w, struct loaded_program *b)
{
	b->narg = count_args(b->p);
	FOR_RANKS (r, w) {
		free(b->slot_ptr[r]);
		b->slot_ptr[r] = bind_operands(w, b, r);
		if (!b->slot_ptr[r])
			return false;
		take_slot(b, r, b->slot[r]);
	}
	return true;
}
