/* Internals of a context, shared by the files of libckr. */
#ifndef RUNTIME_MODEL_RT_H
#define RUNTIME_MODEL_RT_H

#include "runtime/file/array.h"
#include "runtime/ckr_abi.h"
#include "runtime/blas/conv.h"
#include "runtime/device/device.h"
#include "runtime/base/cpu_monitor.h"
#include "runtime/base/dtype.h"
#include "runtime/base/err.h"
#include "runtime/blas/gemm.h"
#include "runtime/base/mem.h"
#include "runtime/ranks/sharding.h"
#include "runtime/support/now.h"
#include "runtime/support/total.h"

/* Whether the loss and gradients are finite, and what rolling a step back
 * restores. */
struct finite_check {
	enum ckr_on_nan mode;           /* of this step */
	bool off;                       /* nothing is checked */
	uint32_t *saved;                /* tensors written before the loss is
	                                 * known */
	uint32_t nsaved;
	unsigned char *snapshot;        /* of them, as the step began, rank
	                                 * by rank */
	uint64_t nbytes;                /* of one rank's */
	/* found in this step: */
	bool nonfinite;                 /* a loss or gradient is not finite */
	bool overflow;                  /* a gradient, and by the loss scale:
	                                 * a smaller one may help */
};

/* What losses are scaled with; see scale.c. */
struct loss_scale {
	double value;                   /* of the next step, by the rule */
	uint64_t good;                  /* steps in a row since it changed */
	/* of this step: */
	double fixed;                   /* no rule; 0: the rule's */
	uint64_t interval;              /* good steps after which it doubles */
	bool again;                     /* take a step that overflows again */
};

/* The norm of all gradients of the last step. */
struct grad_norm {
	const struct ckr_tensor *tensor;        /* NULL: there is none */
	bool wanted;                    /* without clipping, too */
	double value;                   /* NaN: the step had none */
};

/* Of a run's validations. */
struct best_loss {
	double loss;                    /* the lowest; infinity: none yet */
	uint64_t worse;                 /* how many since were not lower */
};

/* What batches of a data set came to, added up. */
struct score_sums {
	double batches;
	double term[TOTAL_TERMS];       /* of library.term */
	bool labels, nats;              /* metrics tell of: */
	double counted, correct, entropy;       /* labels */
	double loss, weight;            /* times what it weighs; that */
	double last[2];                 /* of the last batch, which they lack */
};

/* The first failure of this process in a step, kept until all agree on it. */
struct deferred_error {
	ckr_status status;
	uint64_t order;                 /* steps of the program before it */
	struct err err;
};

/* Who takes part: world rank = replica * tp + rank of the replica. */
struct world {
	uint32_t tp, dp;                /* ranks of a replica; replicas */
	uint32_t first, count;          /* world ranks of this process */
};

/* A program in memory: what every rank here has of it beside its resident
 * block. */
struct bound {
	const struct ckr_program *p;
	struct block *arena;            /* [world.count] */
	void ***ptr;                    /* [world.count]: p->arg */
	bool guest;                     /* the arena is another program's */
};

/* See count.c. */
struct count {
	int rounds, round;              /* how many; under way, from 1; or 0 */
	unsigned char *input;           /* [nshared]: they read it */
	uint64_t *hash;                 /* [micro-batches], of such inputs */
};

/* What of a micro-batch is enqueued at a time: the steps of a counting round;
 * all steps of one that is not the last; of the last those up to where updates
 * begin, and the rest. */
enum portion { PORTION_COUNT, PORTION_EARLIER, PORTION_LAST, PORTION_UPDATES,
               PORTIONS };

/* Inputs of a micro-batch on their way to a GPU. */
struct staging_buffer {
	char *at;                       /* on the host */
	void *copied;                   /* event: they have been copied */
};

/* A step that was begun and has not ended: see async_step.c. */
struct inflight_step {
	struct ckr_hyper hyper;
	ckr_status status;              /* of what the host did of it */
	struct err err;
	double loss;
	/* of an asynchronous step: */
	bool is_async;                  /* it is one */
	bool queued;                    /* the device has it now */
	bool staged;                    /* inputs are all in `staging` */
	struct staging_buffer *staging;
	void *finished;                 /* event */
	/* on the host; the device writes them before `finished` */
	struct ckr_env *env;            /* [micro-batches], sent */
	uint64_t *losses;               /* [micro-batches], of the tensor's
	                                 * type */
	struct ckr_env *found;          /* [2]: what kernels had found before
	                                 * updates, and at the end */
	float *norm;
	unsigned char *saved;           /* as finite_check.snapshot */
};

