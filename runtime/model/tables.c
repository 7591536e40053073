/* Whether the tables of a library agree with themselves: one that does not
 * would write outside its memory.
 */
#include "runtime/model/rt.h"
#include "runtime/ranks/comm.h"

/* ---- between ranks ---- */

static bool
sane_split(const struct ckr_library *lib, const struct ckr_tensor *t)
{
	const struct ckr_split *s = t->split;
	struct pieces p;

	if (t->batch < 0 || t->batch > t->rank
	    || (t->kind == CKR_INPUT && t->batch && !rt_is_dense(t)))
		return false;
	if (s && s->kind == CKR_SUMMAND)
		return !t->piece && t->kind != CKR_INPUT;
	if (!s && !t->piece)
		return true;
	if (t->kind == CKR_CONSTANT || t->kind == CKR_INPUT
	    || (t->piece && (t->batch || lib->replicas > CKR_MAX_RANKS))
	    || !pieces_of_tensor(&p, t, lib->ranks > 1 ? lib->ranks : 1,
	                         lib->replicas))
		return false;
	return rt_nelem(t) == pieces_room(&p);
}

/* Pieces of a group are of a size only if its own is known. */
static bool
is_group(const struct ckr_library *lib, const struct ckr_comm *m)
{
	return m->axis == CKR_TP
	       || (m->axis == CKR_DP && lib->replicas
	           && (m->kind == CKR_ALL_REDUCE
	               || lib->replicas <= CKR_MAX_RANKS));
}

static bool
sane_step(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_step *s)
{
	const int32_t *arg = p->arg + s->arg0;

	if (!s->comm)
		return true;
	return !s->run && s->comm->end >= s - p->step
	       && s->comm->end < p->nstep
	       && s->narg == 2 && arg[0] >= 0 && arg[1] >= 0
	       && rt_is_dense(&p->tensor[arg[0]])
	       && rt_is_dense(&p->tensor[arg[1]])
	       && is_group(lib, s->comm)
	       && comm_sane(s->comm, s->comm->axis == CKR_DP ? lib->replicas
	                    : lib->ranks, &p->tensor[arg[0]],
	                    &p->tensor[arg[1]]);
}

static bool
ranks_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->ranks > CKR_MAX_RANKS)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_split(lib, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (!sane_step(lib, p, &p->step[i]))
			return false;
	return true;
}

/* ---- all ---- */

/* A copy in 16 bits is of a parameter in float32. */
static bool
sane_copy(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_tensor *t)
{
	const struct ckr_tensor *of = p->tensor + t->owner;

	return t->owner >= 0 && (uint32_t)t->owner < lib->nshared
	       && of->kind == CKR_PARAM && of->dtype == CKR_F32
	       && (t->dtype == CKR_BF16 || t->dtype == CKR_F16)
	       && rt_nelem(of) == rt_nelem(t);
}

static bool
sane_tensor(const struct ckr_library *lib, const struct ckr_program *p,
            const struct ckr_tensor *t)
{
	uint64_t room = t->flags & CKR_RESIDENT ? p->resident_bytes
	                : p->arena_bytes;
	int64_t from, to;

	if (t->rank > CKR_MAX_RANK || t->dtype >= CKR_DTYPE_COUNT)
		return false;
	if (t->offset > room)
		return false;
	rt_reach(t, &from, &to);
	if (from < 0 || to > (int64_t)room)
		return false;
	if (t->owner >= (int64_t)p->ntensor)
		return false;
	if (rt_is_copy(t) && !sane_copy(lib, p, t))
		return false;
	if (t->kind == CKR_CONSTANT
	    && (t->nbytes != (uint64_t)(to - from)
	        || t->data > lib->constants_bytes
	        || t->nbytes > lib->constants_bytes - t->data))
		return false;
	return true;
}

bool
rt_is_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->nshared > p->ntensor || p->loss >= (int64_t)p->ntensor
	    || p->update > p->nstep)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_tensor(lib, p, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		for (uint32_t k = 0; k < p->step[i].narg; k++)
			if (p->arg[p->step[i].arg0 + k] >= (int64_t)p->ntensor)
				return false;
	return ranks_sane(lib, p);
}
