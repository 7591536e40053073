/* Room model: internals of a context, shared by the files of the room.
 *
 * in      a compiled library (ckr_abi.h), weights, inputs, settings of steps
 * out     the functions of ckr.h
 * unaware of data sets and of command lines
 */
#ifndef RUNTIME_MODEL_RT_H
#define RUNTIME_MODEL_RT_H

#include "runtime/file/array.h"
#include "runtime/ckr_abi.h"
#include "runtime/device/device.h"
#include "runtime/base/cpu_monitor.h"
#include "runtime/base/dtype.h"
#include "runtime/base/err.h"
#include "runtime/base/mem.h"
#include "runtime/ranks/sharding.h"
#include "runtime/support/now.h"
#include "runtime/support/loss_formula.h"

/* The finite check of a step, and what rolling the step back restores. */
struct finite_check {
	enum ckr_on_nan mode;           /* mode of this step */
	bool off;                       /* nothing is checked */
	uint32_t *saved;                /* tensors written before the loss is
	                                 * known */
	uint32_t nsaved;
	unsigned char *snapshot;        /* their values when the step began,
	                                 * rank by rank */
	uint64_t nbytes;                /* bytes of one rank's snapshot */
	/* results of this step: */
	bool nonfinite;                 /* a loss or gradient is not finite */
	bool overflow;                  /* ... a gradient, and a smaller loss
	                                 * scale may help */
};

/* The loss scale; see scale.c. */
struct loss_scale {
	double value;                   /* next step's scale, by the rule */
	uint64_t good;                  /* good steps since it changed */
	/* settings of this step: */
	double fixed;                   /* constant scale; 0: by the rule */
	uint64_t interval;              /* good steps until the scale doubles */
	bool again;                     /* repeat a step that overflows */
};

/* The norm of all gradients of the last step. */
struct grad_norm {
	const struct ckr_tensor *tensor;        /* NULL: there is none */
	bool wanted;                    /* compute it without clipping, too */
	double value;                   /* NaN: the step had none */
};

/* The best validation of a run. */
struct best_loss {
	double loss;                    /* lowest loss; infinity: none yet */
	uint64_t worse;                 /* validations since, none lower */
};

/* Sums over the batches of a data set. */
struct score_sums {
	double batches;
	double term[FORMULA_TERMS];       /* values of library.term */
	bool labels, nats;              /* which sums of metrics are valid: */
	double counted, correct, entropy;       /* labels */
	double loss, weight;            /* of loss times weight, and weight */
	double last[2];                 /* these two of the last batch */
};

/* The first failure of this process in a step, kept until all processes agree
 * on it. */
struct deferred_error {
	ckr_status status;
	uint64_t order;                 /* instructions of the step before it */
	struct err err;
};

/* The ranks of the run: world rank = replica * tp + rank of the replica. */
struct world {
	uint32_t tp, dp;                /* ranks of a replica; replicas */
	uint32_t first, count;          /* world ranks of this process */
};

/* A program in memory: arenas and operands of the ranks that live here. */
struct loaded_program {
	const struct ckr_program *p;
	struct block *arena;            /* [world.count] */
	void ***ptr;                    /* [world.count]: addresses of p->arg */
	bool shares_arena;              /* the arena is another program's */
};

/* The count passes; see count.c. */
struct count {
	int npass, pass;                /* number of passes; the one that runs,
	                                 * from 1, or 0 */
	unsigned char *input;           /* [nshared]: 1: a pass reads it */
	uint64_t *hash;                 /* [micro-batches]: of these inputs */
};

/* The part of a micro-batch that is enqueued at once: the instructions of a
 * count pass; all instructions of a micro-batch other than the last; of the
 * last one those before the updates; the updates. */
enum step_segment { SEGMENT_COUNT, SEGMENT_EARLIER, SEGMENT_LAST,
                    SEGMENT_UPDATES, SEGMENTS };

/* Inputs of a micro-batch on their way to a GPU. */
struct staging_buffer {
	char *at;                       /* host memory */
	void *copied;                   /* event: the GPU has copied them */
};

/* A step that was begun and has not ended: see async_step.c. */
struct inflight_step {
	struct ckr_hyper hyper;
	ckr_status status;              /* outcome of the host's work */
	struct err err;
	double loss;
	/* of an asynchronous step: */
	bool is_async;                  /* the following fields are used */
	bool queued;                    /* it is enqueued on the device */
	bool staged;                    /* all inputs are in `staging` */
	struct staging_buffer *staging;
	void *finished;                 /* event */
	/* host memory that the device writes before `finished` */
	struct ckr_env *env;            /* [micro-batches]: sent to kernels */
	uint64_t *losses;               /* [micro-batches], of the loss's
	                                 * type */
	struct ckr_env *found;          /* [2]: what kernels had found before
	                                 * the updates, and at the end */
	float *norm;
	unsigned char *saved;           /* as finite_check.snapshot */
};

