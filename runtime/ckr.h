/* libckr: train a model that ckc has compiled.
 *
 * A compiled model is a shared library, MODEL.so, with its weights beside it
 * in MODEL.safetensors.  A ckr_ctx is one such model in memory with its
 * weights, optimizer state and arena.  Training is a loop around ckr_step:
 *
 *	ckr_ctx *m;
 *	struct ckr_hyper h = ckr_hyper_default();
 *	double loss;
 *
 *	if (ckr_open(&m, "model.so", NULL) != CKR_OK)
 *		fprintf(stderr, "%s\n", ckr_error(m));
 *	while (more data) {
 *		ckr_set(m, "x", x, sizeof(x));
 *		ckr_step(m, &h, &loss);
 *	}
 *	ckr_save(m, "run.safetensors");
 *	ckr_close(m);
 *
 * Rules for every call
 *   - It returns a ckr_status; CKR_OK is 0.  After any other status ckr_error()
 *     describes what failed; the text is valid until the next call that fails.
 *   - The library never prints (except with CKR_LOG) and never ends the process
 *     (except in a run of several processes that cannot start because some of
 *     them are missing).
 *   - A context is used by one thread at a time; several contexts may be used
 *     by several threads.  Kernels run on OpenMP threads of their own.
 *   - A call on a model for a GPU leaves that GPU as the current one of the
 *     calling thread.
 *   - These threads wait for each other by spinning, but sleep while other
 *     processes compete for the processors.  OMP_WAIT_POLICY and GOMP_SPINCOUNT
 *     override that.
 *   - All memory is allocated by ckr_open; steps allocate nothing.
 *   - Calls restore the numbers of threads of OpenMP and OpenBLAS for the
 *     caller's own code.
 *   - `name` is the name in the ONNX file: of an initializer, an input or an
 *     output.  Optimizer state is called "adamw.m.NAME" and so on: the
 *     optimizer, the state, the parameter.
 *   - Buffers that the caller gives stay the caller's and are read or written
 *     during the call only, unless said otherwise.
 *
 * Environment (read once, by ckr_open)
 *   CKR_LOG=1        report on stderr what is loaded, and its memory
 *   CKR_POISON=1     fill memory with NaN as soon as the plan frees it, and put
 *                    the arena's end at an unmapped page (slow)
 *   CKR_TRACE=FILE   as ckr_trace(ctx, FILE)
 *   CKR_BLAS=NAME    onednn, openblas, own, cublas, ...; as ckr_options.blas
 *   CKR_GPU_LIBRARIES=DIR:...  folders with NVIDIA's libraries, in place of
 *                    those of toolkits and Python packages
 *   CKR_MPI=FILE     module for communication of processes, not ckr_mpi.so
 *   CKR_FILES=HOW    how processes write one file: "name", under a temporary
 *                    name, as on several machines; "first", all by the first
 *                    process, as without a shared file system
 */
#ifndef CKR_H
#define CKR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckr_ctx ckr_ctx;

typedef enum ckr_status {
	CKR_OK,
	CKR_EARG,               /* wrong argument: unknown name, wrong size */
	CKR_EIO,                /* a file cannot be read or written */
	CKR_EFORMAT,            /* a file does not hold what it should */
	CKR_ENOMEM,
	CKR_EDATA,              /* bad data in a kernel: index out of range */
	CKR_EMISMATCH,          /* ckr_check found different bits */
	CKR_EUNSUPPORTED,       /* this model or library cannot do that */
	CKR_ENAN,               /* a number is not finite */
	CKR_ERANK               /* another process of the run is missing */
} ckr_status;

/* ---- opening ---- */

