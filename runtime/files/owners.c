/* Which process writes what of a tensor: of copies on several ranks one, in
 * turn by entries. */
#include "runtime/files/inside.h"

/* Bytes below which runs are put together before they are written to one
 * file. */
enum { SHORT = 256 };

bool
owner_writes(const struct world *w, size_t i, const struct ckr_tensor *t,
             uint32_t r)
{
	struct sharding p;

	if (world_stage(w, r) != t->stage)
		return false;
	if (!tensor_is_sharded(t))
		return world_rank_of(w, r) % (w->tp * w->dp)
		       == i % (w->tp * w->dp);
	p = world_sharding(w, t);
	return world_replica(w, r) / p.nreplica == i % (w->dp / p.nreplica)
	       && world_rank(w, r) % p.replication == 0;
}

/* The same of this process. */
static bool
process_writes(const struct world *w, size_t i, const struct ckr_tensor *t)
{
	return world_has_stage(w, t->stage)
	       && owner_writes(w, i, t, world_first_of(w, t->stage));
}

bool
owner_alone(const struct world *w, bool parts, const struct ckr_tensor *t)
{
	struct sharding p;

	if (t->batch && world_batches(w) > 1)
		return false;
	if (!tensor_is_sharded(t))
		return !t->placement;
	p = world_sharding(w, t);
	return parts
	       || sharding_longest_run(&p) * tensor_elem_bytes(t) >= SHORT;
}

bool
owner_has_all(const struct files *c, size_t i, const struct ckr_tensor *t)
{
	if (!c->world->team)
		return true;
	if (!owner_alone(c->world, true, t))
		return world_is_first(c->world);
	return !tensor_is_sharded(t) && process_writes(c->world, i, t);
}

bool
owner_has_shard(const struct files *c, size_t i, const struct ckr_tensor *t)
{
	return c->world->team && tensor_is_sharded(t)
	       && owner_alone(c->world, true, t)
	       && process_writes(c->world, i, t);
}