enum { MAX_INFLIGHT = 2, STAGING_BUFFERS = 2 };

struct async_state {
	bool possible;                  /* steps of the plan can be enqueued */
	bool warm;                      /* one has run synchronously */
	bool graphs;                    /* segments are launched as graphs */
	void *graph[SEGMENTS];          /* the device's; NULL: not yet */
	bool inputs_placed;             /* inputs lie where kernels read them */
	uint32_t inputs_end;            /* no instruction reads inputs from
	                                 * this one on */
	void *read;                     /* event: inputs have been read */
	struct staging_buffer staging[STAGING_BUFFERS];
	struct inflight_step inflight[MAX_INFLIGHT];
	uint32_t next_staging;
	uint32_t first, count;          /* of inflight: step k is at index
	                                 * k % MAX_INFLIGHT */
};

struct ckr_ctx {
	struct err err;
	char *path;                     /* the library's file */
	void *dl;                       /* its handle */
	const struct ckr_library *lib;
	bool ready;                     /* ckr_open succeeded */

	struct world world;
	struct device *device;          /* with all memory of the model */
	struct ckr_env *device_env;     /* [world.count]: the environment in
	                                 * GPU memory; NULL: on the host */
	struct async_state async;
	struct process_group *team;     /* NULL: all ranks live here */
	struct nccl_transport *nccl;    /* between GPUs; NULL: there are none */
	struct transfers *transfers;    /* between ranks */
	struct deferred_error deferred;
	struct block *resident;         /* [world.count] */
	uint64_t common[2];             /* byte range of the resident block that
	                                 * a replica's first rank here has for
	                                 * all: constants and inputs */
	bool *input_set;                /* [nshared] */
	void **whole;                   /* [nshared]: inputs of all replicas;
	                                 * NULL: the tensor is the whole */
	struct loaded_program plan;     /* program[0] */
	struct loaded_program forward;  /* program[2], in the plan's arena */
	uint64_t peak;                  /* bytes, of any process */
	uint64_t rss_before;            /* process's bytes before opening */

	struct cpu_monitor *cpu_monitor;        /* NULL: not monitored */
	struct ckr_env env;
	struct count count;
	struct finite_check finite;
	struct grad_norm norm;
	struct loss_scale scale;
	struct score_sums score;
	struct best_loss best;
	uint64_t step;                  /* steps done */
	uint64_t skipped;               /* steps done without an update */
	uint64_t samples;               /* samples that steps consumed */
	uint64_t per_step;              /* samples of a step; 0: not counted */
	bool uncounted;                 /* samples is step * per_step */
	bool copied;                    /* 16-bit copies equal the parameters */
	bool evaluated;                 /* `forward` has run */
	const struct loaded_program *outputs;   /* program whose outputs are
	                                         * valid; NULL: none */
	struct err unread;              /* unused tensors of the last file */
	struct ckr_param_group *group;  /* [nshared]; NULL: all are alike */
	unsigned char *left;            /* [nshared]: weights that the last file
	                                 * of weights lacks; NULL: none */

	ckr_feed_fn *feed;
	void *feed_user;
	bool feeding;                   /* feed is being called */

	struct grads *grads;            /* to write in the next step; NULL */
	struct trace *trace;            /* NULL: off */
	struct profile *profile;        /* NULL: off */
	bool log, poison;
};

/* ---- access.c ---- */

/* CKR_EARG unless a model is open. */
ckr_status rt_need_ready(ckr_ctx *);
/* CKR_ENOMEM, in words. */
ckr_status rt_no_memory(ckr_ctx *);
/* CKR_EARG, with their names, if inputs, labels among them, were never set. */
ckr_status rt_need_inputs(ckr_ctx *, bool labels);

/* ---- tensor.c ---- */

/* Whether it is a 16-bit copy of a parameter, which files do not hold. */
bool rt_is_copy(const struct ckr_tensor *);
/* Whether ckr.h shows it to users. */
bool rt_is_public(const struct ckr_tensor *);
const struct ckr_tensor *rt_find(const ckr_ctx *, const char *name,
                                 uint32_t *index);