struct ckr_options {
	/* File with the weights; NULL: MODEL.safetensors beside MODEL.so; "":
	 * none, zeros (for ckr_resume). */
	const char *weights;
	/* Matrix products: NULL or "auto" (our own if none is larger than 1
	 * MFLOP or nothing else is installed; else oneDNN, else OpenBLAS),
	 * "onednn", "openblas", "own"; "onednn-bf16": oneDNN, its products of
	 * bf16 even without units for them.  On a GPU
	 * NULL or "auto" (convolutions by cuDNN if installed), "cudnn" (an
	 * error if it is not), "cublas" (products alone). */
	const char *blas;
	/* Threads; 0: as many as OpenMP would use.  Never more than the model
	 * was compiled for. */
	int threads;
	/* Seeds dropout and sampling of data. */
	uint64_t seed;
	/* Ranks of all replicas together; 0: as few as the model was compiled
	 * for.  A model of `ckc --dp` takes every multiple of a replica's. */
	uint32_t ranks;
	/* Seconds that processes wait for another one before they give up;
	 * 0: 600. */
	double comm_timeout;
	/* Share the model of another context: its parameters, buffers,
	 * optimizer state, progress and settings of parameters, and one arena,
	 * as large as the larger library needs.  `so` is the same model
	 * compiled with the same options but for sizes and budget; other
	 * tensors, options or ranks are CKR_EARG (that the graphs compute the
	 * same is the caller's word).  `weights`, `seed` and `ranks` are
	 * ignored.  Contexts that share a model are used by one thread at a
	 * time, as if they were one; a call fails while a step of another one
	 * is in flight.  They may be closed in any order; that ends their
	 * steps.  NULL: the context has a model of its own. */
	ckr_ctx *model_of;
	/* Folder of a file without a name for what `ckc --offload` keeps beside
	 * memory, on the CPU; NULL: /var/tmp. */
	const char *offload_dir;
};

/* Load the compiled model `so` and allocate all memory that it will use. opt
 * may be NULL. *ctx is set in any case unless there is no memory at all (then
 * NULL); after a failure it serves only ckr_error and ckr_close. */
ckr_status ckr_open(ckr_ctx **ctx, const char *so,
                    const struct ckr_options *opt);
/* Frees everything.  ctx may be NULL. */
void ckr_close(ckr_ctx *ctx);
/* Text of the last failure, never NULL; ctx may be NULL. */
const char *ckr_error(const ckr_ctx *ctx);

/* ---- several processes ---- */

/* Under mpirun, srun or torchrun each process is one rank.  All processes make
 * every call on a model in the same order and with the same arguments, from the
 * thread that opened the first model.  A call that fails in one process fails
 * in all, with the message of that one.  A process must close its models before
 * it ends; otherwise the launcher treats its end as a failure, and ends the
 * others.  CKR_ERANK: a process has stopped or did not arrive, or the GPU of
 * this one has failed; only ckr_abort may be called then. */

/* Rank of this process and number of processes; 0 and 1 for a single one. */
uint32_t ckr_rank(const ckr_ctx *ctx);
uint32_t ckr_processes(const ckr_ctx *ctx);
/* Agree on a status of the caller's own (ckr_fail): if one process failed, all
 * fail. */
ckr_status ckr_agree(ckr_ctx *ctx, ckr_status status);
/* *any: whether `here` is true in any process. */
ckr_status ckr_agree_any(ckr_ctx *ctx, bool here, bool *any);
/* Whether this process should report the last failure: of a failure in all
 * processes, one reports. */
bool ckr_is_reporter(const ckr_ctx *ctx);
/* To call before a process ends with a reported failure: ends all others,
 * unless they failed, too. */
void ckr_abort(ckr_ctx *ctx, ckr_status status);

/* ---- what is inside ---- */

struct ckr_info {
	const char *name;       /* belongs to the context */
	const char *dtype;      /* "f32", "i64", "bool", ... */
	const char *kind;       /* "param", "buffer", "constant", "input",
	                         * "state", "grad", "output", "metric",
	                         * "other" */
	bool frozen;            /* a parameter that is not trained */
	bool loss;
	bool shifted;           /* labels that are the tokens themselves: the
	                         * graph shifts them */
	bool label;                     /* an input that nothing but the loss
	                                 * depends on: predictions need none */
	bool index;             /* an input that steps use as an index */
	int rows;               /* of an output of evaluation: 1: rows of each
	                         * sample along its first dim, which depend on
	                         * no other; 0: none; -1: unknown */
	int rank;
	int64_t dim[8];
	size_t nbytes;          /* elements * size */
};

