/* Local ranks: their memory, gathering and scattering of whole tensors, and
 * transfers between them.
 *
 * Ranks take turns: each carries out a step, then the next one, and only then
 * is anything moved.  Constants and inputs, which no step writes, lie in the
 * memory of a replica's first rank alone.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/model/files.h"
#include "runtime/model/rt.h"
#include "runtime/ranks/transfers.h"

/* ---- memory ---- */

void
rt_select_rank(ckr_ctx *c, uint32_t rank)
{
	const struct world *w = &c->world;

	c->env.rank = (w->first + rank) % w->tp;
	c->env.ranks = w->tp;
	c->env.replica = (w->first + rank) / w->tp;
	c->env.replicas = w->dp;
	c->env.device = c->device_env ? &c->device_env[rank] : NULL;
}

static bool
is_common(const ckr_ctx *c, const struct ckr_tensor *t)
{
	return t->flags & CKR_RESIDENT && t->offset >= c->common[0]
	       && t->offset < c->common[1];
}

/* The first rank here of the same replica. */
static uint32_t
first_local_rank(const ckr_ctx *c, uint32_t rank)
{
	uint32_t before = rt_rank(c, rank);

	return before < rank ? rank - before : 0;
}

void *
rt_at(const ckr_ctx *c, const struct loaded_program *b, uint32_t rank,
      const struct ckr_tensor *t)
{
	const struct block *in = t->flags & CKR_RESIDENT ? c->resident
	                         : b->arena;

	return in[is_common(c, t) ? first_local_rank(c, rank) : rank].p
	       + t->offset;
}

static void **
bind_operands(const ckr_ctx *c, const struct loaded_program *b, uint32_t rank)
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
		         : rt_at(c, b, rank, &p->tensor[p->arg[i]]);
	return ptr;
}

bool
rt_set_operands(const ckr_ctx *c, struct loaded_program *b)
{
	FOR_RANKS (r, c) {
		free(b->ptr[r]);
		b->ptr[r] = bind_operands(c, b, r);
		if (!b->ptr[r])
			return false;
	}
	return true;
}

ckr_status
rt_load_program(ckr_ctx *c, struct loaded_program *b,
                const struct ckr_program *p, bool paint, bool at_end)
{
	*b = (struct loaded_program){ .p = p };
	b->arena = calloc(c->world.count, sizeof(*b->arena));
	b->ptr = calloc(c->world.count, sizeof(*b->ptr));
	if (!b->arena || !b->ptr)
		return rt_no_memory(c);
	FOR_RANKS (r, c)
		CKR_TRY(device_map(c->device, &b->arena[r], p->arena_bytes,
		                   paint, at_end, c->env.threads, &c->err));
	return rt_set_operands(c, b) ? CKR_OK : rt_no_memory(c);
}

ckr_status
rt_load_in_arena(ckr_ctx *c, struct loaded_program *b,
                 const struct ckr_program *p,
                 const struct loaded_program *other)
{
	*b = (struct loaded_program){ .p = p, .arena = other->arena,
		.shares_arena = true };
	b->ptr = calloc(c->world.count, sizeof(*b->ptr));
	return b->ptr && rt_set_operands(c, b) ? CKR_OK : rt_no_memory(c);
}

void
rt_unload_program(const ckr_ctx *c, struct loaded_program *b)
{
	FOR_RANKS (r, c) {
		if (b->arena && !b->shares_arena)
			device_unmap(c->device, &b->arena[r]);
		if (b->ptr)
			free(b->ptr[r]);
	}
	if (!b->shares_arena)
		free(b->arena);
	free(b->ptr);
	*b = (struct loaded_program){ .p = NULL };
}

/* ---- whole tensors ---- */

