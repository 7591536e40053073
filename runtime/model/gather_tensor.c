/* Gathers a sharded tensor from all processes, range by range. */
#include "runtime/model/files.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
min_elements(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A collective of this process with the others. */
static struct chunked_comm
collective_in_group(const ckr_ctx *c, enum comm_group g,
                    const struct pg_task *w)
{
	bool dp = g == COMM_DP;

	return (struct chunked_comm){ .team = c->team, .group = g,
		.rank = dp ? c->env.replica : c->env.rank,
		.ranks = dp ? c->world.dp : c->world.tp,
		.threads = c->env.threads, .task = *w };
}

/* Along what replicas have side by side. */
static void
find_batch_pieces(struct tensor_gather *f)
{
	struct ckr_tensor w = rt_whole(f->c, f->t);
	int axis = f->t->batch - 1;
	struct ckr_placement s = { .axis = (uint8_t)axis,
		.first_axis = (uint8_t)axis, .nsegment = 1, .replication = 1,
		.segment = { (uint64_t)w.dim[axis] } };

	sharding_of(&f->batch, &s, f->c->world.dp, w.rank, w.dim);
}

/* The ranks of a replica, or all of them. */
static ckr_status
find_owners(struct tensor_gather *f)
{
	const struct world *w = &f->c->world;

	f->sharding = rt_sharding(f->c, f->t);
	f->holders = f->t->shard_of ? COMM_ALL : COMM_TP;
	f->owners = f->t->shard_of ? w->tp * w->dp : w->tp;
	f->mine = f->t->shard_of ? w->first : f->c->env.rank;
	f->nbytes = calloc(2 * (size_t)f->owners, sizeof(*f->nbytes));
	if (!f->nbytes)
		return rt_no_memory(f->c);
	f->place = f->nbytes + f->owners;
	return CKR_OK;
}

ckr_status
gather_begin(struct tensor_gather *f, ckr_ctx *c,
             const struct loaded_program *b, const struct ckr_tensor *t)
{
	struct pg_task w = { .op = "gathering", .of = t->name,
		.bytes = rt_whole(c, t).nbytes, .patient = true };

	/* the groups and their memory are needed */
	CKR_TRY(rt_finish_transfers(c));
	*f = (struct tensor_gather){ .c = c, .t = t,
		.group = collective_in_group(c, COMM_TP, &w) };
	f->most = PG_BUFFER / c->world.tp / 8;
	f->local = rt_at(c, b, 0, t);
	if (rt_is_sharded(t))
		CKR_TRY(find_owners(f));
	if (t->batch && c->world.dp > 1)
		find_batch_pieces(f);
	if (rt_is_dense(t) && c->device->addressable)
		return CKR_OK;
	f->packed = malloc(rt_nbytes(t) + 1);
	if (!f->packed)
		return rt_no_memory(c);
	CKR_TRY(rt_pull(c, t, f->local, f->packed));
	f->local = f->packed;
	return CKR_OK;
}

/* Runs of the elements at .. at + n - 1, between their places in `out` and
 * those of their first ranks, which lie one behind the other in the team's
 * memory; out NULL: this rank's to where it sends them from.  Counts them. */
static void
for_runs(struct tensor_gather *f, uint64_t at, uint64_t n, char *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes, first = f->run;
	char *in = f->c->team->in, *mine = f->c->team->out;

	memset(f->nbytes, 0, f->owners * sizeof(*f->nbytes));
	for (uint64_t i = first; i < f->sharding.nrun; i++) {
		struct shard_run u = sharding_run(&f->sharding, i);
		uint64_t lo = u.whole > at ? u.whole : at;
		uint64_t hi = min_elements(u.whole + u.n, at + n), k;
		uint32_t owner = u.replica * f->c->world.tp + u.rank;

		if (u.whole >= at + n)
			break;
		if (out)
			f->run = i;
		if (lo >= hi)
			continue;
		k = (hi - lo) * size;
		if (out)
			memcpy(out + (lo - at) * size,
			       in + f->place[owner] + f->nbytes[owner], k);
		else if (owner == f->mine)
			memcpy(mine + f->nbytes[owner],
			       f->local + (u.local + lo - u.whole) * size, k);
		f->nbytes[owner] += (int)k;
	}
}

static ckr_status
gather_ranges(struct tensor_gather *f, uint64_t at, uint64_t n, char *out)
{
	struct process_group *t = f->c->team;
	struct transport_side to = { t->in, f->nbytes, f->place };
	int next = 0;

	for_runs(f, at, n, NULL);
	for (uint32_t r = 0; r < f->owners; r++) {
		f->place[r] = next;
		next += f->nbytes[r];
	}
	CKR_TRY(pg_allgather(t, f->holders, t->out, f->nbytes[f->mine], &to,
	                     &f->group.task, &f->c->err));
	for_runs(f, at, n, out);
	return CKR_OK;
}

/* Gather from the ranks of this replica alone: no other ranks take part. */
static ckr_status
gather_from_replica(struct tensor_gather *f, uint64_t at, uint64_t n, char *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes;

	if (f->sharding.nrun)
		return gather_ranges(f, at, n, out);
	if (f->t->placement)
		return chunked_sum(&f->group, f->t->dtype, f->local + at * size,
		                   n, out, &f->c->err);
	memcpy(out, f->local + at * size, n * size);
	return CKR_OK;
}

ckr_status
gather_next(struct tensor_gather *f, uint64_t at, uint64_t n, void *out)
{
	uint64_t size = dtype_row[f->t->dtype].nbytes;
	ckr_ctx *c = f->c;

	if (!f->batch.nrun)
		return gather_from_replica(f, at, n, out);
	for (uint64_t i = 0; i < f->batch.nrun; i++) {
		struct shard_run u = sharding_run(&f->batch, i);
		uint64_t lo = u.whole > at ? u.whole : at;
		uint64_t hi = min_elements(u.whole + u.n, at + n);
		char *to = (char *)out + (lo - at) * size;

		if (lo >= hi)
			continue;
		if (u.rank == c->env.replica)
			CKR_TRY(gather_from_replica(f, u.local + lo - u.whole,
			                            hi - lo, to));
		CKR_TRY(pg_broadcast(c->team, u.rank * c->world.tp, to,
		                     (int)((hi - lo) * size), &f->group.task,
		                     &c->err));
	}
	return CKR_OK;
}

void
gather_end(struct tensor_gather *f)
{
	free(f->packed);
	free(f->nbytes);
	f->packed = NULL;
	f->nbytes = NULL;
}

ckr_status
gather_all(ckr_ctx *c, const struct loaded_program *b,
           const struct ckr_tensor *t, char *dense)
{
	struct ckr_tensor w = rt_whole(c, t);
	uint64_t n = rt_nelem(&w), size = dtype_row[t->dtype].nbytes;
	struct tensor_gather f;
	ckr_status s = gather_begin(&f, c, b, t);

	for (uint64_t at = 0; s == CKR_OK && at < n; at += f.most)
		s = gather_next(&f, at, min_elements(n - at, f.most),
		                dense + at * size);
	gather_end(&f);
	return s;
}