/* Whether files of weights hold it. */
bool rt_is_weight(const struct ckr_tensor *);
/* Copy a tensor's elements to or from row-major order without gaps. */
void rt_pack(const struct ckr_tensor *, const void *tensor, void *dense);
void rt_unpack(const struct ckr_tensor *, void *tensor, const void *dense);
uint64_t rt_nelem(const struct ckr_tensor *);
uint64_t rt_nbytes(const struct ckr_tensor *);
bool rt_is_dense(const struct ckr_tensor *);
/* Whether it is sharded over the ranks of a replica or over replicas; how. */
bool rt_is_sharded(const struct ckr_tensor *);
struct sharding rt_sharding(const ckr_ctx *, const struct ckr_tensor *);
/* The range of bytes that a tensor's elements lie in, from its block's start.
 * Views have gaps, so the range may be larger than the elements. */
void rt_reach(const struct ckr_tensor *, int64_t *from, int64_t *to);
/* The instruction that computes tensor i, or begins its transfer; -1: none. */
int32_t rt_made(const struct ckr_program *, uint32_t i);
/* [ninstr]: live bytes of the arena in each instruction, by the plan.  Caller
 * frees; NULL: no memory. */
uint64_t *rt_live_bytes(const struct ckr_program *);

/* Whether a program's tables agree with themselves and the library. */
bool rt_is_sane(const struct ckr_library *, const struct ckr_program *);

/* Settings of the parameter that instruction i updates. */
struct ckr_param_group rt_group(const ckr_ctx *, const struct ckr_program *,
                          uint32_t i);

/* ---- device_env.c ---- */

/* Open the device that the library is for. */
ckr_status rt_open_device(ckr_ctx *);
/* Create and free the environments in device memory; allocate memory first. */
ckr_status rt_open_env(ckr_ctx *);
void rt_close_env(ckr_ctx *);
/* Copy the environment to the GPU, before a micro-batch. */
ckr_status rt_send_env(ckr_ctx *);
/* Whether kernels have found a number that is not finite; resets that. */
bool rt_found_nonfinite(ckr_ctx *);
/* The element at an address in device memory, of the tensor's type. */
double rt_number(ckr_ctx *, const struct ckr_tensor *, const void *at);
/* As rt_pack and rt_unpack, for a tensor in device memory. */
ckr_status rt_pull(ckr_ctx *, const struct ckr_tensor *, const void *tensor,
                   void *dense);
ckr_status rt_push(ckr_ctx *, const struct ckr_tensor *, void *tensor,
                   const void *dense);

/* Before a step: make the 16-bit copies of parameters.  Updates keep them; this
 * is for parameters that something else has written. */
ckr_status rt_make_copies(ckr_ctx *);

/* ---- local_ranks.c ---- */

/* Loop over the ranks that live here; rank r is world rank world.first + r. */
#define FOR_RANKS(r, c) for (uint32_t r = 0; r < (c)->world.count; r++)

/* The number in its replica of the rank at a place. */
static inline uint32_t
rt_rank(const ckr_ctx *c, uint32_t place)
{
	return (c->world.first + place) % c->world.tp;
}

static inline uint32_t
rt_replica(const ckr_ctx *c, uint32_t place)
{
	return (c->world.first + place) / c->world.tp;
}

/* Set the environment to a rank here. */
void rt_select_rank(ckr_ctx *, uint32_t rank);
/* Address of a program's tensor on a rank here. */
void *rt_at(const ckr_ctx *, const struct loaded_program *, uint32_t rank,
            const struct ckr_tensor *);
/* Allocate arenas and set operands for all ranks here; paint and at_end as for
 * block_map.  To be unloaded after a failure too. */
ckr_status rt_load_program(ckr_ctx *, struct loaded_program *,
                           const struct ckr_program *, bool paint, bool at_end);
/* The same in another program's arena, to run between that one's steps. */
ckr_status rt_load_in_arena(ckr_ctx *, struct loaded_program *,
                            const struct ckr_program *,
                            const struct loaded_program *other);
/* Set operands again, after blocks have moved; false: no memory. */
bool rt_set_operands(const ckr_ctx *, struct loaded_program *);
void rt_unload_program(const ckr_ctx *, struct loaded_program *);
/* The whole tensor without gaps, as a single rank would have it. */
struct ckr_tensor rt_whole(const ckr_ctx *, const struct ckr_tensor *);
/* Allocate memory for the inputs of all replicas; copy each rank's part of them
 * to where its kernels read it. */
