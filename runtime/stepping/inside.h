/* Internals of steps, shared by the files of this room, from the lowest one
 * up. */
#ifndef RUNTIME_STEPPING_INSIDE_H
#define RUNTIME_STEPPING_INSIDE_H

#include "runtime/base/cpu_monitor.h"
#include "runtime/library/program.h"
#include "runtime/library/tensor.h"
#include "runtime/stepping/stepping.h"

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

/* Settings of the loss scale for this step; its value is in `progress`. */
struct loss_scale {
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

/* The first failure of this process in a step, kept until all processes agree
 * on it. */
struct deferred_error {
	ckr_status status;
	uint64_t order;                 /* instructions of the step before it */
	struct err err;
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

/* Host memory that the device writes in an asynchronous step, before its event
 * `finished`. */
struct step_results {
	struct ckr_env found[2];        /* what kernels had found before the
	                                 * updates, and at the end */
	float norm;
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
	struct step_results *results;   /* followed by the other three */
	struct ckr_env *env;            /* [micro-batches]: sent to kernels */
	uint64_t *losses;               /* [micro-batches], of the loss's
	                                 * type */
	unsigned char *saved;           /* as finite_check.snapshot */
};

enum { MAX_INFLIGHT = 2, STAGING_BUFFERS = 2 };

struct async_state {
	bool possible;                  /* steps of the plan can be enqueued */
	bool warm;                      /* one has run synchronously */
	bool graphs;                    /* segments are launched as graphs */
	void *graph[SEGMENTS];          /* the device's; NULL: not yet */
	bool stale;                     /* an argument of kernels has changed
	                                 * since graphs were recorded */
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

/* What all libraries of one model share. */
struct run {
	struct progress progress;
	struct ckr_param_group *group;  /* [nshared]; NULL: all are alike */
};

struct stepping {
	struct err *err;                /* the world's */
	struct run *run;
	struct progress *progress;      /* the run's */
	struct stepping *next;          /* of the libraries that share the run,
	                                 * in a ring */
	const struct ckr_library *lib;
	struct world *world;
	struct device *device;
	struct cpu_monitor *cpu_monitor;        /* NULL: not monitored */
	struct ckr_env env;
	struct ckr_env *device_env;     /* [world.count]: the environment in
	                                 * device memory; NULL: on the host */
	struct count count;
	struct finite_check finite;
	struct grad_norm norm;
	struct loss_scale scale;
	struct deferred_error deferred;
	struct async_state async;
	const struct loaded_program *outputs;   /* program whose outputs are
	                                         * valid; NULL: none */
	bool evaluated;                 /* `forward` has run */
	uint64_t peak;                  /* bytes, of any process */
	step_feed_fn *feed;
	void *feed_user;
	bool feeding;                   /* feed is being called */
	struct observer *observer;      /* first one */
};

/* ---- shared_run.c ---- */

/* A run of its own; take part in that of `with`; leave it, the last one frees
 * it. */
ckr_status run_start(struct stepping *, uint64_t seed);
void run_join(struct stepping *, struct stepping *with);
void run_leave(struct stepping *);
/* After arguments of kernels have changed, for all libraries of the run. */
void run_forget_graphs(struct stepping *);
/* Before the arena is written: none of them has outputs any more. */
void run_forget_outputs(struct stepping *);

/* ---- env.c: what kernels are called with ---- */

/* Create and free the environments in device memory. */
ckr_status env_open(struct stepping *);
void env_close(struct stepping *);
/* Set the environment to a local rank. */
void env_select_rank(struct stepping *, uint32_t r);
/* Copy the environment to the GPU, before a micro-batch. */
ckr_status env_send(struct stepping *);
/* What kernels of a GPU have found since: a fault as on the host, in the
 * environment; CKR_EIO if the GPU failed. */
ckr_status env_read_back(struct stepping *);
/* Whether kernels have found a number that is not finite; resets that. */
bool env_found_nonfinite(struct stepping *);
void env_set_fault(struct stepping *, const struct ckr_env *found);

/* ---- scale.c ---- */

/* CKR_EARG unless a step can use this scale; 0: the rule's. */
ckr_status scale_check(struct stepping *, double);
/* Set the environment of a step; hyper NULL: defaults. */
void scale_prepare(struct stepping *, const struct ckr_hyper *);
bool scale_can_fall(const struct stepping *);
/* Apply the rule after a step; updated: the step was not skipped. */
void scale_after(struct stepping *, bool updated);

/* ---- norm.c ---- */

void norm_open(struct stepping *);
/* env.clip for this setting. */
float norm_clip(const struct stepping *, double clip);
/* Called after each instruction of a program. */
void norm_after(struct stepping *, const struct loaded_program *, uint32_t i);

/* ---- loss.c ---- */

/* In a run of several processes: the number that the last stage has. */
ckr_status loss_share(struct stepping *, const struct loaded_program *,
                      double *);
/* The loss, NaN if there is none; that of a step from the sum over its
 * micro-batches; store it in the loss tensor. */
double loss_read(struct stepping *, const struct loaded_program *);
double loss_of_sum(const struct stepping *, double sum);
void loss_show(struct stepping *, const struct loaded_program *, double loss);

/* ---- finite_check.c ---- */

ckr_status finite_open(struct stepping *);
void finite_close(struct stepping *);
/* Save before a step, without waiting for the device, and restore after one
 * that failed or is skipped; copy: as finite_check.snapshot. */
void finite_save(struct stepping *, unsigned char *copy);
void finite_restore(struct stepping *, unsigned char *copy);
/* Enqueue after instruction i the checks of finite_check_loss and
 * finite_check_grads. */
void finite_enqueue(struct stepping *, const struct loaded_program *,
                    uint32_t i);
/* Launch these checks once, for nothing: a GPU may have to wait for the load of
 * a kernel, which it cannot while a graph is recorded. */
void finite_load(struct stepping *);
/* CKR_ENAN if the loss, known after instruction i, or a gradient that is ready
 * before it is not finite, and the mode asks for the check. */
ckr_status finite_check_loss(struct stepping *, const struct loaded_program *,
                             uint32_t i);
ckr_status finite_check_grads(struct stepping *, const struct loaded_program *,
                              uint32_t i);
/* The same of gradients that wait before instruction i for updates, whether or
 * not it is the first one. */
ckr_status finite_check_waiting_grads(struct stepping *,
                                      const struct loaded_program *,
                                      uint32_t i);

/* ---- hyper.c ---- */

/* Set the environment to the settings of a step, which are valid; hyper NULL:
 * defaults. */
void hyper_set_env(struct stepping *, const struct ckr_hyper *);
/* Settings of the parameter that instruction i updates. */
struct ckr_param_group hyper_group(const struct stepping *,
                                   const struct ckr_program *, uint32_t i);

/* ---- count.c ---- */

ckr_status count_open(struct stepping *);
void count_close(struct stepping *);
/* Call `feed` for a micro-batch; copy its inputs to where kernels read them. */
ckr_status count_feed(struct stepping *, uint32_t micro);
ckr_status count_begin_micro(struct stepping *, const struct loaded_program *);

/* ---- instr.c ---- */

/* Run instruction i of a program, on all ranks here. */
ckr_status instr_run(struct stepping *, const struct loaded_program *,
                     uint32_t i);
/* The same of instruction i, and of those before `to` that are launched with
 * it; *next: the first that is not. */
ckr_status instr_run_some(struct stepping *, const struct loaded_program *,
                          uint32_t i, uint32_t to, uint32_t *next);
/* Between the two, updates and checks are collected in `all`, as far as they
 * may join; the second launches them. */
void instr_begin_joined(struct stepping *, struct ckr_joined_launch *all);
void instr_end_joined(struct stepping *);
/* Whether all kernels before instruction i could be launched. */
ckr_status instr_check_launches(struct stepping *, uint32_t i);
/* Before instruction i: whether kernels of a GPU have found bad data. */
ckr_status instr_check_faults(struct stepping *, const struct loaded_program *,
                              uint32_t i);
/* The error of bad data that kernels of a GPU met during updates. */
ckr_status instr_fault_in_updates(struct stepping *,
                                  const struct ckr_env *found);
/* In a run of several processes: keep the error until all agree on it, and
 * return CKR_OK. */
ckr_status instr_defer(struct stepping *, ckr_status, uint32_t i);
/* Ends the deferral: all processes take the earliest failure, and the results
 * of all finite checks. */
ckr_status instr_agree(struct stepping *);
/* Bytes that steps have touched so far, in any process. */
uint64_t instr_peak(const struct stepping *);
/* Before a step: forget the last one's failure, outputs and transfers. */
void instr_reset(struct stepping *);
/* Threads of kernels and products; returns what instr_leave restores. */
int instr_enter(const struct stepping *);
void instr_leave(const struct stepping *, int was);

/* ---- async_step.c ---- */

ckr_status async_open(struct stepping *);
void async_close(struct stepping *);
/* Whether the device runs a step. */
bool async_is_busy(const struct stepping *);
/* Enqueue the step that the environment is prepared for.  fresh: with the
 * inputs set now, not with those staged before.  A failure is kept in the
 * step. */
void async_enqueue(struct stepping *, struct inflight_step *, bool fresh);
/* Undo all enqueued steps; this one is the first. */
void async_roll_back(struct stepping *, struct inflight_step *);
void async_restore_inputs(struct stepping *, const struct inflight_step *);

#endif
