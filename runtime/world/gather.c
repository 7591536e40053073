/* Whole tensors from the ranks that hold them, range by range. */
#include "runtime/ranks/comm.h"
#include "runtime/world/inside.h"

#include <stdlib.h>
#include <string.h>

struct gather {
	struct world *w;
	const struct ckr_tensor *t;
	struct sharding sharding;       /* of a sharded tensor */
	struct sharding batch;          /* of a tensor that replicas split */
	uint64_t run;                   /* runs before this one are done */
	uint64_t nelem, most;           /* elements of the whole; of a range, at
	                                 * most */
	char **local;                   /* [count]: elements of local ranks */
	/* A sharded tensor: the group of ranks that hold shards, their number,
	 * the number of this one; [owners]: bytes of a range that each holds,
	 * and their offset in the group's buffer. */
	enum comm_group holders;
	uint32_t owners, mine;
	uint32_t first_owner;           /* that may hold one */
	uint32_t here;                  /* local rank that holds one, if a
	                                 * process is a rank of a stage */
	int *nbytes, *place;
	struct chunked_comm group;      /* collectives of the replica */
};

/* Along what replicas have side by side. */
static void
find_batch_runs(struct gather *f, const struct ckr_tensor *whole)
{
	int axis = f->t->batch - 1;
	struct ckr_placement s = { .axis = (uint8_t)axis,
		.first_axis = (uint8_t)axis, .nsegment = 1, .replication = 1,
		.segment = { (uint64_t)whole->dim[axis] } };

	sharding_of(&f->batch, &s, world_batches(f->w), whole->rank,
	            whole->dim);
}

/* The ranks of a replica, or all of them. */
static ckr_status
find_owners(struct gather *f)
{
	const struct world *w = f->w;
	bool all = f->t->shard_of;

	f->sharding = world_sharding(w, f->t);
	f->holders = all ? COMM_ALL : COMM_TP;
	f->owners = all ? world_processes(w) : w->tp;
	f->mine = all ? w->first : world_rank(w, 0);
	f->first_owner = all ? world_process_of(w, f->t->stage) : 0;
	f->nbytes = calloc(2 * (size_t)f->owners, sizeof(*f->nbytes));
	if (!f->nbytes)
		return err_no_memory(w->err);
	f->place = f->nbytes + f->owners;
	return CKR_OK;
}

static ckr_status
gather_begin(struct gather *f, struct world *w, const struct loaded_program *b,
             const struct ckr_tensor *t)
{
	struct ckr_tensor whole = world_whole(w, t);

	*f = (struct gather){ .w = w, .t = t, .nelem = tensor_nelem(&whole),
		.most = tensor_piece(t, PG_BUFFER / w->tp),
		.here = world_first_of(w, t->stage),
		.group = { .team = w->team, .group = COMM_TP,
			.rank = world_rank(w, 0), .ranks = w->tp,
			.threads = w->threads,
			.task = { .op = "gathering", .of = t->name,
				.bytes = whole.nbytes, .patient = true } } };
	/* the groups and their memory are needed */
	if (w->team)
		CKR_TRY(world_finish_exchanges(w));
	if (tensor_is_sharded(t))
		CKR_TRY(find_owners(f));
	if (whole_has_batches(w, t))
		find_batch_runs(f, &whole);
	f->local = whole_open_local(w, b, t);
	if (!f->local)
		return err_no_memory(w->err);
	FOR_STAGE (r, w, t->stage)
		if (!world_is_direct(w, t))
			CKR_TRY(world_pull(w, t, world_at(w, b, r, t),
			                   f->local[r]));
	return CKR_OK;
}

static void
gather_end(struct gather *f)
{
	whole_close_local(f->w, f->t, f->local);
	free(f->nbytes);
}

/* Runs of the elements at .. at + n - 1 to their places in `out`, from their
 * first ranks here (rank `first` and those after it), or from the group's
 * memory, where what these have sent lies one behind the other.  out NULL:
 * this rank's to where it sends them from.  Counts them. */
static void
for_runs(struct gather *f, uint32_t first, uint64_t at, uint64_t n, char *out)
{
	uint64_t size = tensor_elem_bytes(f->t);
	struct process_group *team = f->w->team;

	memset(f->nbytes, 0, f->owners * sizeof(*f->nbytes));
	for (uint64_t i = f->run; i < f->sharding.nrun; i++) {
		struct shard_run u = sharding_run(&f->sharding, i);
		uint64_t lo, k = shard_run_part(&u, at, n, &lo) * size;
		uint32_t of = u.replica * f->w->tp + u.rank;
		uint32_t owner = f->first_owner + of;
		uint64_t from = (u.local + lo - u.whole) * size;

		if (u.whole >= at + n)
			break;
		if (out)
			f->run = i;
		if (k && out)
			memcpy(out + (lo - at) * size, team
			       ? team->in + f->place[owner] + f->nbytes[owner]
			       : f->local[first + of] + from, k);
		else if (k && owner == f->mine)
			memcpy(team->out + f->nbytes[owner],
			       f->local[f->here] + from, k);
		f->nbytes[owner] += (int)k;
	}
}

static ckr_status
gather_from_processes(struct gather *f, uint64_t at, uint64_t n, char *out)
{
	struct process_group *t = f->w->team;
	struct transport_side to = { t->in, f->nbytes, f->place };
	int next = 0;

	for_runs(f, 0, at, n, NULL);
	for (uint32_t r = 0; r < f->owners; r++) {
		f->place[r] = next;
		next += f->nbytes[r];
	}
	CKR_TRY(pg_allgather(t, f->holders, t->out, f->nbytes[f->mine], &to,
	                     &f->group.task, f->w->err));
	for_runs(f, 0, at, n, out);
	return CKR_OK;
}