/* The whole tensor of one replica, without gaps. */
static struct ckr_tensor
replica_tensor(const struct ckr_tensor *t)
{
	struct ckr_tensor w = *t;
	int64_t n = 1;

	w.placement = NULL;
	w.shard_of = NULL;
	if (t->shard_of)
		memcpy(w.dim, t->shard_of, (size_t)t->rank * sizeof(*w.dim));
	if (t->placement && t->placement->kind == CKR_SHARD) {
		w.dim[t->placement->axis] = 0;
		for (int k = 0; k < t->placement->nsegment; k++)
			w.dim[t->placement->axis] +=
				(int64_t)t->placement->segment[k];
	}
	for (int i = w.rank - 1; i >= 0; i--) {
		w.stride[i] = n;
		n *= w.dim[i];
	}
	w.nbytes = rt_nbytes(&w);
	return w;
}

/* Replicas have different ones. */
static bool
has_replica_batches(const ckr_ctx *c, const struct ckr_tensor *t)
{
	return t->batch > 0 && c->world.dp > 1;
}

struct ckr_tensor
rt_whole(const ckr_ctx *c, const struct ckr_tensor *t)
{
	struct ckr_tensor w = replica_tensor(t);

	if (!has_replica_batches(c, t))
		return w;
	w.dim[t->batch - 1] *= c->world.dp;
	w.batch = 0;
	return replica_tensor(&w);
}

/* Address of a replicated tensor without gaps; NULL: it is sharded, or has
 * gaps.  / */
static void *
flat_address(const ckr_ctx *c, const struct loaded_program *b,
             const struct ckr_tensor *t)
{
	bool whole = !t->placement && !t->shard_of && !has_replica_batches(c, t)
		&& rt_is_dense(t);

	return whole && c->device->addressable ? rt_at(c, b, 0, t) : NULL;
}

/* Runs of the rank here between the whole and its own elements, both dense. */
static void
copy_shard_runs(const ckr_ctx *c, const struct ckr_tensor *t, uint32_t place,
                char *whole, char *local, bool gather)
{
	struct sharding p = rt_sharding(c, t);
	struct shard_stride at = sharding_runs_of_rank(&p, rt_rank(c, place),
	                                               rt_replica(c, place));
	uint64_t size = dtype_row[t->dtype].nbytes;

	for (uint64_t i = at.first; i < p.nrun; i += at.by) {
		struct shard_run u = sharding_run(&p, i);

		memcpy(gather ? whole + u.whole * size : local + u.local * size,
		       gather ? local + u.local * size : whole + u.whole * size,
		       u.n * size);
	}
}

/* A tensor that is cut, of n ranks from `first` on. */
static ckr_status
gather_shards(ckr_ctx *c, const struct loaded_program *b,
              const struct ckr_tensor *t, uint32_t first, uint32_t n,
              char *whole, char *local)
{
	for (uint32_t r = first; r < first + n; r++) {
		CKR_TRY(rt_pull(c, t, rt_at(c, b, r, t), local));
		copy_shard_runs(c, t, r, whole, local, true);
	}
	return CKR_OK;
}

/* local: memory for the summands of all ranks. */
static ckr_status
sum_partials(ckr_ctx *c, const struct loaded_program *b,
             const struct ckr_tensor *t, uint32_t first, void *whole,
             char *local)
{
	const void **x = malloc(c->world.tp * sizeof(*x));
	ckr_status s = CKR_OK;

	if (!x)
		return rt_no_memory(c);
	for (uint32_t r = 0; r < c->world.tp && s == CKR_OK; r++) {
		x[r] = local + r * rt_nbytes(t);
		s = rt_pull(c, t, rt_at(c, b, first + r, t),
		            local + r * rt_nbytes(t));
	}
	if (s == CKR_OK)
		comm_reduce(t->dtype, false, x, c->world.tp, rt_nelem(t),
		            whole);
	free(x);
	return s;
}

static ckr_status
gather_replica(ckr_ctx *c, const struct loaded_program *b,
               const struct ckr_tensor *t, uint32_t first, void *dense)
{
	ckr_status s = CKR_OK;
	char *local;

	if (!t->placement && !t->shard_of)
		return rt_pull(c, t, rt_at(c, b, first, t), dense);
	local = malloc(rt_nbytes(t) * c->world.tp + 1);
	if (!local)
		return rt_no_memory(c);
	if (rt_is_sharded(t))
		s = gather_shards(c, b, t, first,
		                  t->shard_of ? c->world.count : c->world.tp,
		                  dense, local);
	else
		s = sum_partials(c, b, t, first, dense, local);
	free(local);
	return s;
}

