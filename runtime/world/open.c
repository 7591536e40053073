/* Opening: the processes of a run, its ranks, their device and memory. */
#include "runtime/device/nccl_transport.h"
#include "runtime/ranks/stage_messages.h"
#include "runtime/support/env.h"
#include "runtime/world/inside.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT = 600 };                 /* seconds */

/* ---- ranks ---- */

ckr_status
world_join(struct world *w, double timeout, struct err *e)
{
	w->err = e;
	w->owner = w;
	w->poison = env_is_on("CKR_POISON");
	w->memory = calloc(1, sizeof(*w->memory));
	if (!w->memory)
		return err_no_memory(e);
	return pg_open(&w->team, timeout > 0 ? timeout : TIMEOUT, e);
}

/* Replicas are of as many ranks as there are per stage and stage. */
static ckr_status
refuse_ranks(struct world *w, const char *so, uint32_t ranks, uint32_t each)
{
	uint32_t nrank = w->stages / w->chunks;

	if (w->chunks > 1)
		return err_set(w->err, CKR_EARG, "%s: a pipeline of %u stages, "
		               "of which a rank has %u, of %u ranks each: "
		               "expected a multiple of %u ranks, found %u", so,
		               w->stages, w->chunks, each / nrank, each, ranks);
	if (w->stages > 1)
		return err_set(w->err, CKR_EARG, "%s: a pipeline of %u stages "
		               "of %u ranks each: expected a multiple of %u "
		               "ranks, found %u", so, w->stages,
		               each / nrank, each, ranks);
	return err_set(w->err, CKR_EARG, "%s: a replica is sharded over %u "
	               "ranks: expected a multiple of %u ranks, found %u", so,
	               each, each, ranks);
}

/* How many replicas there are of how many ranks; 0 ranks: as few as there can
 * be.  All of them live here. */
static ckr_status
choose_ranks(struct world *w, const char *so, uint32_t ranks)
{
	const struct ckr_library *lib = w->lib;
	uint32_t each = lib->ranks > 1 ? lib->ranks : 1, tp = each;
	bool fixed = lib->replicas && lib->replicas != CKR_ANY_REPLICAS;
	uint32_t dp = fixed ? lib->replicas : 1;

	w->stages = lib->nstage ? lib->nstage : 1;
	w->chunks = lib->chunks ? lib->chunks : 1;
	each *= w->stages / w->chunks;
	if (ranks && ranks % each)
		return refuse_ranks(w, so, ranks, each);
	if (ranks && !fixed)
		dp = ranks / each;
	if (ranks && fixed && ranks != each * dp && lib->context)
		return err_set(w->err, CKR_EARG, "%s: compiled for %u "
		               "replicas of %u ranks each: expected %u ranks, "
		               "found %u; compile it with a --dp and --cp "
		               "whose product is %u", so, dp, each, each * dp,
		               ranks, ranks / each);
	if (ranks && fixed && ranks != each * dp)
		return err_set(w->err, CKR_EARG, "%s: compiled for %u "
		               "replicas of %u ranks each: expected %u ranks, "
		               "found %u; compile it with the same --zero "
		               "or --ep and --dp %u%s",
		               so, dp, each, each * dp, ranks, ranks / each,
		               lib->zero_group || lib->expert_group
		               ? ", and with a --zero-group "
		               "or --ep that divides it" : "");
	if (dp > 1 && !lib->replicas)
		return err_set(w->err, CKR_EARG, "%s: compiled for one "
		               "replica (%u ranks), got %u ranks; compile it "
		               "with ckc --dp auto", so, each, ranks);
	if (dp > CKR_MAX_GROUP)
		return err_set(w->err, CKR_EARG, "%s: expected at most %d "
		               "replicas, got %u", so, CKR_MAX_GROUP, dp);
	w->tp = tp;
	w->dp = dp;
	w->count = each * dp * w->chunks;
	return CKR_OK;
}

