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
 *     tells what failed; the text stands until the next call that fails.
 *   - The library never prints (unless CKR_LOG says so) and never ends the
 *     process (unless it is one of several, and others do not even come to
 *     begin).
 *   - A context is used by one thread at a time; several contexts may be used
 *     by several threads.  Kernels run on OpenMP threads of their own.
 *   - These wait for each other spinning, but asleep while other processes keep
 *     them from processors; OMP_WAIT_POLICY and GOMP_SPINCOUNT overrule that.
 *   - All memory is taken by ckr_open; steps allocate nothing.
 *   - How many threads OpenMP and OpenBLAS may use in the caller's own code is
 *     as before when a call returns.
 *   - `name` is the name in the ONNX file: of an initializer, an input or an
 *     output.  Optimizer state is called "adamw.m.NAME" and so on: the
 *     optimizer, the state, the parameter.
 *   - Buffers that the caller gives stay the caller's and are read or written
 *     during the call only, unless said otherwise.
 *
 * Environment (read once, by ckr_open)
 *   CKR_LOG=1        tell on stderr what is loaded and how much memory it takes
 *   CKR_POISON=1     fill memory with NaN as soon as the plan calls it free,
 *                    and put the arena's end at an unmapped page (slow)
 *   CKR_TRACE=FILE   as ckr_trace(ctx, FILE)
 *   CKR_BLAS=NAME    onednn, openblas, own, cublas, ...; as ckr_options.blas
 *   CKR_MPI=FILE     what several processes talk by, in place of ckr_mpi.so
 *   CKR_FILES=HOW    how they write one file: "name", by one that it has until
 *                    it is complete, as on several machines; "first", all by
 *                    the first process, as where machines share no files
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
	CKR_EDATA,              /* a kernel met bad data: index out of range */
	CKR_EMISMATCH,          /* ckr_check found different bits */
	CKR_EUNSUPPORTED,       /* this model or library cannot do that */
	CKR_ENAN,               /* a number is not finite */
	CKR_ERANK               /* another process of the run does not come */
} ckr_status;

/* ---- opening ---- */

struct ckr_options {
	/* File with the weights; NULL: MODEL.safetensors beside MODEL.so; "":
	 * none, zeros (for ckr_resume). */
	const char *weights;
	/* Matrix products: NULL or "auto" (oneDNN if installed, else OpenBLAS,
	 * else our own), "onednn", "openblas", "own"; "onednn-bf16":
	 * oneDNN, its products of bf16 even without units for them.  On a GPU
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
	/* Of several processes: seconds after which one that has not come to
	 * where the others wait for it is given up; 0: 600. */
	double comm_timeout;
};

/* Load the compiled model `so` and take all memory it will ever use.  opt may
 * be NULL.  *ctx is set in any case unless there is no memory at all (then
 * NULL); after a failure it serves only ckr_error and ckr_close. */
ckr_status ckr_open(ckr_ctx **ctx, const char *so,
                    const struct ckr_options *opt);
/* Frees everything.  ctx may be NULL. */
void ckr_close(ckr_ctx *ctx);
/* Text of the last failure, never NULL; ctx may be NULL. */
const char *ckr_error(const ckr_ctx *ctx);

/* ---- several processes ---- */

/* Under mpirun, srun or torchrun each process is one rank, not all of them.
 * Then every call about a model, and of it, is made by all processes, in the
 * same order and with the same arguments, by the thread that opened the first
 * one; what fails on one fails on all, with the message of that one.  Such a
 * process must close its models before it ends: else the launcher takes its
 * end for a failure, and ends the others.  CKR_ERANK: a process has stopped,
 * or does not come where others wait for it, or this one's GPU has failed;
 * nothing but ckr_leave serves then. */

/* Number of this process, and how many there are: 0 and 1 where it is alone. */
uint32_t ckr_rank(const ckr_ctx *ctx);
uint32_t ckr_processes(const ckr_ctx *ctx);
/* The status of something of the caller's own (ckr_fail), which fails for all
 * if it does for one. */
ckr_status ckr_agree(ckr_ctx *ctx, ckr_status status);
/* Whether something is so in any process. */
ckr_status ckr_any(ckr_ctx *ctx, bool here, bool *any);
/* Whether it is for this process to tell of the last failure: of one that all
 * have, one tells. */