/* The public tensors: parameters, buffers, inputs, optimizer state and outputs,
 * in a fixed order.  CKR_EARG when i is too large. */
ckr_status ckr_tensor(ckr_ctx *ctx, size_t i, struct ckr_info *info);
/* The same by name. */
ckr_status ckr_find(ckr_ctx *ctx, const char *name, struct ckr_info *info);

struct ckr_memory {
	/* per rank, in a sharded model; peak_bytes: the largest of all */
	uint64_t planned_bytes;         /* peak that the compiler planned,
	                                 * including evaluation after the first
	                                 * one */
	uint64_t budget_bytes;          /* 0: no budget */
	uint64_t resident_bytes;        /* parameters, state, inputs, ... */
	uint64_t arena_bytes;           /* activations, gradients, workspace */
	uint64_t peak_bytes;            /* measured: resident + the arena up to
	                                 * the highest byte ever written */
	uint64_t held_bytes;            /* outside the plan: copies of buffers
	                                 * that the forward pass writes, for
	                                 * the rollback of a step */
	uint64_t transfer_bytes;        /* outside the plan: buffers for
	                                 * transfers between processes; 0: a
	                                 * single process */
	/* of all ranks here */
	uint64_t staging_bytes;         /* outside the plan: host memory of
	                                 * ckr_save_async */
	uint64_t grown_bytes;           /* growth of the process's anonymous
	                                 * resident memory since ckr_open began
	                                 * to allocate: includes BLAS, OpenMP
	                                 * and the caller */
};
/* Queries the system: too slow for every step. */
ckr_status ckr_memory(ckr_ctx *ctx, struct ckr_memory *memory);

/* "onednn 2.6.0", "openblas 0.3.21 (SkylakeX, openmp)", "own (avx512)"; on a
 * GPU "cublas", and for convolutions ", convolutions by cudnn 9.19.0", ", 50 of
 * 53 convolutions by ..." or ", im2col convolutions" with the reason; after a
 * step also ", without epilogue ..." or ", without CUDA graphs". */
const char *ckr_blas(const ckr_ctx *ctx);
/* Bytes in host memory (ckc --offload), of all ranks here; the
 * folder of the file that they are in, NULL: pinned memory. */
uint64_t ckr_host_bytes(const ckr_ctx *ctx);
const char *ckr_offload_dir(const ckr_ctx *ctx);
const char *ckr_model_name(const ckr_ctx *ctx);
int ckr_threads(const ckr_ctx *ctx);
/* The number of ranks: replicas (ckc --dp) times the ranks of each (ckc --tp).
 * A single process runs all of them in turn.  Tensors are whole in every call
 * and file; inputs and outputs hold the samples of all replicas, in their
 * order, of one micro-batch. */
uint32_t ckr_ranks(const ckr_ctx *ctx);
uint32_t ckr_replicas(const ckr_ctx *ctx);
/* The float type of lowest precision among the values of a step: "bf16", "f16"
 * or "f32". */
const char *ckr_float_type(const ckr_ctx *ctx);
/* Micro-batches that one step consumes (ckc --grad-accum). */
uint32_t ckr_micro_batches(const ckr_ctx *ctx);
/* A name of ckc --optimizer, such as "adamw" or "none". */
const char *ckr_optimizer(const ckr_ctx *ctx);
/* Whether that optimizer uses a member of struct ckr_hyper, by its name such as
 * "beta1". */
bool ckr_uses_hyper(const ckr_ctx *ctx, const char *name);
/* The number of steps since the initial weights, and how many of them were
 * skipped (CKR_NAN_SKIP, or because gradients overflowed: ckr_loss_scale). */
uint64_t ckr_step_count(const ckr_ctx *ctx);
uint64_t ckr_skipped_count(const ckr_ctx *ctx);
/* Set the number of samples that a step consumes, over all micro-batches and
 * replicas.  The count of consumed samples is part of checkpoints, so that a
 * run resumed with another batch size continues with unseen samples.  A
 * checkpoint without the count is taken to have had this number in each step.
 * With ckr_options.model_of it holds for the next steps of all contexts. */