ckr_status rt_gather_inputs(ckr_ctx *);
ckr_status rt_scatter_inputs(ckr_ctx *);
/* Memory of a whole input, unless kernels read it there; else NULL. */
void *rt_input_memory(const ckr_ctx *, const struct ckr_tensor *);
/* Copy the whole tensor's elements from, or to, all ranks. */
ckr_status rt_gather_whole(ckr_ctx *, const struct loaded_program *,
                           const struct ckr_tensor *, void *dense);
ckr_status rt_scatter_whole(ckr_ctx *, const struct ckr_tensor *,
                            const void *dense);
/* *from: the whole tensor; *copy: NULL, or memory of *from that the caller
 * frees. */
ckr_status rt_view_whole(ckr_ctx *, const struct loaded_program *,
                         const struct ckr_tensor *, const void **from,
                         void **copy);

/* Begin the transfer of instruction i; end transfers that end with it. */
ckr_status rt_begin_transfer(ckr_ctx *, const struct loaded_program *,
                             uint32_t i);
ckr_status rt_end_transfers(ckr_ctx *, uint32_t i);
/* End all transfers, before processes communicate about anything else. */
ckr_status rt_finish_transfers(ckr_ctx *);

/* ---- run_steps.c ---- */

/* Called after each instruction that has run. */
struct instr_hook {
	ckr_status (*after)(void *user, uint32_t i);
	void *user;
};

/* Check settings and make the environment ready for a training step. */
ckr_status rt_prepare(ckr_ctx *, const struct ckr_hyper *);
/* Run instruction i of a program, on all ranks here. */
ckr_status rt_run_one(ckr_ctx *, const struct loaded_program *, uint32_t i);
/* The error of a kernel that met bad data, from c->env. */
ckr_status rt_fault(ckr_ctx *, const struct ckr_instr *);
/* Whether all kernels before instruction i could be launched. */
ckr_status rt_check_launches(ckr_ctx *, uint32_t i);
/* The error of bad data that kernels of a GPU met during updates. */
ckr_status rt_fault_in_updates(ckr_ctx *, const struct ckr_env *found);
/* Before instruction i: whether kernels of a GPU have found bad data. */
ckr_status rt_check_faults(ckr_ctx *, const struct loaded_program *,
                           uint32_t i);
/* The instruction after which all outputs and the loss are computed, though
 * perhaps still being transferred; -1: there are none. */
int32_t rt_last_output(const struct ckr_program *);
/* In a run of several processes: keep the error until all agree on it, and
 * return CKR_OK. */
ckr_status rt_defer_error(ckr_ctx *, ckr_status, uint32_t i);
/* The loss of a step from the sum over its micro-batches; store a loss in the
 * loss tensor. */
double rt_loss(const ckr_ctx *, double sum);
void rt_show_loss(ckr_ctx *, const struct loaded_program *, double loss);
/* The loss, NaN if there is none. */
double rt_scalar(ckr_ctx *, const struct loaded_program *);
/* Run a program without updates up to instruction `end`, on the inputs set. */
ckr_status rt_run_forward(ckr_ctx *, const struct loaded_program *, int32_t end,
                          double *loss);
/* Run all micro-batches of one training step of a program.  After CKR_ENAN
 * parameters, state and buffers are what they were. */
ckr_status rt_run(ckr_ctx *, const struct loaded_program *,
                  const struct instr_hook *, double *loss);

/* ---- count.c ---- */

ckr_status count_open(ckr_ctx *);
void count_close(ckr_ctx *);
ckr_status count_run_passes(ckr_ctx *, const struct loaded_program *);
/* Whether the step or the count pass that runs now reads input i. */
bool count_wants(const ckr_ctx *, uint32_t i);

/* Call `feed` for a micro-batch; copy its inputs to where kernels read them. */
ckr_status rt_feed(ckr_ctx *, uint32_t micro);
ckr_status rt_begin_micro(ckr_ctx *, const struct loaded_program *);

/* ---- async_step.c ---- */

ckr_status async_open(ckr_ctx *);
void async_close(ckr_ctx *);
/* Discard recorded graphs, because an argument of kernels has changed. */
void async_drop_graphs(ckr_ctx *);
/* Whether the device runs a step. */
bool async_is_busy(const ckr_ctx *);
/* Enqueue the step that the environment is prepared for.  fresh: with the
 * inputs set now, not with those staged before.  A failure is kept in the
 * step. */
void async_enqueue(ckr_ctx *, struct inflight_step *, bool fresh);
/* Enqueue again a step that was rolled back, unless it failed. */
ckr_status async_requeue(ckr_ctx *, struct inflight_step *);
/* Undo all enqueued steps; this one is the first. */
void async_roll_back(ckr_ctx *, struct inflight_step *);
void async_restore_inputs(ckr_ctx *, const struct inflight_step *);