bool ckr_speaks(const ckr_ctx *ctx);
/* Before the end of a process with a failure that was told of: ends all others,
 * unless they have it too. */
void ckr_leave(ckr_ctx *ctx, ckr_status status);

/* ---- what is inside ---- */

struct ckr_info {
	const char *name;       /* belongs to the context */
	const char *dtype;      /* "f32", "i64", "bool", ... */
	const char *kind;       /* "param", "buffer", "constant", "input",
	                         * "state", "grad", "output", "metric",
	                         * "other" */
	bool frozen;            /* a parameter that is not trained */
	bool loss;
	bool shifted;           /* an input that the graph compares with what
	                         * precedes it: labels that are the tokens
	                         * themselves */
	bool label;                     /* an input that nothing but the loss
	                                 * depends on: predictions need none */
	bool index;             /* an input that steps look something up by */
	int rows;               /* of an output of evaluation: 1: rows of each
	                         * sample along its first dim, which depend on
	                         * no other; 0: none; -1: unknown */
	int rank;
	int64_t dim[8];
	size_t nbytes;          /* elements * size */
};

/* Tensors that have a meaning outside: parameters, buffers, inputs, optimizer
 * state and outputs, in a fixed order.  CKR_EARG when i is too large. */
ckr_status ckr_tensor(ckr_ctx *ctx, size_t i, struct ckr_info *info);
/* The same by name. */
ckr_status ckr_find(ckr_ctx *ctx, const char *name, struct ckr_info *info);

struct ckr_memory {
	/* of a rank, in a model that is cut over several; peak_bytes: of the
	 * one that took most */
	uint64_t planned_bytes;         /* peak as the compiler promised it, of
	                                 * evaluation too once there was one */
	uint64_t budget_bytes;          /* 0: no budget */
	uint64_t resident_bytes;        /* parameters, state, inputs, ... */
	uint64_t arena_bytes;           /* activations, gradients, workspace */
	uint64_t peak_bytes;            /* measured: resident + the arena up to
	                                 * the highest byte ever written, by
	                                 * looking */
	uint64_t held_bytes;            /* outside the plan: copies of buffers
	                                 * that the forward pass writes, so
	                                 * that a step can be undone */
	uint64_t transfer_bytes;        /* outside the plan: what moves
	                                 * between processes goes through them;
	                                 * 0: there is one */
	/* of all ranks here */
	uint64_t grown_bytes;           /* growth of the process's anonymous
	                                 * resident memory since just before
	                                 * ckr_open took the model's: BLAS,
	                                 * OpenMP and the caller included */
};
/* Asks the system: not for every step. */
ckr_status ckr_memory(ckr_ctx *ctx, struct ckr_memory *memory);

/* "onednn 2.6.0", "openblas 0.3.21 (SkylakeX, openmp)", "own (avx512)"; on a
 * GPU "cublas", if there are convolutions ", convolutions by cudnn 9.19.0" with
 * it, ", 50 of 53 convolutions by ..." or ", unfolded convolutions" and why. */
const char *ckr_blas(const ckr_ctx *ctx);
const char *ckr_model_name(const ckr_ctx *ctx);
int ckr_threads(const ckr_ctx *ctx);
/* Ranks, all of which this process carries out in turn: replicas of a model
 * (ckc --dp), times the ranks that each is cut over (ckc --tp).  Tensors are
 * whole in every call and file; inputs and outputs hold the samples of all
 * replicas, in their order, of one micro-batch. */
uint32_t ckr_ranks(const ckr_ctx *ctx);
uint32_t ckr_replicas(const ckr_ctx *ctx);
/* Of the float types in which a step keeps values the one with the fewest
 * digits: "bf16", "f16" or "f32". */
const char *ckr_float_type(const ckr_ctx *ctx);
/* Micro-batches that one step consumes (ckc --grad-accum). */
uint32_t ckr_micro_batches(const ckr_ctx *ctx);
/* "none", "sgd", "sgdm", "adam", "adamw", "lion" or "adafactor". */
const char *ckr_optimizer(const ckr_ctx *ctx);
/* Steps done since the weights were fresh, and how many of them were skipped
 * (CKR_NAN_SKIP, or because gradients overflowed: ckr_loss_scale). */