ckr_status ckr_set_samples(ckr_ctx *ctx, uint64_t per_step);
uint64_t ckr_sample_count(const ckr_ctx *ctx);
/* The loss scale of the next step, which keeps f16 gradients in range; 0: this
 * model has none.  A step whose gradients overflow halves the scale, and counts
 * as skipped. */
double ckr_loss_scale(const ckr_ctx *ctx);
/* peak_bytes of ckr_memory, at low cost: the largest of all processes. */
uint64_t ckr_peak_bytes(const ckr_ctx *ctx);
uint64_t ckr_seed(const ckr_ctx *ctx);
/* From the next step on: ckr_resume takes the seed of the checkpoint. */
void ckr_set_seed(ckr_ctx *ctx, uint64_t seed);

/* ---- data in and out ---- */

/* Copy nbytes = the tensor's own size into an input, parameter, buffer or
 * state; elements are of its dtype, row-major.  Quantised weights (ckc
 * --frozen-dtype int8, nf4) are float32 here, and are rounded again.  An input
 * keeps its value until it is set again; a step with one that was never set
 * fails with CKR_EARG. */
ckr_status ckr_set(ckr_ctx *ctx, const char *name, const void *data,
                   size_t nbytes);
/* Copy a tensor out.  Outputs are valid after a step. */
ckr_status ckr_get(ckr_ctx *ctx, const char *name, void *data, size_t nbytes);
/* The memory of an input, with the samples of all replicas, row-major.  It
 * counts as set from now on, is valid until ckr_close, and must not be written
 * during a step. */
ckr_status ckr_input(ckr_ctx *ctx, const char *name, void **data);

/* Called before each micro-batch to set the inputs; a status other than CKR_OK
 * ends the step with it, and ckr_fail sets the message. user is passed
 * through.  NULL: none.  The function may make the calls that are allowed while
 * a step is in flight, but must not begin or end one.  If a step is repeated,
 * because gradients overflowed or, on a GPU, because this step or the one
 * before failed, its inputs may be fed again; ckr_sample_count then has the
 * count before it. */
typedef ckr_status ckr_feed_fn(void *user, ckr_ctx *ctx, uint64_t step,
                            uint32_t micro);
ckr_status ckr_set_feed(ckr_ctx *ctx, ckr_feed_fn *feed, void *user);
/* If the divisor of the loss is counted over all micro-batches (labels that are
 * not ignored), the function is also called for each of them in advance.
 * Returns whether it must set this input in the current call. */
bool ckr_needs_input(const ckr_ctx *ctx, const char *input);
/* Set the message of ckr_error for a failure of the caller's own; "%m" is
 * errno. Returns status. */
ckr_status ckr_fail(ckr_ctx *ctx, ckr_status status, const char *fmt, ...)
#ifdef __GNUC__
	__attribute__((format(printf, 3, 4)))
#endif
	;

/* ---- training ---- */

/* Action on a loss or gradient that is NaN or infinite, in a model with an
 * optimizer.  Unless the step goes on, no update is applied: parameters,
 * optimizer state and buffers are what they were before it.  The loss is always
 * checked; gradients are checked if all of them exist before the first update
 * (not with ckc --update-in-backward); ckr_check_finite checks the result of a
 * step.  If a smaller loss scale may prevent an overflow of gradients, the step
 * is skipped in any case. */
enum ckr_on_nan {
	CKR_NAN_STOP,                   /* the step fails with CKR_ENAN and is
	                                 * not counted */
	CKR_NAN_SKIP,                   /* it counts as done, but not in the
	                                 * bias correction of AdamW; see
	                                 * ckr_skipped_count, ckr_error */
	CKR_NAN_GO                      /* nothing is checked */
};