/* Between the whole of all replicas and that of replica q. */
static void
copy_batch(const ckr_ctx *c, const struct ckr_tensor *t, uint32_t q,
           char *whole, char *one, bool gather)
{
	struct ckr_tensor w = replica_tensor(t);
	uint64_t outer = 1, run = dtype_row[t->dtype].nbytes;

	for (int i = 0; i < w.rank; i++)
		*(i < t->batch - 1 ? &outer : &run) *= (uint64_t)w.dim[i];
	for (uint64_t o = 0; o < outer; o++) {
		char *at = whole + (o * c->world.dp + q) * run;

		memcpy(gather ? at : one + o * run,
		       gather ? one + o * run : at, run);
	}
}

ckr_status
rt_gather_whole(ckr_ctx *c, const struct loaded_program *b,
                const struct ckr_tensor *t, void *dense)
{
	ckr_status s = CKR_OK;
	void *one, *input = rt_input_memory(c, t);

	if (input) {
		memcpy(dense, input, rt_whole(c, t).nbytes);
		return CKR_OK;
	}
	if (c->team)
		return gather_all(c, b, t, dense);
	if (!has_replica_batches(c, t))
		return gather_replica(c, b, t, 0, dense);
	one = malloc(replica_tensor(t).nbytes + 1);
	if (!one)
		return rt_no_memory(c);
	for (uint32_t q = 0; q < c->world.dp && s == CKR_OK; q++) {
		s = gather_replica(c, b, t, q * c->world.tp, one);
		copy_batch(c, t, q, dense, one, true);
	}
	free(one);
	return s;
}

/* A partial tensor is the whole on one rank and zeros on the others. */
ckr_status
rt_scatter_whole(ckr_ctx *c, const struct ckr_tensor *t, const void *dense)
{
	bool apart = t->placement || t->shard_of;
	char *local = apart ? calloc(1, rt_nbytes(t) + 1) : NULL;
	void *input = rt_input_memory(c, t);
	ckr_status s = CKR_OK;

	c->copied &= t->kind != CKR_PARAM;

	if (input) {
		memcpy(input, dense, rt_whole(c, t).nbytes);
		return CKR_OK;
	}
	if (apart && !local)
		return rt_no_memory(c);
	FOR_RANKS (r, c) {
		const void *from = apart ? local : dense;

		if (rt_is_sharded(t)) {
			/* the last shard is padded with zeros */
			memset(local, 0, rt_nbytes(t));
			copy_shard_runs(c, t, r, (char *)(uintptr_t)dense,
			                local, false);
		} else if (rt_rank(c, r) == 0)
			from = dense;
		if (first_local_rank(c, r) == r || !is_common(c, t))
			s = rt_push(c, t, rt_at(c, &c->plan, r, t), from);
		if (s == CKR_OK && local)
			c->device->call->sync(c->device);
		if (s != CKR_OK)
			break;
	}
	free(local);
	return s;
}

ckr_status
rt_view_whole(ckr_ctx *c, const struct loaded_program *b,
              const struct ckr_tensor *t, const void **from, void **copy)
{
	struct ckr_tensor w = rt_whole(c, t);

	*copy = NULL;
	*from = flat_address(c, b, t);
	if (*from)
		return CKR_OK;
	*from = *copy = malloc(w.nbytes + 1);
	return *copy ? rt_gather_whole(c, b, t, *copy) : rt_no_memory(c);
}

/* ---- inputs ---- */

void *
rt_input_memory(const ckr_ctx *c, const struct ckr_tensor *t)
{
	const struct ckr_tensor *first = c->lib->program[0].tensor;
	bool here = t >= first && t < first + c->lib->nshared;

	return c->whole && here ? c->whole[t - first] : NULL;
}