enum { MAX_INFLIGHT = 2, STAGING_BUFFERS = 2 };

struct async_state {
	bool possible;                  /* steps of the plan can be enqueued */
	bool warm;                      /* one has run synchronously */
	bool graphs;                    /* portions are launched as graphs: */
	void *graph[PORTIONS];          /* of the device; NULL: not yet */
	bool inputs_placed;             /* inputs lie where steps read them */
	uint32_t inputs_end;            /* the step from which none reads
	                                 * them */
	void *read;                     /* event: they have been read */
	struct staging_buffer staging[STAGING_BUFFERS];
	struct inflight_step inflight[MAX_INFLIGHT];
	uint32_t next_staging;
	uint32_t first, count;          /* of inflight, counted on and on */
};

struct ckr_ctx {
	struct err err;
	char *path;                     /* of the .so */
	void *dl;
	const struct ckr_library *lib;
	bool ready;                     /* ckr_open succeeded */

	struct world world;
	struct device *device;          /* where all of this lies: */
	struct ckr_env *device_env;     /* [world.count], as kernels of a GPU
	                                 * see it; NULL: on the host */
	struct async_state async;
	struct process_group *team;     /* NULL: all ranks live here */
	struct nccl_transport *nccl;    /* between GPUs; NULL: there are none */
	struct transfers *transfers;    /* between ranks, on their way */
	struct deferred_error deferred;
	struct block *resident;         /* [world.count] */
	uint64_t common[2];             /* bytes of it that ranks of a replica
	                                 * take from its first one here:
	                                 * constants and inputs */
	bool *input_set;                /* [nshared] */
	void **whole;                   /* [nshared]: inputs of all replicas;
	                                 * NULL: where the tensor lies */
	struct bound plan;              /* program[0] */
	struct bound forward;           /* program[2], in the plan's arena */
	uint64_t peak;                  /* bytes, of any process, so far */
	uint64_t rss_before;

	struct gemm gemm;
	struct convs *convs;            /* NULL: none prepared */
	struct cpu_monitor *cpu_monitor;        /* NULL: not monitored */
	struct ckr_env env;
	struct count count;
	struct finite_check finite;
	struct grad_norm norm;
	struct loss_scale scale;
	struct score_sums score;
	struct best_loss best;
	uint64_t step;                  /* steps done */
	uint64_t skipped;               /* of them without an update */
	uint64_t samples;               /* that they have consumed */
	uint64_t per_step;              /* of a step; 0: nobody counts */
	bool uncounted;                 /* they all took as many */
	bool copied;                    /* copies in 16 bits are parameters' */
	bool evaluated;                 /* `forward` has run */
	const struct bound *outputs;    /* whose have values; NULL: no one's */
	struct err unread;              /* of the last file of weights */
	struct ckr_param_group *group;  /* [nshared]; NULL: all are alike */
	unsigned char *left;            /* [nshared]: weights that the last file
	                                 * has left as they were; NULL: none */

	ckr_feed_fn *feed;
	void *feed_user;
	bool feeding;                   /* it is being called */