/* Settings of one step; they may change from step to step. */
struct ckr_hyper {
	double lr, beta1, beta2;        /* betas: adam, adamw, lion */
	double eps;                     /* adam, adamw, adafactor */
	double weight_decay;            /* p *= 1 - lr * decay; sgd, sgdm,
	                                 * adam: g += decay * p */
	double momentum;                /* sgdm */
	double clip;                    /* maximum global gradient norm; 0: no
	                                 * clipping */
	/* adafactor: beta2 is 1 - t^beta2_decay at step t; lr is relative to
	 * the larger of a parameter's root mean square and eps2, and at most
	 * 1 / sqrt(t); the root mean square of an update is at most
	 * clip_threshold before lr applies */
	double beta2_decay, clip_threshold, eps2;
	double ema_decay;               /* ckc --ema: the average of a parameter
	                                 * becomes ema_decay * average +
	                                 * (1 - ema_decay) * parameter after
	                                 * every update but the first, which
	                                 * makes it the parameter */
	bool nesterov;                  /* sgdm */
	enum ckr_on_nan on_nan;
	/* for models with f16 gradients; see ckr_loss_scale */
	double loss_scale;              /* 0: dynamic: begins at 65536, is
	                                 * halved, down to 1, by a step that
	                                 * overflows, and doubled after
	                                 * scale_interval good steps in a row
	                                 * (0: 2000) */
	uint64_t scale_interval;
	bool scale_again;               /* repeat a step that overflows with
	                                 * the smaller scale and its inputs fed
	                                 * again; always so without updates */
};
/* AdamW's: lr 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0.01; no momentum, no
 * clip; beta2_decay -0.8, clip_threshold 1, eps2 1e-3; ema_decay 0.999;
 * CKR_NAN_STOP. */
struct ckr_hyper ckr_hyper_default(void);
/* The defaults of the model's optimizer.  They differ in: sgdm momentum 0.9;
 * adam decay 0; lion lr 1e-4, beta2 0.99; adafactor lr 1e-2, eps 2^-23. */
struct ckr_hyper ckr_model_hyper(const ckr_ctx *ctx);

/* Set a parameter's learning rate, as a factor of the rate of steps, and its
 * weight decay (below 0: that of steps).  A factor of 0 freezes the parameter.
 * CKR_EARG: not the name of a trainable parameter. */
ckr_status ckr_set_group(ckr_ctx *ctx, const char *name, double lr_factor,
                         double weight_decay);

/* A learning rate by step.  It rises linearly to lr over `warmup` steps; after
 * them, never below min_lr:
 *   constant      lr
 *   linear        falls to min_lr at step `total`
 *   cosine        falls to min_lr at `total` along half a cosine
 *   wsd           stays, and falls linearly to min_lr over the last `period`
 *                 steps before `total` (warmup, stable, decay: Hu et al. 2024)
 *   step          is multiplied by `factor` after every `period` steps
 *   restarts      falls along half a cosine over `period` steps, and begins
 *                 anew with a period `factor` times as long (SGDR: Loshchilov
 *                 and Hutter 2017) */
struct ckr_schedule {
	enum ckr_schedule_kind {
		CKR_CONSTANT_LR, CKR_LINEAR_LR, CKR_COSINE_LR, CKR_WSD_LR,
		CKR_STEP_LR, CKR_RESTARTS_LR
	} kind;
	double lr, min_lr;
	uint64_t warmup, total, period; /* period >= 1 where it is used */
	double factor;                  /* restarts: at least 1 */
};
/* Of 0-based `step`. */
double ckr_schedule_lr(const struct ckr_schedule *, uint64_t step);
/* The `total` of the schedule that the caller uses, 0: none.  Checkpoints save
 * it, and ckr_resume sets it to that of the file. */
uint64_t ckr_schedule_steps(const ckr_ctx *ctx);
void ckr_set_schedule_steps(ckr_ctx *ctx, uint64_t total);

/* Forward, backward and update over all micro-batches.  *loss (may be NULL) is
 * that before the update, of all as one batch (their mean where ckc said so);
 * NaN for a model without one.  hyper NULL: ckr_model_hyper.  After CKR_EDATA
 * parameters and buffers are unchanged unless updates run in backward. */
