/* Where operands lie.
 *
 * Constants and inputs, which no step writes, lie in the memory of a replica's
 * first rank alone.  Parameters, buffers and states, which come first, may lie
 * in the memory of another library of the model: see share.c.
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
	uint32_t before = world_rank(w, r);

	return before < r ? r - before : 0;
}

void *
world_at(const struct world *w, const struct loaded_program *b, uint32_t r,
         const struct ckr_tensor *t)
{
	const struct memory *m = w->memory;

	if (t->flags & CKR_HOST)
		return world_host_block(w, r) + t->offset;
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

static void **
bind_operands(const struct world *w, const struct loaded_program *b,
              uint32_t r)
{
	const struct ckr_program *p = b->p;
	uint64_t n = 0;
	void **ptr;

	for (uint32_t i = 0; i < p->ninstr; i++)
		if (n < (uint64_t)p->instr[i].arg0 + p->instr[i].narg)
			n = (uint64_t)p->instr[i].arg0 + p->instr[i].narg;
	ptr = malloc((n + 1) * sizeof(*ptr));
	if (!ptr)
		return NULL;
	for (uint64_t i = 0; i < n; i++)
		ptr[i] = p->arg[i] < 0 ? NULL
		         : world_at(w, b, r, &p->tensor[p->arg[i]]);
	return ptr;
}

bool
world_set_operands(const struct world *w, struct loaded_program *b)
{
	FOR_RANKS (r, w) {
		free(b->ptr[r]);
		b->ptr[r] = bind_operands(w, b, r);
		if (!b->ptr[r])
			return false;
	}
	return true;
}