/* ---- step.c ---- */

/* CKR_EARG unless a model is open and no step is under way. */
ckr_status rt_need_quiet(ckr_ctx *);
/* Count a step that has run or was skipped, and finish work that waited for it.
 * Returns the given status, or the failure of that work. */
ckr_status rt_done(ckr_ctx *, ckr_status);

/* ---- eval_batches.c ---- */

/* Whether the formula of the loss is valid. */
bool score_is_sane(const struct ckr_library *);

/* ---- finite_check.c ---- */

/* The first instruction after which a step cannot be rolled back: the first
 * update, or the one after the loss. */
uint32_t rt_commit_step(const struct ckr_program *);

ckr_status finite_open(ckr_ctx *);
void finite_close(ckr_ctx *);
/* Save before a step; restore after one that failed or is skipped. */
void finite_save(ckr_ctx *);
void finite_roll_back(ckr_ctx *);
/* The same without waiting for the device: `copy` has finite.nbytes. */
void finite_save_to(ckr_ctx *, unsigned char *copy);
void finite_restore(ckr_ctx *, unsigned char *copy);
/* Enqueue after instruction i the checks of finite_check_loss and
 * finite_check_grads. */
void finite_enqueue(ckr_ctx *, const struct loaded_program *, uint32_t i);
/* CKR_ENAN if the loss, known after instruction i, or a gradient that is ready
 * before it is not finite, and the mode asks for the check. */
ckr_status finite_check_loss(ckr_ctx *, const struct loaded_program *,
                             uint32_t i);
ckr_status finite_check_grads(ckr_ctx *, const struct loaded_program *,
                              uint32_t i);

/* ---- scale.c ---- */

enum { SCALE_FIRST = 65536 };

/* Whether the rule can reach this scale. */
bool scale_is_possible(uint64_t);
/* CKR_EARG unless a step can use this scale; 0: the rule's. */
ckr_status scale_check(ckr_ctx *, double);
/* Set the environment of a step; hyper NULL: defaults. */
void scale_prepare(ckr_ctx *, const struct ckr_hyper *);
bool scale_can_fall(const ckr_ctx *);
/* After a step: whether it overflowed and is to be repeated; halves the scale
 * if so. */
bool scale_try_again(ckr_ctx *);
/* Apply the rule after a step; updated: the step was not skipped. */
void scale_after(ckr_ctx *, bool updated);

/* ---- grads.c: the norm ---- */

void norm_open(ckr_ctx *);
/* env.clip for this setting. */
float norm_clip(const ckr_ctx *, double clip);
/* Called after each instruction of a program. */
void norm_after(ckr_ctx *, const struct loaded_program *, uint32_t i);

/* ---- trace.c ---- */

void trace_step_begin(struct trace *, const struct ckr_env *);
void trace_op(struct trace *, uint32_t i, double from, double to);
/* Record that the process waited for the transfer of instruction i, in the
 * trace and the profile. */
void trace_wait(ckr_ctx *, uint32_t i, double from, double to);
ckr_status trace_step_end(ckr_ctx *);
ckr_status trace_close(ckr_ctx *);
/* End tracing without writing a file. */
void trace_drop(ckr_ctx *);
const char *trace_phase(int32_t phase);
/* Bytes that a rank sends in instruction i; 0 if there is one rank. */
double trace_sent(const struct ckr_env *, const struct ckr_program *,
                  uint32_t i);
/* Whether a later instruction ends the transfer of instruction i. */
bool trace_is_apart(const struct ckr_program *, uint32_t i);

/* ---- profile.c ---- */

void profile_op(struct profile *, uint32_t i, double sec);
void profile_wait(struct profile *, uint32_t i, double sec);
void profile_free(ckr_ctx *);

/* ---- checkpoint.c ---- */

ckr_status rt_load_weights(ckr_ctx *, const char *path);
/* The entry of a file for a tensor under this name. */
struct st_entry rt_entry(const ckr_ctx *, const struct ckr_tensor *,
                         const char *name);

/* ---- grads.c ---- */

/* Called after instruction i of the last micro-batch. */
ckr_status grads_after(ckr_ctx *, const struct loaded_program *, uint32_t i);
ckr_status grads_finish(ckr_ctx *);
void grads_free(ckr_ctx *);

/* ---- infile.c ---- */

/* Record for ckr_unused_tensors the tensors of a file that the model does not
 * use. */
void rt_note_unread(ckr_ctx *, const struct array_file *);

#endif