ckr_status ckr_step(ckr_ctx *ctx, const struct ckr_hyper *hyper, double *loss);
/* An asynchronous step in two calls, between which a GPU computes: while
 * ckr_can_begin, set inputs and begin a step; then end one; and so on.
 *
 * Steps end in the order in which they were begun, each as ckr_step does: with
 * its status, its loss, and the counts, scale and norm after it.  The result of
 * a step does not depend on steps begun after it.  If one fails, those begun
 * after it are discarded without effect; if one is skipped, they are not.
 *
 * ckr_begin_step uses the inputs that are set, or has them fed.  It fails only
 * if its settings are wrong, or if ckr_can_begin is false.  One step can always
 * be begun; a second one on a GPU, after a first step has ended, and while
 * steps are not recorded (ckr_save_grads, ckr_trace, ckr_profile).  Until the
 * step ends, inputs can be set and queries made; calls that read or write other
 * tensors of the model fail with CKR_EARG. */
ckr_status ckr_begin_step(ckr_ctx *ctx, const struct ckr_hyper *hyper);
ckr_status ckr_end_step(ckr_ctx *ctx, double *loss);
bool ckr_can_begin(const ckr_ctx *ctx);
/* The global gradient norm (2-norm) of the last step, as used for clipping: of
 * the mean over micro-batches, over all ranks, without loss scale, before
 * clipping; NaN if the step had no gradients or was skipped.  Steps compute it
 * if they clip, and always after the first call, which costs one pass over the
 * gradients. norm may be NULL.  CKR_EUNSUPPORTED: the library has none (ckc
 * --update-in-backward, or no optimizer). */
ckr_status ckr_grad_norm(ckr_ctx *ctx, double *norm);
/* Use the moving averages of a library of ckc --ema in place of the trained
 * parameters: in ckr_eval and scores, in ckr_get, and in all files but
 * checkpoints; use false: the parameters again, with the bits they had.  While
 * averages are in use, calls that step, save or resume a checkpoint, or set
 * parameters fail with CKR_EARG; a float32 parameter is then found under the
 * name of its average.  Does nothing if that is so already.  It allocates
 * memory outside the plan: twice the largest parameter during the call, and as
 * long as averages are in use 2 bytes per element of 16-bit parameters.
 * CKR_EUNSUPPORTED: the library has no averages; CKR_EARG: no step has updated
 * the parameters yet. */
ckr_status ckr_use_ema(ckr_ctx *ctx, bool use);
/* Evaluate the inputs that are set: the loss (NULL: labels need not be set) and
 * the outputs, for ckr_get.  Without dropout, with running statistics, one
 * micro-batch; the model does not change.  A library without an evaluation
 * program (ckc --eval off, or as ckc reported) returns the loss and the outputs
 * of a training forward pass; CKR_EUNSUPPORTED if they would use the statistics
 * of the batch. */
ckr_status ckr_eval(ckr_ctx *ctx, double *loss);
/* Why there is no evaluation program; NULL: there is one.  Owned by the
 * context. */
const char *ckr_why_no_eval(const ckr_ctx *ctx);
/* After CKR_EDATA of a step or an evaluation: the bad number. */
int64_t ckr_bad_number(const ckr_ctx *ctx);
/* Outputs of ckr_eval, the loss among them, in a fixed order.  CKR_EARG when i
 * is too large.  If the model compares class scores with labels in one place,
 * there are metrics in float32: "eval.counted", the number of labels that are
 * not ignored, "eval.correct", the number of correct predictions, and, without
 * class weights, "eval.entropy", the sum of the cross entropies in nats.
 * "eval.term0" and so on are the values that ckr_score_add accumulates. */
ckr_status ckr_eval_output(ckr_ctx *ctx, size_t i, struct ckr_info *info);
/* The score of a data set.  Batches are evaluated one by one, and the terms of
 * the loss are accumulated, so that it does not depend on the batch size: sums
 * over samples, means over samples or over labels that are not ignored, also
 * weighted ones, and formulas of such sums. */