/* Whether every rank here reads the input where the first one does, so that
 * whoever sets it can write there. */
static bool
is_in_place(const ckr_ctx *c, const struct ckr_tensor *t)
{
	return c->device->addressable && !has_replica_batches(c, t)
	       && c->world.count <= c->world.tp;
}

ckr_status
rt_gather_inputs(ckr_ctx *c)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	c->input_set = calloc(c->lib->nshared + 1, sizeof(*c->input_set));
	if (!c->input_set)
		return rt_no_memory(c);
	if (c->world.dp == 1 && c->device->addressable)
		return CKR_OK;
	c->whole = calloc(c->lib->nshared + 1, sizeof(*c->whole));
	if (!c->whole)
		return rt_no_memory(c);
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		uint64_t n = rt_whole(c, &t[i]).nbytes + 1;

		if (t[i].kind != CKR_INPUT || is_in_place(c, &t[i]))
			continue;
		c->whole[i] = c->device->call->alloc_pinned(c->device, n);
		if (!c->whole[i])
			return device_failed(c->device, &c->err) ? CKR_ENOMEM
			       : rt_no_memory(c);
		memset(c->whole[i], 0, n);
	}
	return CKR_OK;
}

/* An input to where the rank here reads it. */
static ckr_status
scatter_input(ckr_ctx *c, const struct ckr_tensor *t, uint32_t rank,
              void *whole)
{
	uint32_t replica = rt_replica(c, rank);
	void *at = rt_at(c, &c->plan, rank, t), *one;
	ckr_status s;

	if (!has_replica_batches(c, t))
		return rt_push(c, t, at, whole);
	if (c->device->addressable) {
		copy_batch(c, t, replica, whole, at, false);
		return CKR_OK;
	}
	one = malloc(replica_tensor(t).nbytes + 1);
	if (!one)
		return rt_no_memory(c);
	copy_batch(c, t, replica, whole, one, false);
	s = rt_push(c, t, at, one);
	c->device->call->sync(c->device);
	free(one);
	return s;
}

ckr_status
rt_scatter_inputs(ckr_ctx *c)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	for (uint32_t i = 0; i < c->lib->nshared && c->whole; i++)
		FOR_RANKS (r, c)
			if (c->whole[i] && first_local_rank(c, r) == r
			    && count_wants(c, i))
				CKR_TRY(scatter_input(c, &t[i], r,
				                      c->whole[i]));
	return CKR_OK;
}

/* ---- what steps move ---- */

ckr_status
rt_begin_transfer(ckr_ctx *c, const struct loaded_program *b, uint32_t i)
{
	const struct ckr_instr *s = &b->p->instr[i];
	const int32_t *arg = b->p->arg + s->arg0;
	struct transfer t = { .of = b, .step = i, .end = s->comm->end,
		.what = s->comm, .tx = &b->p->tensor[arg[0]],
		.ty = &b->p->tensor[arg[1]], .task = { .op = s->op,
		.of = s->origin, .step = c->step + 1,
		.bytes = (uint64_t)s->bytes } };

	CKR_TRY(transfers_begin(c->transfers, &t, &c->err));
	return t.end == i ? rt_end_transfers(c, i) : CKR_OK;
}

ckr_status
rt_end_transfers(ckr_ctx *c, uint32_t i)
{
	struct transfer *t;

	CKR_TRY(transfers_test(c->transfers, &c->err));
	while ((t = transfers_due(c->transfers, i))) {
		bool timed = (c->trace || c->profile) && t->end > t->step
			&& t->of == &c->plan;
		double from = timed ? now_sec() : 0;
		uint32_t step = t->step;

		CKR_TRY(transfers_wait(c->transfers, t, &c->err));
		if (timed)
			trace_wait(c, step, from, now_sec());
	}
	return CKR_OK;
}

ckr_status
rt_finish_transfers(ckr_ctx *c)
{
	return c->transfers ? rt_end_transfers(c, UINT32_MAX) : CKR_OK;
}
