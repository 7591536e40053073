/* Room world: the ranks of a run and their memory: where each operand lies, and
 * how whole tensors come to the ranks and from them.
 *
 * in      the tables of a library, the number of ranks, the processes of a run
 * out     addresses of operands, whole tensors, transfers, agreement between
 *         processes
 * must not know   what steps compute, files
 *
 * World rank = (stage * dp + replica) * tp + rank of the replica, of which a
 * stage has tp * dp.  Under an interleaved schedule each process has `chunks`
 * stages, and their ranks: of the n processes, process p has the world ranks
 * p, n + p, 2 n + p...  If all ranks live here, local rank r is world rank r,
 * else the r-th of these.
 */
#ifndef RUNTIME_WORLD_WORLD_H
#define RUNTIME_WORLD_WORLD_H

#include "runtime/device/device.h"
#include "runtime/library/library.h"
#include "runtime/ranks/sharding.h"
#include "runtime/team/process_group.h"

/* A program in memory: arenas and operands of the ranks that live here. */
struct loaded_program {
	const struct ckr_program *p;
	struct block *arena;            /* [count] */
	void ***ptr;                    /* [count]: addresses of p->arg, for the
	                                 * micro-batch that the rank is at */
	void ***slot_ptr;               /* [count]: of all slots, one after the
	                                 * other */
	uint32_t *slot;                 /* [count]: that micro-batch's slot */
	uint64_t narg;
	bool shares_arena;              /* the arena is another program's, of
	                                 * this world or of its owner */
};

/* Constant once it is open, but for `averaged`, `ready` and `memory`. */
struct world {
	struct err *err;                /* the context's */
	struct world *owner;            /* whose parameters, buffers, states
	                                 * and arena these are: itself, or the
	                                 * world of the model that was opened
	                                 * first */
	const struct library *library;
	const struct ckr_library *lib;  /* the library's tables */
	uint32_t tp, dp;                /* ranks of a stage's replica; replicas
	                                 */
	uint32_t stages;                /* of the pipeline; 1: there is none */
	uint32_t chunks;                /* of these, a process has */
	uint32_t first, count;          /* this process, or 0; ranks here */
	int threads;
	bool poison;                    /* NaN in memory that is not in use */
	const char *offload_dir;        /* folder of host blocks that are files;
	                                 * NULL: the default */
	struct device *device;
	struct process_group *team;     /* NULL: all ranks live here */
	struct loaded_program plan;     /* program[0] */
	struct loaded_program forward;  /* program[2], in the plan's arena;
	                                 * p NULL: there is none */
	bool averaged;                  /* the owner's: moving averages are in
	                                 * place of the parameters */
	bool ready;                     /* all memory has values; the owner is
	                                 * no longer ready after a file was
	                                 * read in part */
	struct memory *memory;          /* private: inside.h */
	/* Called after the process waited for the transfer that instruction i
	 * of the plan had begun before; NULL: nobody asks. */
	void (*waited)(void *user, uint32_t i, double from, double to);
	void *waited_user;
};

#define FOR_RANKS(r, w) for (uint32_t r = 0; r < (w)->count; r++)
/* Those of one stage. */
#define FOR_STAGE(r, w, s) \
	for (uint32_t r = world_first_of(w, s); r < world_end_of(w, s); r++)

/* The processes that a run with as many as can be has. */
static inline uint32_t
world_processes(const struct world *w)
{
	return w->stages / w->chunks * w->dp * w->tp;
}

/* The first of those that have the stage. */
static inline uint32_t
world_process_of(const struct world *w, uint32_t stage)
{
	return stage * w->dp * w->tp % world_processes(w);
}

/* World rank of local rank r. */
static inline uint32_t
world_rank_of(const struct world *w, uint32_t r)
{
	return w->team ? r * world_processes(w) + w->first : r;
}

/* The first local rank of a stage, and the one after the last of them. */
static inline uint32_t
world_first_of(const struct world *w, uint32_t stage)
{
	uint32_t ranks = w->dp * w->tp;

	if (!w->team)
		return stage * ranks < w->count ? stage * ranks : w->count;
	return world_process_of(w, stage) == w->first / ranks * ranks
	       ? stage * ranks / world_processes(w) : w->count;
}

static inline uint32_t
world_end_of(const struct world *w, uint32_t stage)
{
	uint32_t first = world_first_of(w, stage);

	return first == w->count ? first
	       : first + (w->team ? 1 : w->dp * w->tp);
}

static inline bool
world_has_stage(const struct world *w, uint32_t stage)
{
	return world_first_of(w, stage) < world_end_of(w, stage);
}

/* The number in its replica of a local rank; its replica; its stage. */
static inline uint32_t
world_rank(const struct world *w, uint32_t r)
{
	return world_rank_of(w, r) % w->tp;
}

static inline uint32_t
world_replica(const struct world *w, uint32_t r)
{
	return world_rank_of(w, r) / w->tp % w->dp;
}

static inline uint32_t
world_stage(const struct world *w, uint32_t r)
{
	return world_rank_of(w, r) / (w->tp * w->dp);
}