/* Sum the elements of all ranks of a replica. */
static ckr_status
sum_partials(struct gather *f, uint32_t first, uint64_t at, uint64_t n,
             void *out)
{
	uint64_t size = tensor_elem_bytes(f->t);
	const void *x[CKR_MAX_GROUP];

	if (f->w->team)
		return chunked_sum(&f->group, f->t->dtype,
		                   f->local[f->here] + at * size, n, out,
		                   f->w->err);
	for (uint32_t r = 0; r < f->w->tp; r++)
		x[r] = f->local[first + r] + at * size;
	comm_reduce(f->t->dtype, false, x, f->w->tp, n, out);
	return CKR_OK;
}

/* From the ranks of one replica alone, the first of which is local rank
 * `first`, or this one: no other ranks take part. */
static ckr_status
gather_from_replica(struct gather *f, uint32_t first, uint64_t at, uint64_t n,
                    char *out)
{
	uint64_t size = tensor_elem_bytes(f->t);

	if (f->sharding.nrun && f->w->team)
		return gather_from_processes(f, at, n, out);
	if (f->sharding.nrun)
		for_runs(f, first, at, n, out);
	else if (f->t->placement)
		return sum_partials(f, first, at, n, out);
	else
		memcpy(out, f->local[first] + at * size, n * size);
	return CKR_OK;
}

/* The same in the processes of all stages. */
static ckr_status
gather_for_stages(struct gather *f, uint64_t at, uint64_t n, char *out)
{
	struct world *w = f->w;
	bool all = f->holders == COMM_ALL && f->sharding.nrun;
	ckr_status s = CKR_OK;

	if (all || world_has_stage(w, f->t->stage))
		s = gather_from_replica(f, f->here, at, n, out);
	if (s != CKR_OK || all)
		return s;
	return pg_broadcast(w->team, world_process_of(w, f->t->stage), out,
	                    (int)(n * tensor_elem_bytes(f->t)), &f->group.task,
	                    w->err);
}

/* Elements at .. at + n - 1 of the whole tensor, in all processes.  Ranges come
 * in order; n <= most. */
static ckr_status
gather_next(struct gather *f, uint64_t at, uint64_t n, char *out)
{
	uint64_t size = tensor_elem_bytes(f->t);
	struct world *w = f->w;
	uint32_t holders = world_process_of(w, f->t->stage);

	if (!f->batch.nrun && w->team && w->stages > 1)
		return gather_for_stages(f, at, n, out);
	if (!f->batch.nrun)
		return gather_from_replica(f, f->here, at, n, out);
	for (uint64_t i = 0; i < f->batch.nrun; i++) {
		struct shard_run u = sharding_run(&f->batch, i);
		uint32_t of = u.rank * (w->dp / world_batches(w)); /* replica */
		uint64_t lo, k = shard_run_part(&u, at, n, &lo);
		uint64_t from = u.local + lo - u.whole;
		char *to = out + (lo - at) * size;

		if (!k)
			continue;
		if (!w->team) {
			/* its runs begin anew */
			f->run = 0;
			CKR_TRY(gather_from_replica(f, f->here + of * w->tp,
			                            from, k, to));
			continue;
		}
		if (of == world_replica(w, 0)
		    && world_has_stage(w, f->t->stage))
			CKR_TRY(gather_from_replica(f, f->here, from, k, to));
		CKR_TRY(pg_broadcast(w->team, holders + of * w->tp, to,
		                     (int)(k * size), &f->group.task, w->err));
	}
	return CKR_OK;
}

/* ---- in whole ---- */

ckr_status
world_gather_ranges(struct world *w, const struct loaded_program *b,
                    const struct ckr_tensor *t, range_fn *each, void *user)
{
	struct gather f;
	ckr_status s = gather_begin(&f, w, b, t), one = CKR_OK;
	char *x = malloc(f.most * tensor_elem_bytes(t));

	if (s == CKR_OK && !x)
		s = err_no_memory(w->err);
	for (uint64_t at = 0, n; s == CKR_OK && at < f.nelem; at += n) {
		n = f.nelem - at < f.most ? f.nelem - at : f.most;
		s = gather_next(&f, at, n, x);
		if (s == CKR_OK && one == CKR_OK)
			one = each(user, at, n, x);
	}
	gather_end(&f);
	free(x);
	return s == CKR_OK ? one : s;
}

ckr_status
world_gather(struct world *w, const struct loaded_program *b,
             const struct ckr_tensor *t, void *dense)
{
	void *input = world_input(w, t);
	struct gather f;
	ckr_status s;

	if (input) {
		memcpy(dense, input, world_whole(w, t).nbytes);
		return CKR_OK;
	}
	if (!w->team && !t->placement && !t->shard_of
	    && !whole_has_batches(w, t))
		return world_pull(w, t, world_at(w, b,
			world_first_of(w, t->stage), t), dense);
	s = gather_begin(&f, w, b, t);
	for (uint64_t at = 0, n; s == CKR_OK && at < f.nelem; at += n) {
		n = f.nelem - at < f.most ? f.nelem - at : f.most;
		s = gather_next(&f, at, n, (char *)dense
		                + at * tensor_elem_bytes(t));
	}
	gather_end(&f);
	return s;
}