uint64_t ckr_step_count(const ckr_ctx *ctx);
uint64_t ckr_skipped_count(const ckr_ctx *ctx);
/* Samples that a step consumes, all micro-batches and replicas together.  Those
 * consumed so far are counted, and go into checkpoints: a run that goes on with
 * other sizes sees samples that it has not seen.  A checkpoint without such a
 * count: as many in each step as from now on. */
ckr_status ckr_set_samples(ckr_ctx *ctx, uint64_t per_step);
uint64_t ckr_sample_count(const ckr_ctx *ctx);
/* What the loss of the next step is scaled with, so that its gradients fit into
 * f16; 0: in this model it is not.  A step whose gradients overflow halves it,
 * and counts among those skipped. */
double ckr_loss_scale(const ckr_ctx *ctx);
/* ckr_memory's peak_bytes so far, cheap: the most of any process. */
uint64_t ckr_peak_bytes(const ckr_ctx *ctx);
uint64_t ckr_seed(const ckr_ctx *ctx);
/* From the next step on: ckr_resume takes the seed of the checkpoint. */
void ckr_set_seed(ckr_ctx *ctx, uint64_t seed);

/* ---- data in and out ---- */

/* Copy nbytes = the tensor's own size into an input, parameter, buffer or
 * state; elements are of its dtype, row-major.  An input keeps its value until
 * it is set again; a step with one that was never set fails with CKR_EARG. */
ckr_status ckr_set(ckr_ctx *ctx, const char *name, const void *data,
                   size_t nbytes);
/* Copy a tensor out.  Outputs are valid after a step. */
ckr_status ckr_get(ckr_ctx *ctx, const char *name, void *data, size_t nbytes);
/* The place of an input in memory, of all replicas' samples, which counts as
 * set from now on: row-major, valid until ckr_close, not to be written during
 * a step. */
ckr_status ckr_input(ckr_ctx *ctx, const char *name, void **data);

/* Called before each micro-batch to set the inputs; any other status than
 * CKR_OK ends the step with it; ckr_fail says why.  user is passed through.
 * NULL: none.  It can do what can be done while a step is under way, but begin
 * or end none.  A step that is taken again, because gradients overflowed or, on
 * a GPU, something was wrong in it or in the one before, may have its inputs
 * fed again: ckr_sample_count then counts what was consumed before it. */
typedef ckr_status ckr_feed(void *user, ckr_ctx *ctx, uint64_t step,
                            uint32_t micro);
ckr_status ckr_set_feed(ckr_ctx *ctx, ckr_feed *feed, void *user);
/* Where losses are divided by what all micro-batches have (labels that count)
 * it is called for all of them before the first one, too.  Whether it need set
 * an input then. */
bool ckr_wants(const ckr_ctx *ctx, const char *input);
/* The failure of something of the caller's own, in words that ckr_error then
 * gives; "%m" tells errno.  Returns status. */
ckr_status ckr_fail(ckr_ctx *ctx, ckr_status status, const char *fmt, ...)
#ifdef __GNUC__
	__attribute__((format(printf, 3, 4)))
#endif
	;

/* ---- training ---- */

/* A loss or a gradient that is NaN or infinite, in a model that has an
 * optimizer.  Unless the step goes on, no update is applied: parameters,
 * optimizer state and buffers are what they were before it.  The loss is
 * looked at in any model, gradients where all are there before the first
 * update (not with ckc --update-in-backward); ckr_finite looks at what came
 * of a step.  While a smaller loss scale may help against gradients that
 * overflow, the step is skipped whatever this says. */
enum ckr_on_nan {
	CKR_NAN_STOP,                   /* the step fails with CKR_ENAN and is
	                                 * not counted */
	CKR_NAN_SKIP,                   /* it counts as done, but not in the
	                                 * bias correction of AdamW; see
	                                 * ckr_skipped_count, ckr_error */
	CKR_NAN_GO                      /* nothing is looked at */
};