/* Its groups of processes, or of ranks if they live here. */
static inline struct comm_mesh
world_mesh(const struct world *w)
{
	return (struct comm_mesh){ w->tp, w->dp, w->lib->zero_group,
		                   w->lib->expert_group,
		                   w->team ? w->stages / w->chunks : w->stages,
		                   w->lib->context };
}

/* Replicas that have samples of their own: several may have the same ones, of
 * which each computes a part of the positions. */
static inline uint32_t
world_batches(const struct world *w)
{
	return w->dp / (w->lib->context ? w->lib->context : 1);
}

/* ---- open.c: in this order; what fails on one process fails on all ---- */

/* Take part in the run, if there is one; timeout 0: the default. */
ckr_status world_join(struct world *, double timeout, struct err *);
/* so: the name that messages give the library; ranks 0: as few as it can
 * have. */
ckr_status world_set_library(struct world *, const struct library *,
                             const char *so, uint32_t ranks);
/* Share the parameters, buffers, states and the arena of another world, which
 * stays open for longer; CKR_EARG if the libraries differ in these.  The arena
 * may move when memory is opened. */
ckr_status world_share(struct world *, struct world *with);
/* Make this process one rank, if there are several; once all have the
 * library. */
ckr_status world_assign_ranks(struct world *);
/* threads 0: as OpenMP would use. */
ckr_status world_open_device(struct world *, int threads);
/* Allocate blocks, inputs and transfers, and set constants. */
ckr_status world_open_memory(struct world *);
/* Join the devices of all processes, and check that all have the same library
 * and the same settings. */
ckr_status world_connect(struct world *, uint64_t seed);
void world_close(struct world *);
bool world_is_ready(const struct world *);
/* At the beginning of a user's call: CKR_EARG unless it is; the calling thread
 * uses its device from then on. */
ckr_status world_need_ready(struct world *);

/* ---- operands.c: where they lie ---- */

/* Address of a program's tensor on a local rank. */
void *world_at(const struct world *, const struct loaded_program *, uint32_t r,
               const struct ckr_tensor *);
static inline void *
world_plan_at(const struct world *w, uint32_t r, const struct ckr_tensor *t)
{
	return world_at(w, &w->plan, r, t);
}
/* Host memory of a whole input, unless kernels read it where the first rank
 * does; else NULL. */
void *world_input(const struct world *, const struct ckr_tensor *);
/* Whether the host can use that address, at which the elements lie without
 * gaps. */
bool world_is_direct(const struct world *, const struct ckr_tensor *);
/* Set operands, again after blocks have moved; false: no memory. */
bool world_set_operands(const struct world *, struct loaded_program *);
/* A tensor of program[0] on the ranks of another stage: the one that is tied to
 * it; NULL: they have none. */
const struct ckr_tensor *world_tied(const struct world *,
                                    const struct ckr_tensor *, uint32_t stage);

/* ---- place.c: memory ---- */

/* Allocate arenas and set operands; paint and at_end as for block_map.  To be
 * unloaded after a failure too. */
ckr_status world_load(struct world *, struct loaded_program *,
                      const struct ckr_program *, bool paint, bool at_end);
void world_unload(const struct world *, struct loaded_program *);
/* Bytes of the resident blocks of all local ranks. */
uint64_t world_resident_bytes(const struct world *);
/* What lasts from step to step, resident and host blocks: its bytes; to a copy
 * or back from it. */
uint64_t world_lasting_bytes(const struct world *);
ckr_status world_copy_lasting(struct world *, char *copy, bool back);
/* Bytes that steps of the plan have touched, on the rank with most. */
uint64_t world_touched(const struct world *);
/* Bytes of transfers; anonymous memory since blocks were allocated. */
uint64_t world_transfer_bytes(const struct world *);
uint64_t world_grown_bytes(const struct world *);

/* ---- host_block.c: memory beside the device's ---- */

/* A local rank's host block, of which the owner's shared tensors come first. */
char *world_host_block(const struct world *, uint32_t r);
/* Bytes of the host blocks of all local ranks; the folder of the file that they
 * are, NULL: they are memory. */
uint64_t world_host_bytes(const struct world *);
const char *world_offload_dir(const struct world *);
/* Bytes per second of transfers to and from host memory, of the slower
 * direction: of a file so far, of a GPU as measured between steps; 0:
 * unknown. */
double world_host_rate(const struct world *);
/* All host blocks to a copy, or back from it. */
ckr_status world_copy_host(struct world *, char *copy, bool back);
/* Copy n bytes at an address in a host block. */
ckr_status world_read_host(struct world *, void *to, const void *at,
                           uint64_t n);
ckr_status world_write_host(struct world *, void *at, const void *from,
                            uint64_t n);

/* ---- copy.c: between ranks' memory and the host ---- */

/* Copy a tensor's elements on a rank, at an address in device memory, to and
 * from row-major order without gaps. */
ckr_status world_pull(struct world *, const struct ckr_tensor *,
                      const void *tensor, void *dense);