	struct grads *grads;            /* waiting for the next step; NULL */
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

/* A parameter in 16 bits, which no file holds. */
bool rt_is_copy(const struct ckr_tensor *);
/* What the world outside may see. */
bool rt_is_public(const struct ckr_tensor *);
const struct ckr_tensor *rt_find(const ckr_ctx *, const char *name,
                                 uint32_t *index);
/* Whether files of weights hold it. */
bool rt_is_weight(const struct ckr_tensor *);
/* Elements in row-major order without gaps, out of and into a tensor. */
void rt_pack(const struct ckr_tensor *, const void *tensor, void *dense);
void rt_unpack(const struct ckr_tensor *, void *tensor, const void *dense);
uint64_t rt_nelem(const struct ckr_tensor *);
uint64_t rt_nbytes(const struct ckr_tensor *);
bool rt_is_dense(const struct ckr_tensor *);
/* Over the ranks of a replica, or over replicas; and how, if it is. */
bool rt_is_sharded(const struct ckr_tensor *);
struct sharding rt_sharding(const ckr_ctx *, const struct ckr_tensor *);
/* First byte and end of the bytes a tensor reaches, in its block: views have
 * gaps, so this is more than its elements. */
void rt_reach(const struct ckr_tensor *, int64_t *from, int64_t *to);
/* The step that makes tensor i, or begins to; -1: it is there from the
 * start. */
int32_t rt_made(const struct ckr_program *, uint32_t i);
/* Of the arena during each step by the plan, the caller's; NULL: no memory. */
uint64_t *rt_live_bytes(const struct ckr_program *);

/* Whether a program's tables agree with themselves and the library. */
bool rt_is_sane(const struct ckr_library *, const struct ckr_program *);

/* What the parameter that step i updates has of its own. */
struct ckr_param_group rt_group(const ckr_ctx *, const struct ckr_program *,
                          uint32_t i);

/* ---- device.c ---- */

/* Take the device that the library is for. */
ckr_status rt_open_device(ckr_ctx *);
/* The device's environments, once memory is there; and without. */
ckr_status rt_open_env(ckr_ctx *);
void rt_close_env(ckr_ctx *);
/* What kernels of a GPU read of the environment, before a micro-batch. */
ckr_status rt_send_env(ckr_ctx *);
/* Whether kernels have found what is not finite, which is forgotten then. */
bool rt_found_nonfinite(ckr_ctx *);
/* The element there, of the tensor's type. */
double rt_number(ckr_ctx *, const struct ckr_tensor *, const void *at);
/* A tensor's elements in row-major order without gaps, out of and into memory
 * of the device. */
ckr_status rt_pull(ckr_ctx *, const struct ckr_tensor *, const void *tensor,
                   void *dense);
ckr_status rt_push(ckr_ctx *, const struct ckr_tensor *, void *tensor,
                   const void *dense);

/* ---- device.c: copies ---- */

/* Before a step: make copies of parameters in 16 bits, which updates
 * keep, if something else has written parameters. */
ckr_status rt_make_copies(ckr_ctx *);

/* ---- ranks.c ---- */

/* Ranks that live here, by place: world rank world.first + r. */
#define FOR_RANKS(r, c) for (uint32_t r = 0; r < (c)->world.count; r++)

/* Of the one at a place: its number in its replica. */
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

/* Make the environment that of a rank here. */
void rt_select_rank(ckr_ctx *, uint32_t rank);
/* Where a tensor of a program lies on a rank here. */
void *rt_at(const ckr_ctx *, const struct bound *, uint32_t rank,
            const struct ckr_tensor *);
/* Arenas and pointers of operands for all ranks; after a failure too there is
 * something to unbind.  As block_map. */
ckr_status rt_bind(ckr_ctx *, struct bound *, const struct ckr_program *,
                   bool paint, bool at_end);
/* The same of a program that runs between the other's steps, in its arena. */
ckr_status rt_bind_guest(ckr_ctx *, struct bound *, const struct ckr_program *,
                         const struct bound *other);
/* Pointers of operands anew, after blocks have moved; false: no memory. */
bool rt_point(const ckr_ctx *, struct bound *);
void rt_unbind(const ckr_ctx *, struct bound *);
/* The tensor as it is on one rank alone: whole, without gaps. */
struct ckr_tensor rt_whole(const ckr_ctx *, const struct ckr_tensor *);
/* Inputs of all replicas: memory for them, and what of it a step reads to where
 * it reads that. */
ckr_status rt_gather_inputs(ckr_ctx *);
ckr_status rt_scatter_inputs(ckr_ctx *);
/* Where the whole of an input lies if not where steps read it; else NULL. */
void *rt_input_memory(const ckr_ctx *, const struct ckr_tensor *);
/* The whole tensor's elements, out of and into all ranks. */
ckr_status rt_gather_whole(ckr_ctx *, const struct bound *,
                           const struct ckr_tensor *, void *dense);
ckr_status rt_scatter_whole(ckr_ctx *, const struct ckr_tensor *,
                            const void *dense);
/* The whole tensor: where it lies, or a copy which *copy then is. */
ckr_status rt_view_whole(ckr_ctx *, const struct bound *,
                         const struct ckr_tensor *, const void **from,
                         void **copy);
/* ---- ranks.c: what steps move ---- */

/* What step i of a program begins; and, when it has run, what ends. */
ckr_status rt_begin_transfer(ckr_ctx *, const struct bound *, uint32_t i);
ckr_status rt_end_transfers(ckr_ctx *, uint32_t i);
/* All that has begun: before processes talk of anything else. */
ckr_status rt_finish_transfers(ckr_ctx *);

/* ---- run.c ---- */

/* Told before (step < nstep) and after each step that has run. */
struct step_hook {
	ckr_status (*after)(void *user, uint32_t step);
	void *user;
};

/* Check settings and make the environment ready for a training step. */
ckr_status rt_prepare(ckr_ctx *, const struct ckr_hyper *);
/* Step i of a program, on all ranks here. */
ckr_status rt_run_one(ckr_ctx *, const struct bound *, uint32_t i);
/* The error of a kernel that met bad data, from c->env. */
ckr_status rt_fault(ckr_ctx *, const struct ckr_instr *);
/* Whether all kernels before step i could be launched. */
ckr_status rt_check_launches(ckr_ctx *, uint32_t i);
/* The error of bad data that kernels of a GPU met while they updated. */
ckr_status rt_fault_in_updates(ckr_ctx *, const struct ckr_env *found);
/* Before step i: whether kernels of a GPU have found bad data. */
ckr_status rt_check_faults(ckr_ctx *, const struct bound *, uint32_t i);
/* The step after which all outputs and the loss are there, or on their way
 * between ranks; -1: there are none. */
int32_t rt_last_output(const struct ckr_program *);
/* Of several processes: keep the error until all agree on it, and go on. */
ckr_status rt_defer_error(ckr_ctx *, ckr_status, uint32_t i);
/* The loss of a step whose micro-batches' losses have this sum; as output. */
double rt_loss(const ckr_ctx *, double sum);
void rt_show_loss(ckr_ctx *, const struct bound *, double loss);
/* The loss, NaN if there is none. */
double rt_scalar(ckr_ctx *, const struct bound *);
/* Run a program without updates up to step `end`, with the inputs as set. */
ckr_status rt_run_forward(ckr_ctx *, const struct bound *, int32_t end,
                          double *loss);
/* Run all micro-batches of one training step of a program.  After CKR_ENAN
 * parameters, state and buffers are what they were. */
ckr_status rt_run(ckr_ctx *, const struct bound *, const struct step_hook *,
                  double *loss);

/* ---- count.c ---- */

ckr_status count_open(ckr_ctx *);
void count_close(ckr_ctx *);
ckr_status count_run_rounds(ckr_ctx *, const struct bound *);
/* Whether what runs now, the step or a round, reads input i. */
bool count_wants(const ckr_ctx *, uint32_t i);

/* Have inputs set; and put to where steps of the micro-batch read them. */
ckr_status rt_feed(ckr_ctx *, uint32_t micro);
ckr_status rt_begin_micro(ckr_ctx *, const struct bound *);

/* ---- async_step.c ---- */

ckr_status async_open(ckr_ctx *);
void async_close(ckr_ctx *);
/* Record portions anew: something that kernels are launched with has
 * changed. */
void async_drop_graphs(ckr_ctx *);
/* Whether the device is at work on a step. */
bool async_is_busy(const ckr_ctx *);
/* Enqueue the step that the environment is ready for; fresh: with inputs as
 * they are set now, not with those staged before.  A failure is kept in the
 * step. */
void async_enqueue(ckr_ctx *, struct inflight_step *, bool fresh);
/* The same of one that was begun and rolled back, unless it failed. */
ckr_status async_requeue(ckr_ctx *, struct inflight_step *);
/* Undo all enqueued steps, of which this is the first. */
void async_roll_back(ckr_ctx *, struct inflight_step *);
void async_restore_inputs(ckr_ctx *, const struct inflight_step *);

/* ---- step.c ---- */

/* CKR_EARG unless a model is open and no step is under way. */
ckr_status rt_need_quiet(ckr_ctx *);
/* Count a step that has run, or was skipped, and finish what waited for it.
 * Passes on how it ended. */
ckr_status rt_done(ckr_ctx *, ckr_status);

/* ---- eval.c ---- */

/* Whether the formula of the loss agrees with itself. */
bool score_is_sane(const struct ckr_library *);

/* ---- finite_check.c ---- */

/* The step before which nothing may be lost: the first update, or the one
 * after the loss. */
uint32_t rt_commit_step(const struct ckr_program *);

ckr_status finite_open(ckr_ctx *);
void finite_close(ckr_ctx *);
/* Before a step, and after one that failed or is skipped. */
void finite_save(ckr_ctx *);
void finite_roll_back(ckr_ctx *);
/* The same without waiting for the device: `copy` has finite.nbytes. */
void finite_save_to(ckr_ctx *, unsigned char *copy);
void finite_restore(ckr_ctx *, unsigned char *copy);
/* Enqueue behind step i the checks of finite_check_loss and
 * finite_check_grads. */
void finite_enqueue(ckr_ctx *, const struct bound *, uint32_t i);
/* CKR_ENAN if the loss, known after `step`, or a gradient that waits before
 * `step` for the updates is not finite, where that must be known. */
ckr_status finite_check_loss(ckr_ctx *, const struct bound *, uint32_t step);
ckr_status finite_check_grads(ckr_ctx *, const struct bound *, uint32_t step);

/* ---- scale.c ---- */

enum { SCALE_FIRST = 65536 };

/* Whether the rule comes to this scale. */
bool scale_is_possible(uint64_t);
/* That a step can have this one; 0: by the rule. */
ckr_status scale_check(ckr_ctx *, double);
/* The environment of a step; hyper NULL: defaults. */
void scale_prepare(ckr_ctx *, const struct ckr_hyper *);
bool scale_can_fall(const ckr_ctx *);
/* After a step: whether it overflowed and is to be taken again at half the
 * scale, which is set then. */
bool scale_try_again(ckr_ctx *);
/* The rule, after a step that counts; updated: it was not skipped. */
void scale_after(ckr_ctx *, bool updated);

/* ---- grads.c: the norm ---- */

void norm_open(ckr_ctx *);
/* What kernels are to take for this clip. */
float norm_clip(const ckr_ctx *, double clip);
/* Called after each step of a program. */
void norm_after(ckr_ctx *, const struct bound *, uint32_t step);

/* ---- trace.c ---- */

void trace_step_begin(struct trace *, const struct ckr_env *);
void trace_op(struct trace *, uint32_t step, double from, double to);
/* Waiting for what a step has begun, into a trace and a profile. */
void trace_wait(ckr_ctx *, uint32_t step, double from, double to);
ckr_status trace_step_end(ckr_ctx *);
ckr_status trace_close(ckr_ctx *);
/* Without a file. */
void trace_drop(ckr_ctx *);
const char *trace_phase(int32_t phase);
/* Bytes that step i sends from a rank; one alone has nobody to send to. */
double trace_sent(const struct ckr_env *, const struct ckr_program *,
                  uint32_t i);
/* Whether step i ends what it begins. */
bool trace_is_apart(const struct ckr_program *, uint32_t i);

/* ---- profile.c ---- */

void profile_op(struct profile *, uint32_t step, double sec);
void profile_wait(struct profile *, uint32_t step, double sec);
void profile_free(ckr_ctx *);

/* ---- checkpoint.c ---- */

ckr_status rt_load_weights(ckr_ctx *, const char *path);
/* A tensor under this name in a file. */
struct st_entry rt_entry(const ckr_ctx *, const struct ckr_tensor *,
                         const char *name);

/* ---- grads.c ---- */

/* Called after step `step` of the last micro-batch. */
ckr_status grads_after(ckr_ctx *, const struct bound *, uint32_t step);
ckr_status grads_finish(ckr_ctx *);
void grads_free(ckr_ctx *);

/* ---- infile.c: note for ckr_unused_tensors what the model does not use. */
void rt_note_unread(ckr_ctx *, const struct array_file *);

#endif
