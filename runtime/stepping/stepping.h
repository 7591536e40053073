/* Room stepping: training steps and evaluations of a batch.
 *
 * in      a world, settings of a step, inputs that are set or fed
 * out     a step done or undone, its loss; the progress of the run
 * must not know   files; what watches steps (struct observer)
 */
#ifndef RUNTIME_STEPPING_STEPPING_H
#define RUNTIME_STEPPING_STEPPING_H

#include "runtime/world/world.h"

struct stepping;

/* How far the run is: what a checkpoint holds beside tensors. */
struct progress {
	uint64_t step;                  /* steps done */
	uint64_t seed;
	uint64_t skipped;               /* steps done without an update */
	uint64_t samples;               /* samples that steps consumed */
	uint64_t per_step;              /* samples of a step; 0: not counted */
	bool uncounted;                 /* samples is step * per_step */
	double scale;                   /* the next loss scale, by the rule */
	uint64_t scale_good;            /* good steps since it changed */
	double best;                    /* lowest loss of a validation;
	                                 * infinity: none yet */
	uint64_t worse;                 /* validations since, none lower */
	uint64_t schedule_steps;        /* of the learning rate; 0: none */
};

/* Watches steps.  A function may be NULL; one of `ran` and `waited` has every
 * instruction timed. */
struct observer {
	/* A training step begins; it has ended, perhaps without updates. */
	void (*begin)(void *user);
	ckr_status (*end)(void *user, bool skipped);
	/* Instruction i has run on one rank; moves: between all of them. */
	void (*ran)(void *user, uint32_t i, double from, double to, bool moves);
	/* The process has waited for the transfer that instruction i began. */
	void (*waited)(void *user, uint32_t i, double from, double to);
	/* Instruction i of a micro-batch has run on all ranks here, or is left
	 * to the last one. */
	ckr_status (*after)(void *user, const struct loaded_program *,
	                    uint32_t i);
	void *user;
	struct observer *next;
};

/* Open the libraries that kernels call; blas: as for ckr_open.  with: whose
 * progress and settings of parameters are shared; NULL: has its own. */
ckr_status stepping_open(struct stepping **, struct world *, const char *blas,
                         uint64_t seed, struct stepping *with);
/* Allocate all other memory of steps, when the world has its own. */
ckr_status stepping_open_memory(struct stepping *);
void stepping_close(struct stepping *);

struct progress *stepping_progress(struct stepping *);
/* The observers of steps, first one first. */
struct observer **stepping_observers(struct stepping *);
void stepping_observe(struct stepping *, struct observer *);
void stepping_unobserve(struct stepping *, const struct observer *);
/* What kernels are called with. */
const struct ckr_env *stepping_env(const struct stepping *);
/* Whether the last micro-batch of a step runs, or has run. */
bool stepping_is_last(const struct stepping *);

/* ---- hyper.c ---- */

/* Defaults for this library's optimizer. */
struct ckr_hyper hyper_of_library(const struct ckr_library *);
/* Whether it uses the setting of this name in struct ckr_hyper. */
bool hyper_is_used(const struct ckr_library *, const char *name);
/* Settings of one parameter. */
ckr_status stepping_set_group(struct stepping *, const char *name,
                              double factor, double decay);

/* ---- step.c ---- */

/* CKR_EARG unless no step is under way, of no library that shares the run. */
ckr_status stepping_need_quiet(struct stepping *);
bool stepping_can_begin(const struct stepping *);
ckr_status stepping_begin(struct stepping *, const struct ckr_hyper *);
ckr_status stepping_end(struct stepping *, double *loss);
/* Both in one call. */
ckr_status stepping_step(struct stepping *, const struct ckr_hyper *,
                         double *loss);
/* A step of any program, in parts.  Check settings and make the environment
 * ready. */
ckr_status stepping_prepare(struct stepping *, const struct ckr_hyper *);
/* Tell what watches steps that one begins. */
void stepping_announce(struct stepping *);
/* Run all its micro-batches.  After CKR_ENAN parameters, state and buffers are
 * what they were. */
ckr_status stepping_run(struct stepping *, struct loaded_program *,
                        double *loss);
/* Whether it overflowed and is to be repeated; halves the loss scale if so. */
bool stepping_again(struct stepping *);
/* Count a step that has run or was skipped, and end what watched it.  Returns
 * the given status, or the failure of that. */
ckr_status stepping_done(struct stepping *, ckr_status);

/* ---- eval.c ---- */

/* Run the program that evaluates on the inputs set; loss NULL: without
 * labels. */
ckr_status stepping_eval(struct stepping *, double *loss);
/* Why a library cannot be evaluated; NULL: it can. */
const char *stepping_why_no_eval(const struct stepping *);
/* The program that has run last and whose outputs are valid; NULL: none. */
const struct loaded_program *stepping_outputs(const struct stepping *);

/* ---- count.c ---- */

/* Sets the inputs of a micro-batch; NULL: they are set already. */
typedef ckr_status step_feed_fn(void *user, uint64_t step, uint32_t micro);
void stepping_set_feed(struct stepping *, step_feed_fn *, void *user);
/* CKR_EARG while that function runs: it sets inputs, and does nothing else. */
ckr_status stepping_need_fed(struct stepping *);
/* Whether the step or the count pass that runs now reads input i. */
bool stepping_reads_input(const struct stepping *, uint32_t i);

/* ---- finite_check.c, norm.c, scale.c ---- */

/* CKR_ENAN if a parameter, state or buffer that steps write is not finite. */
ckr_status stepping_check_finite(struct stepping *);
/* Whether steps write shared tensor i before their loss is known. */
bool stepping_writes_early(const struct stepping *, uint32_t i);
/* The norm of all gradients of the last step. */
ckr_status stepping_grad_norm(struct stepping *, double *norm);
enum { SCALE_FIRST = 65536 };
/* Whether the rule can reach this scale. */
bool scale_is_possible(uint64_t);

/* ---- open.c: bytes ---- */

uint64_t stepping_peak_bytes(const struct stepping *);
uint64_t stepping_planned_bytes(const struct stepping *);
uint64_t stepping_held_bytes(const struct stepping *);

#endif