/* Settings of one step; they may change from step to step. */
struct ckr_hyper {
	double lr, beta1, beta2;        /* betas: adam, adamw, lion */
	double eps;                     /* adam, adamw, adafactor */
	double weight_decay;            /* p *= 1 - lr * decay; sgd, sgdm,
	                                 * adam: g += decay * p */
	double momentum;                /* sgdm */
	double clip;                    /* largest norm of all gradients; 0:
	                                 * off */
	/* adafactor: step t takes t^beta2_decay of the new into its means of
	 * squares; lr is relative to the larger of a parameter's root mean
	 * square and eps2, and at most 1 / sqrt(t); that of an update is at
	 * most clip_threshold before lr applies */
	double beta2_decay, clip_threshold, eps2;
	bool nesterov;                  /* sgdm */
	enum ckr_on_nan on_nan;
	/* of models with gradients in f16; see ckr_loss_scale */
	double loss_scale;              /* 0: begins at 65536, is halved, down
	                                 * to 1, by a step that overflows, and
	                                 * doubled by scale_interval good ones
	                                 * in a row (0: 2000) */
	uint64_t scale_interval;
	bool scale_again;               /* a step that overflows is taken again
	                                 * with the smaller scale, its inputs
	                                 * fed again; so it is where nothing is
	                                 * updated */
};
/* AdamW's: lr 1e-3, betas 0.9 and 0.999, eps 1e-8, decay 0.01; no momentum, no
 * clip; beta2_decay -0.8, clip_threshold 1, eps2 1e-3; CKR_NAN_STOP. */
struct ckr_hyper ckr_hyper_default(void);
/* Those that suit the model's optimizer.  What differs: sgdm momentum 0.9;
 * adam decay 0; lion lr 1e-4, beta2 0.99; adafactor lr 1e-2, eps 2^-23. */
struct ckr_hyper ckr_hyper_of(const ckr_ctx *ctx);

/* From now on a parameter's own learning rate, as a factor on that of steps,
 * and weight decay, below 0: that of steps.  A factor of 0 keeps the parameter
 * as it is.  CKR_EARG: not the name of a parameter that is trained. */
ckr_status ckr_set_group(ckr_ctx *ctx, const char *name, double lr_factor,
                         double weight_decay);

enum ckr_schedule { CKR_CONSTANT_LR, CKR_LINEAR_LR, CKR_COSINE_LR };
/* Learning rate of 0-based `step`: rises linearly over `warmup` steps to lr,
 * then falls to min_lr at `total` by the schedule given. */
double ckr_schedule_lr(enum ckr_schedule kind, double lr, double min_lr,
                       uint64_t step, uint64_t warmup, uint64_t total);

/* Forward, backward and update over all micro-batches.  *loss (may be NULL) is
 * that before the update, of all as one batch (their mean where ckc said so);
 * NaN for a model without one.  hyper NULL: ckr_hyper_of.  After CKR_EDATA
 * parameters and buffers are unchanged unless updates run in backward. */
ckr_status ckr_step(ckr_ctx *ctx, const struct ckr_hyper *hyper, double *loss);
/* A step in two calls, between which a GPU computes while the caller goes on:
 * as long as ckr_can_begin, set inputs and begin; then end one; and so on.
 *
 * Steps end in the order in which they were begun, each as ckr_step does: with
 * its status, its loss, and the counts, scale and norm after it.  Nothing that
 * one step does depends on whether another one has been begun behind it: if
 * one fails, those begun behind it are gone, and what they would have read and
 * written is what it was; if one is skipped, they are not.
 *
 * ckr_begin_step takes the inputs as they are set, or has them fed; it fails
 * only where its settings are wrong, or if ckr_can_begin says no: one step can
 * always be begun, a second one on a GPU, once a step has ended there, and
 * while nothing of steps is recorded (ckr_save_grads, ckr_trace, ckr_profile).
 * From then on until its end inputs can be set and facts be asked for; what
 * reads or writes anything else of the model fails with CKR_EARG. */
ckr_status ckr_begin_step(ckr_ctx *ctx, const struct ckr_hyper *hyper);
ckr_status ckr_end_step(ckr_ctx *ctx, double *loss);
bool ckr_can_begin(const ckr_ctx *ctx);
/* The 2-norm of all gradients of the last step as clipping takes it: the mean
 * over micro-batches, over all ranks, without a loss scale, before clipping;
 * NaN if the step came to none, or was skipped.  Steps compute it where they
 * clip, and all of them after the first call, which costs one reading of the
 * gradients.  norm may be NULL.  CKR_EUNSUPPORTED: the library has none (ckc
 * --update-in-backward, or no optimizer). */