struct ckr_score {
	double loss;                    /* NaN: the model has none */
	double accuracy, perplexity;    /* accuracy: a fraction; NaN: unknown */
	const char *by_batch;           /* NULL; or why the loss depends on the
	                                 * batches: it is then the mean over
	                                 * full batches.  Owned by the
	                                 * context */
};
/* Forget all batches. */
ckr_status ckr_score_begin(ckr_ctx *ctx);
/* Evaluate the inputs that are set, and add the result with the weight `times`.
 * If k samples are left for a last batch of n, pad it with copies of one sample
 * and add it once; then add a batch of that sample alone with the weight
 * (k - n) / n, which cancels the copies. */
ckr_status ckr_score_add(ckr_ctx *ctx, double times);
/* The score of all batches added.  CKR_EARG if there is none. */
ckr_status ckr_score_end(ckr_ctx *ctx, struct ckr_score *score);
/* Count another validation; *best: its loss is the lowest. */
ckr_status ckr_record_validation(ckr_ctx *ctx, double loss, bool *best);
/* The lowest validation loss of this run, infinity without a validation, and in
 * *worse (may be NULL) the number of validations since that were not lower.
 * Checkpoints hold both. */
double ckr_best_loss(const ckr_ctx *ctx, uint64_t *worse);
/* CKR_ENAN, naming the first, if a trained parameter, optimizer state or a
 * buffer that steps write holds NaN or infinity: not to be saved over a good
 * checkpoint. */
ckr_status ckr_check_finite(ckr_ctx *ctx);

struct ckr_checked {
	uint64_t compared;              /* tensors whose bits were compared */
	uint64_t again, alone;          /* of them recomputed; in the plan
	                                 * alone */
	uint64_t rounded;               /* values saved in 16 bits; if any: */
	double differ, largest, median; /* effect on gradients: norm of the
	                                 * difference over norm, of all as one
	                                 * and among parameters */
	const char *where;              /* parameter of the largest */
};
/* As ckr_step, executed twice from the same state: with keep-everything and
 * with the plan.  CKR_EMISMATCH names the first tensor whose bits differ,
 * CKR_EUNSUPPORTED a recomputed one that has no counterpart to compare with.
 * If the plan saves values in 16 bits, only the forward pass is compared bit by
 * bit, and CKR_EMISMATCH means that gradients differ by more than a tenth.
 * After a failure the state is what it was before the call. *checked (may be
 * NULL): how many tensors were compared. */
ckr_status ckr_check(ckr_ctx *ctx, const struct ckr_hyper *hyper,
                     double *loss, struct ckr_checked *checked);

/* ---- files ---- */

/* All parameters and buffers from a safetensors file, by name; types are
 * converted between f16, bf16, f32 and f64.  A file without adapters (ckc
 * --lora) does not change these, and a file of ckr_save_adapters changes
 * nothing else.  Files are read once to check them and once more to load them:
 * after a failure nothing has changed.  If only the second reading fails, just
 * ckr_error and ckr_close may be called. */
ckr_status ckr_load_weights(ckr_ctx *ctx, const char *path);
/* How ckr_init takes weights from a file.  Texts stay the caller's. */
struct ckr_init {
	const char *const *map;         /* "OLD=NEW": replace the prefix OLD of
	                                 * tensor names by NEW; the last match
	                                 * wins */
	size_t nmap;
	const char *const *skip;        /* globs of weights that keep their
	                                 * values in any case */
	size_t nskip;
	bool partial;                   /* missing weights keep their values */
	bool ema;                       /* take the moving averages of a
	                                 * checkpoint in place of its
	                                 * parameters; CKR_EFORMAT: no file
	                                 * has any */
};
/* As ckr_load_weights; how may be NULL.  A tensor of another shape is an error
 * unless it is skipped, and so is a mapping or a glob that matches nothing. */
ckr_status ckr_init(ckr_ctx *ctx, const char *path,
                    const struct ckr_init *how);
/* From several files that hold all weights together.  If two have the same
 * name, the last one wins, and ckr_unused_tensors reports it. */