ckr_status
world_set_library(struct world *w, const struct library *l, const char *so,
                  uint32_t ranks)
{
	w->library = l;
	w->lib = l->lib;
	if (w->team && ranks && ranks != w->team->size)
		return err_set(w->err, CKR_EARG, "%u processes were started, "
		               "one per rank, but %u ranks were requested",
		               w->team->size, ranks);
	return choose_ranks(w, so, w->team ? w->team->size : ranks);
}

ckr_status
world_assign_ranks(struct world *w)
{
	struct comm_mesh mesh = world_mesh(w);

	if (!w->team)
		return CKR_OK;
	w->first = w->team->rank;
	w->count = w->chunks;
	return pg_split(w->team, &mesh, w->err);
}

/* ---- device ---- */

/* Threads that ranks on one machine leave each other; bound to a processor
 * each, OpenMP knows. */
static int
fair_threads(const struct world *w, int wanted)
{
	long all = sysconf(_SC_NPROCESSORS_ONLN);

	if (!w->team || wanted > 0 || getenv("OMP_NUM_THREADS")
	    || omp_get_num_procs() < all)
		return wanted;
	all /= (long)w->team->nlocal;
	return all > 0 ? (int)all : 1;
}

static void
set_thread_count(struct world *w, int wanted)
{
	int n = wanted > 0 ? wanted : omp_get_max_threads();

	if (n > (int)w->lib->threads)
		n = (int)w->lib->threads;
	w->threads = n > 0 ? n : 1;
}

/* The processes of a machine take one after the other. */
static int
choose_gpu(const struct world *w)
{
	const char *wish = getenv("CKR_GPU"), *place = getenv("LOCAL_RANK");

	if (wish)
		return atoi(wish);
	if (!w->team)
		return 0;
	return place ? atoi(place) : (int)w->team->local_rank;
}

static ckr_status
open_device(struct world *w)
{
	if (!w->lib->arch)
		return device_open_host(&w->device, w->err);
	return device_open_cuda(&w->device, w->lib->arch, choose_gpu(w),
	                        w->err);
}

ckr_status
world_open_device(struct world *w, int threads)
{
	set_thread_count(w, fair_threads(w, threads));
	CKR_TRY(open_device(w));
	return w->team && w->device->call->open_transport
	       ? w->device->call->open_transport(&w->memory->nccl, w->device,
	                                         w->err)
	       : CKR_OK;
}

/* ---- memory ---- */

static void
set_constants(struct world *w)
{
	const struct ckr_tensor *t = w->lib->program[0].tensor;

	for (uint32_t i = 0; i < w->lib->nshared; i++)
		FOR_STAGE (r, w, t[i].stage)
			if (t[i].kind == CKR_CONSTANT)
				w->device->call->copy_h2d(w->device,
					world_plan_at(w, r, &t[i]),
					w->lib->constants + t[i].data,
					t[i].nbytes);
}

ckr_status
world_open_memory(struct world *w)
{
	CKR_TRY(place_open(w));
	set_constants(w);
	CKR_TRY(inputs_open(w));
	return transfers_open_world(w);
}

ckr_status
world_connect(struct world *w, uint64_t seed)
{
	CKR_TRY(transfers_join(w->memory->transfers, w->err));
	return compare_processes(w, seed);
}

void
world_close(struct world *w)
{
	if (!w->memory)
		return;
	/* a step that failed has left some in flight */
	if (w->memory->transfers)
		world_drop_transfers(w);
	transfers_close(w->memory->transfers);
	messages_close(w->memory->messages);
	averages_free(w);
	place_close(w);
	inputs_close(w);
	nccl_close(w->memory->nccl);
	device_close(w->device);
	free(w->memory);
	pg_close(w->team);
}

bool
world_is_ready(const struct world *w)
{
	return w->ready && w->owner->ready;
}

ckr_status
world_need_ready(struct world *w)
{
	if (!world_is_ready(w))
		return err_set(w->err, CKR_EARG, "no model is open");
	w->device->call->enter(w->device);
	return CKR_OK;
}