ckr_status ckr_grad_norm(ckr_ctx *ctx, double *norm);
/* What the model says of the inputs as they are set: its loss (NULL: labels
 * need not be set) and its outputs, which ckr_get then gives.  No dropout,
 * running statistics in place of the batch's, one micro-batch; the model does
 * not change.  A library without a program for that (ckc --eval off, or as ckc
 * said) has the loss and the outputs of steps; CKR_EUNSUPPORTED if they would
 * go by the batch's statistics. */
ckr_status ckr_eval(ckr_ctx *ctx, double *loss);
/* Why there is none, in words; NULL: there is one.  Belongs to the context. */
const char *ckr_no_eval(const ckr_ctx *ctx);
/* After CKR_EDATA of a step or an evaluation: the number that was met. */
int64_t ckr_bad_number(const ckr_ctx *ctx);
/* Outputs of ckr_eval, the loss among them, in a fixed order.  CKR_EARG when i
 * is too large.  Beside the model's there are metrics, float32, where scores of
 * classes meet labels in one place of the model: "eval.counted", how many
 * labels count, "eval.correct", of how many the largest score is theirs, and,
 * unless classes weigh differently, "eval.entropy", the sum of their cross
 * entropy in nats.  "eval.term0" and so on are what ckr_score_add adds up. */
ckr_status ckr_eval_output(ckr_ctx *ctx, size_t i, struct ckr_info *info);
/* What the model says of a data set.  Batches are evaluated one by one, and
 * what the loss is made of is added up, so that it does not depend on their
 * size: sums over samples, means over samples or over the labels that count, by
 * their weights too, and formulas of such sums. */
struct ckr_score {
	double loss;                    /* NaN: the model has none */
	double accuracy, perplexity;    /* accuracy: a share; NaN: not told */
	const char *by_batch;           /* NULL; or why the loss depends on how
	                                 * samples are dealt to batches: it is
	                                 * then the mean of full ones'.  Belongs
	                                 * to the context */
};
/* Forget all batches. */
ckr_status ckr_score_begin(ckr_ctx *ctx);
/* Evaluate the inputs as they are set, and add what that gives so many times.
 * A last batch of n samples that k are left for is filled up with copies of one
 * sample, and counts once; then a batch of that sample alone takes them out
 * again: (k - n) / n times. */
ckr_status ckr_score_add(ckr_ctx *ctx, double times);
/* Of all batches added.  CKR_EARG if there is none. */
ckr_status ckr_score_end(ckr_ctx *ctx, struct ckr_score *score);
/* The lowest loss of validations in this run, infinity if there was none, and
 * how many in a row since were not lower.  The caller's; checkpoints hold them,
 * so that a run that is resumed goes on with them.  ckr_saw counts another
 * validation; *best: its loss is the lowest.  worse may be NULL. */
ckr_status ckr_saw(ckr_ctx *ctx, double loss, bool *best);
double ckr_best(const ckr_ctx *ctx, uint64_t *worse);
/* CKR_ENAN, naming the first, if a trained parameter, optimizer state or a
 * buffer that steps write holds NaN or infinity: not to be saved over a good
 * checkpoint. */
ckr_status ckr_finite(ckr_ctx *ctx);

struct ckr_checked {
	uint64_t compared;              /* tensors whose bits were compared */
	uint64_t again, alone;          /* of them computed again; that only
	                                 * the plan has */
	uint64_t rounded;               /* values kept in 16 bits; if any: */
	double differ, largest, median; /* what that does to gradients: norm of
	                                 * the difference over norm, of all
	                                 * taken as one and among parameters */
	const char *where;              /* parameter of the largest */
};
/* As ckr_step, carried out twice: once keeping everything and once by the
 * plan, from the same state.  CKR_EMISMATCH names the first tensor whose bits
 * differ, CKR_EUNSUPPORTED one that is computed again and has nothing to be
 * compared with.  Of a plan that keeps values in 16 bits what forward
 * computes is compared so, and CKR_EMISMATCH says that gradients differ by
 * more than a tenth.  After a failure the state is what it was before the
 * call.  *checked (may be NULL): how many tensors were compared. */