ckr_status ckr_init_all(ckr_ctx *ctx, const char *const *path, size_t n,
                        const struct ckr_init *how);
/* Weight number i of those not set by the files read last; NULL: none. */
const char *ckr_missing_weight(const ckr_ctx *ctx, size_t i);
/* A message about tensors of the files read last that the model does not use;
 * "": none.  Such a tensor may be a constant, which keeps its value. */
const char *ckr_unused_tensors(const ckr_ctx *ctx);
/* Parameters, buffers, optimizer state, step, seed and loss scale.  The file
 * appears by rename when it is complete and on disk.  A path that ends with a
 * slash or is a folder: each process writes a file there, and complete.json is
 * replaced when all are on disk.  Files are read from such a folder, too. */
ckr_status ckr_save(ckr_ctx *ctx, const char *path);
/* The same file beside training: copies to host memory what this process writes
 * of it, and returns; a thread writes the file, which appears as that of
 * ckr_save does.  The first call allocates that memory.  While the file is
 * being written, ckr_save, ckr_save_async and ckr_resume wait for it first, and
 * return its failure. */
ckr_status ckr_save_async(ckr_ctx *ctx, const char *path);
/* Allocate the memory of ckr_save_async now, and check that the file can be
 * written. */
ckr_status ckr_save_reserve(ckr_ctx *ctx, const char *path);
/* Whether no file is being written any more; wait until none is.  Both return a
 * failure to write it, once.  In a run of several processes, the file appears
 * in one of these calls at the earliest, and ckr_close drops one that has not
 * appeared.  In a single process, ckr_close waits for the file without
 * reporting a failure. */
ckr_status ckr_save_poll(ckr_ctx *ctx, bool *done);
ckr_status ckr_save_wait(ckr_ctx *ctx);
ckr_status ckr_resume(ckr_ctx *ctx, const char *path);
/* For a model with low-rank adapters (ckc --lora), else CKR_EUNSUPPORTED.
 * ckr_save_adapters: trained tensors with the names of PEFT's
 * adapter_model.safetensors, and adapter_config.json beside the file.
 * ckr_save_merged: parameters and buffers with adapters merged into them
 * (single process only). path NULL: check whether the call is possible. */
ckr_status ckr_save_adapters(ckr_ctx *ctx, const char *path);
ckr_status ckr_save_merged(ckr_ctx *ctx, const char *path);
/* The ONNX file that the model was compiled from, with the current weights,
 * adapters merged into them.  path NULL: check whether the call is possible. */
ckr_status ckr_export_onnx(ckr_ctx *ctx, const char *path);
/* Whether that file has Dropout or BatchNormalization in training form, which
 * it keeps: ONNX Runtime then drops at random and normalises by batches. */
bool ckr_exports_training_form(const ckr_ctx *ctx);
/* Graph outputs of the last step: those of its last micro-batch, as ckr_get
 * returns them, but the loss of the whole step. */
ckr_status ckr_save_outputs(ckr_ctx *ctx, const char *path);
/* The gradients of the next step that is not skipped (before clipping, without
 * loss scale). */
ckr_status ckr_save_grads(ckr_ctx *ctx, const char *path);
/* Record the next three steps as Chrome trace JSON; the file is written after
 * the third. path NULL: write the steps recorded so far, if any. ckr_close does
 * the same for a single process, without reporting failures. */
ckr_status ckr_trace(ckr_ctx *ctx, const char *path);
/* path NULL: start profiling.  Otherwise write mean and minimum seconds per op
 * over all steps since then.  The first call of an op is excluded if there is
 * another; "cold" counts ops with a single call.  For transfers between ranks
 * the profile has the bytes that a rank sends and its share of the time, as
 * ranks take turns. */
ckr_status ckr_profile(ckr_ctx *ctx, const char *path);
/* Print the profile as a table by op, for ops over 1 % of a step: share of the
 * time, and fraction of the roofline, which is the larger of FLOPs and bytes
 * over the best rates of all measured ops. */
ckr_status ckr_profile_table(ckr_ctx *ctx, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
