/* Whole tensors, and their elements range by range to the ranks that hold
 * them. */
#include "runtime/world/inside.h"

#include <stdlib.h>
#include <string.h>

struct ckr_tensor
whole_of_replica(const struct ckr_tensor *t)
{
	struct ckr_tensor of = *t;
	int64_t n = 1;

	of.placement = NULL;
	of.shard_of = NULL;
	if (t->shard_of)
		memcpy(of.dim, t->shard_of, (size_t)t->rank * sizeof(*of.dim));
	if (t->placement && t->placement->kind == CKR_SHARD) {
		of.dim[t->placement->axis] = 0;
		for (int k = 0; k < t->placement->nsegment; k++)
			of.dim[t->placement->axis] +=
				(int64_t)t->placement->segment[k];
	}
	for (int i = of.rank - 1; i >= 0; i--) {
		of.stride[i] = n;
		n *= of.dim[i];
	}
	of.nbytes = tensor_nbytes(&of);
	return of;
}

bool
whole_has_batches(const struct world *w, const struct ckr_tensor *t)
{
	return t->batch > 0 && world_batches(w) > 1;
}

struct ckr_tensor
world_whole(const struct world *w, const struct ckr_tensor *t)
{
	struct ckr_tensor of = whole_of_replica(t);

	if (!whole_has_batches(w, t))
		return of;
	of.dim[t->batch - 1] *= world_batches(w);
	of.batch = 0;
	return whole_of_replica(&of);
}

struct sharding
world_sharding(const struct world *w, const struct ckr_tensor *t)
{
	const struct comm_mesh mesh = world_mesh(w);
	struct sharding p;

	sharding_of_tensor(&p, t, w->tp, comm_ranks_of(
		&mesh, t->flags & CKR_OWN_EXPERTS ? COMM_EXPERTS : COMM_SHARDS,
		w->first).n);
	return p;
}

/* ---- elements of the local ranks, without gaps ---- */

char **
whole_open_local(struct world *w, const struct loaded_program *b,
                 const struct ckr_tensor *t)
{
	char **local = calloc(w->count, sizeof(*local));

	for (uint32_t r = 0; local && r < w->count; r++) {
		const struct ckr_tensor *here = world_tied(w, t,
			world_stage(w, r));

		if (!here)
			continue;
		local[r] = world_is_direct(w, t) ? world_at(w, b, r, here)
		           : malloc(tensor_nbytes(t) + 1);
		if (!local[r]) {
			whole_close_local(w, t, local);
			return NULL;
		}
	}
	return local;
}

void
whole_close_local(struct world *w, const struct ckr_tensor *t, char **local)
{
	for (uint32_t r = 0; local && r < w->count; r++)
		if (!world_is_direct(w, t))
			free(local[r]);
	free(local);
}

/* ---- to the ranks ---- */

static bool
holds_run(const struct shards *s, uint32_t r, const struct shard_run *u)
{
	return world_tied(s->w, s->t, world_stage(s->w, r))
	       && sharding_rank_holds(&s->sharding, u, world_rank(s->w, r),
	                              world_replica(s->w, r));
}

static bool
is_held(const struct shards *s, const struct shard_run *u)
{
	bool held = false;

	FOR_RANKS (r, s->w)
		held |= holds_run(s, r, u);
	return held;
}

ckr_status
shards_begin(struct shards *s, struct world *w, const struct ckr_tensor *t,
             bool put)
{
	struct ckr_tensor of = world_whole(w, t);

	*s = (struct shards){ .w = w, .t = t, .nelem = tensor_nelem(&of),
		.cut = tensor_is_sharded(t) };
	if (s->cut)
		s->sharding = world_sharding(w, t);
	if (!put)
		return CKR_OK;
	w->owner->memory->copied &= t->kind != CKR_PARAM;
	s->in_host = t->flags & CKR_HOST && !s->cut && !t->placement;
	if (s->in_host)
		return CKR_OK;
	s->local = whole_open_local(w, &w->plan, t);
	if (!s->local)
		return err_no_memory(w->err);
	/* the last shard is padded with zeros */
	for (uint32_t r = 0; s->cut && r < w->count; r++)
		if (s->local[r])
			memset(s->local[r], 0, tensor_nbytes(t));
	return CKR_OK;
}