ckr_status world_push(struct world *, const struct ckr_tensor *, void *tensor,
                      const void *dense);
/* The element at an address in device memory, of the tensor's type. */
double world_number(struct world *, const struct ckr_tensor *, const void *at);
/* Before a step: make the 16-bit copies of parameters.  Updates keep them; this
 * is for parameters that something else has written. */
ckr_status world_make_copies(struct world *);

/* ---- averages.c ---- */

/* Put moving averages in place of the parameters, or the parameters back.  An
 * average that is in use is where its parameter was, and the other way round,
 * unless the parameter has 16 bits. */
ckr_status world_use_averages(struct world *, bool use);

/* ---- whole.c: tensors as a single rank would have them ---- */

/* The whole tensor without gaps. */
struct ckr_tensor world_whole(const struct world *, const struct ckr_tensor *);
struct sharding world_sharding(const struct world *, const struct ckr_tensor *);
/* The whole tensor's elements from all ranks; in all processes. */
ckr_status world_gather(struct world *, const struct loaded_program *,
                        const struct ckr_tensor *, void *dense);
/* The same of at most world_range(t) elements at a time: each range goes to
 * `each`, also after it has failed. */
typedef ckr_status range_fn(void *user, uint64_t at, uint64_t n,
                            const void *elements);
ckr_status world_gather_ranges(struct world *, const struct loaded_program *,
                               const struct ckr_tensor *, range_fn *each,
                               void *user);
/* To all ranks that live here. */
ckr_status world_scatter(struct world *, const struct ckr_tensor *,
                         const void *dense);

/* The same range by range, in the whole tensor's order. */
struct shards {
	struct world *w;
	const struct ckr_tensor *t;
	bool cut;                       /* ranks hold different elements */
	struct sharding sharding;       /* if it is cut */
	uint64_t nelem;                 /* of the whole */
	uint64_t run;                   /* runs before this one are done */
	char **local;                   /* [count]: shards without gaps */
	bool in_host;                   /* elements go to a host block */
	bool held;                      /* ranges have elements of ranks here
	                                 * alone; the caller may set this */
	ckr_status status;              /* of in_host */
};

/* Start with a tensor of program[0].  put: shards_put will write elements. */
ckr_status shards_begin(struct shards *, struct world *,
                        const struct ckr_tensor *, bool put);
/* The next range, from *at on, that begins with an element of a rank here; at
 * most `most` elements; false: there is none. */
bool shards_next(struct shards *, uint64_t most, uint64_t *at, uint64_t *n);
/* Elements at .. at + n - 1 of the whole. */
void shards_put(struct shards *, uint64_t at, uint64_t n, const void *);
/* Memory for all elements of a tensor that is not cut, which shards_put takes
 * from there as well; NULL: no rank here has it. */
char *shards_memory(const struct shards *);
/* done: they become the tensor's value. */
ckr_status shards_end(struct shards *, bool done);

/* ---- inputs.c ---- */

/* Note that an input was set; CKR_EARG, with their names, if inputs, labels
 * among them, were never set. */
void world_mark_input(struct world *, const struct ckr_tensor *);
ckr_status world_need_inputs(struct world *, bool labels);
/* Copy each rank's part of the inputs to where its kernels read them; only:
 * [nshared], which ones; NULL: all. */
ckr_status world_scatter_inputs(struct world *, const unsigned char *only);

/* ---- transfers.c ---- */

/* The instructions that follow are those of a turn of a stage that lives here.
 */
void world_begin_turn(struct world *, struct loaded_program *,
                      const struct ckr_turn *);
/* Updates of stages follow, in training step `step`: begin to receive what
 * comes before them. */
ckr_status world_begin_updates(struct world *, uint64_t step);
/* Wait for messages between stages that have begun, by NCCL. */
ckr_status world_finish_messages(struct world *);
/* Begin the transfer of instruction i, in training step `step`; end transfers
 * that end with it. */
ckr_status world_begin_transfer(struct world *, const struct loaded_program *,
                                uint32_t i, uint64_t step);
ckr_status world_end_transfers(struct world *, uint32_t i);
/* Whether a step moves values between ranks. */
bool world_exchanges(const struct ckr_program *);
/* End all transfers of host memory. */
ckr_status world_finish_offloads(struct world *);
/* End all transfers between ranks, before processes communicate about anything
 * else. */
ckr_status world_finish_exchanges(struct world *);
/* Forget them, after a step that failed. */
void world_drop_transfers(struct world *);

/* ---- agree.c: between processes.  All make all calls; in a run of one they do
 * nothing ---- */

/* Takes the outcome in this process; returns the first failure of any. */
ckr_status world_agree(struct world *, ckr_status, const char *what);
/* *any: whether `here` is true in any process; step: steps done, for
 * messages. */
ckr_status world_any(struct world *, bool here, uint64_t step, bool *any);
/* Whether this process is the first, which prints and writes files. */
bool world_is_first(const struct world *);
/* n bytes of the first process, to all. */
ckr_status world_broadcast(struct world *, void *, uint64_t n,
                           const struct pg_task *);

#endif