ckr_status ckr_check(ckr_ctx *ctx, const struct ckr_hyper *hyper,
                     double *loss, struct ckr_checked *checked);

/* ---- files ---- */

/* All parameters and buffers from a safetensors file, by name; types are
 * converted between f16, bf16, f32 and f64.  A file without adapters (ckc
 * --lora) leaves these as they are, one of ckr_save_adapters all else.  Files
 * are read once to see that they are good and once more to load them: after a
 * failure nothing has changed.  Should only the second reading fail, the
 * context serves no more than ckr_error and ckr_close. */
ckr_status ckr_load_weights(ckr_ctx *ctx, const char *path);
/* How ckr_init takes weights from a file.  Texts stay the caller's. */
struct ckr_init {
	const char *const *map;         /* "OLD=NEW": a tensor whose name
	                                 * begins with OLD is called as if it
	                                 * began with NEW; the last that fits
	                                 * counts */
	size_t nmap;
	const char *const *skip;        /* globs of weights that keep their
	                                 * values, whatever the file holds */
	size_t nskip;
	bool partial;                   /* so does what the file lacks */
};
/* As ckr_load_weights; how may be NULL.  A tensor of another shape is refused
 * unless it is skipped, and so is a mapping or a glob that fits nothing. */
ckr_status ckr_init(ckr_ctx *ctx, const char *path,
                    const struct ckr_init *how);
/* Of several files that together hold all; of two of one name the last counts,
 * which ckr_unread tells. */
ckr_status ckr_init_all(ckr_ctx *ctx, const char *const *path, size_t n,
                        const struct ckr_init *how);
/* Weight number i of those that the files read last left; NULL: none. */
const char *ckr_left(const ckr_ctx *ctx, size_t i);
/* What the files of weights read last hold that has no place in the model, in
 * words; "": nothing.  It may be a constant, which keeps its value. */
const char *ckr_unread(const ckr_ctx *ctx);
/* Parameters, buffers, optimizer state, step, seed and loss scale.  The file
 * appears by rename when it is complete and on disk. */
ckr_status ckr_save(ckr_ctx *ctx, const char *path);
ckr_status ckr_resume(ckr_ctx *ctx, const char *path);
/* Of a model with low-rank adapters (ckc --lora), else CKR_EUNSUPPORTED: what
 * is trained, named as in PEFT's adapter_model.safetensors, with PEFT's
 * adapter_config.json beside it; and parameters and buffers of the model, with
 * adapters merged into them (by one process).  path NULL: whether that could
 * be. */
ckr_status ckr_save_adapters(ckr_ctx *ctx, const char *path);
ckr_status ckr_save_merged(ckr_ctx *ctx, const char *path);
/* The ONNX file the model was compiled from, with the present weights, adapters
 * merged into them. */
ckr_status ckr_export_onnx(ckr_ctx *ctx, const char *path);
/* Graph outputs of the last step; of several micro-batches those of the last
 * one, which ckr_get gives as well, but the loss is the step's. */
ckr_status ckr_save_outputs(ckr_ctx *ctx, const char *path);
/* The gradients of the next step that is not skipped (before clipping, without
 * loss scale). */
ckr_status ckr_save_grads(ckr_ctx *ctx, const char *path);
/* Record the next steps (the first three) as chrome-trace JSON; the file is
 * written after the third.  path NULL: write what is there now, if anything is
 * recorded, as ckr_close does without telling of failures, but not for several
 * processes. */
ckr_status ckr_trace(ckr_ctx *ctx, const char *path);
/* Mean and least seconds per op over all steps since this call is written by
 * ckr_profile(ctx, path); path NULL starts measuring.  The first call of an op
 * is left out if there is another; "cold" counts ops of a single call.  What
 * moves between ranks is told by what a rank sends and its share of the time,
 * as ranks take turns. */
ckr_status ckr_profile(ckr_ctx *ctx, const char *path);
/* The same summed by op, those over 1 % of a step, for people: share of the
 * time, and what part of its roof each reaches, which is the larger of FLOPs
 * and bytes over the best rates of any op measured. */
ckr_status ckr_profile_table(ckr_ctx *ctx, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