bool
shards_next(struct shards *s, uint64_t most, uint64_t *at, uint64_t *n)
{
	uint64_t end = s->nelem;

	for (; s->cut && s->run < s->sharding.nrun; s->run++) {
		struct shard_run u = sharding_run(&s->sharding, s->run);

		if (u.whole + u.n <= *at || !is_held(s, &u))
			continue;
		*at = u.whole > *at ? u.whole : *at;
		end = s->held ? u.whole + u.n : end;
		break;
	}
	if (*at >= s->nelem || (s->cut && s->run == s->sharding.nrun))
		return false;
	*n = end - *at < most ? end - *at : most;
	return true;
}

/* Into a host block: there may be no memory for all of it. */
static void
put_in_host(struct shards *s, uint32_t r, uint64_t at, uint64_t n,
            const char *x)
{
	uint64_t size = tensor_elem_bytes(s->t);
	char *to = world_plan_at(s->w, r, s->t);

	if (s->status == CKR_OK)
		s->status = world_write_host(s->w, to + at * size, x, n * size);
}

/* A partial tensor is the whole on one rank and zeros on the others. */
static void
put_on_all(struct shards *s, uint64_t at, uint64_t n, const char *x)
{
	uint64_t size = tensor_elem_bytes(s->t);

	FOR_RANKS (r, s->w) {
		char *to;

		if (s->in_host) {
			put_in_host(s, r, at, n, x);
			continue;
		}
		if (!s->local[r])
			continue;
		to = s->local[r] + at * size;
		if (s->t->placement && world_rank(s->w, r))
			memset(to, 0, n * size);
		else if (to != x)
			memcpy(to, x, n * size);
	}
}

void
shards_put(struct shards *s, uint64_t at, uint64_t n, const void *x)
{
	uint64_t size = tensor_elem_bytes(s->t);

	if (!s->cut)
		put_on_all(s, at, n, x);
	for (uint64_t i = s->run; s->cut && i < s->sharding.nrun; i++) {
		struct shard_run u = sharding_run(&s->sharding, i);
		uint64_t lo, k = shard_run_part(&u, at, n, &lo);

		if (u.whole >= at + n)
			break;
		s->run = i;
		FOR_RANKS (r, s->w)
			if (k && holds_run(s, r, &u))
				memcpy(s->local[r]
				       + (u.local + lo - u.whole) * size,
				       (const char *)x + (lo - at) * size,
				       k * size);
	}
}

char *
shards_memory(const struct shards *s)
{
	FOR_RANKS (r, s->w)
		if (s->local[r])
			return s->local[r];
	return NULL;
}

ckr_status
shards_end(struct shards *s, bool done)
{
	bool push = done && s->local && !world_is_direct(s->w, s->t);
	ckr_status status = s->status;

	for (uint32_t r = 0; push && r < s->w->count; r++) {
		const struct ckr_tensor *here = world_tied(s->w, s->t,
			world_stage(s->w, r));

		if (status == CKR_OK && here)
			status = world_push(s->w, here, world_plan_at(s->w, r,
				here), s->local[r]);
		s->w->device->call->sync(s->w->device);
	}
	whole_close_local(s->w, s->t, s->local);
	s->local = NULL;
	return status;
}

ckr_status
world_scatter(struct world *w, const struct ckr_tensor *t, const void *dense)
{
	void *input = world_input(w, t);
	struct shards s;

	if (input) {
		memcpy(input, dense, world_whole(w, t).nbytes);
		return CKR_OK;
	}
	CKR_TRY(shards_begin(&s, w, t, true));
	shards_put(&s, 0, s.nelem, dense);
	return shards_end(&s, true);
}
