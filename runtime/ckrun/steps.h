/* The steps of a run.  If the model supports it, one step is begun ahead of the
 * one that is reported.  Steps end in order, each with a row of the log. */
#ifndef RUNTIME_CKRUN_STEPS_H
#define RUNTIME_CKRUN_STEPS_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/data/data.h"
#include "runtime/ckrun/console.h"

enum { STEPS_AHEAD = 2 };

/* A step that was begun and has not ended. */
struct pending_step {
	struct ckr_hyper hyper;
	double at;                      /* time when it began, in seconds */
	bool warned;                    /* its data, or earlier ones, caused a
	                                 * warning */
};

struct step_queue {
	const struct ckrun_options *o;
	ckr_ctx *m;
	const struct data *data;
	uint64_t total, before;         /* steps in all; before this run */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* the norm of all gradients is known */
	uint64_t skipped;               /* steps that --on-nan skipped */
	uint64_t overflows;             /* steps skipped by the loss scale */
	struct ckr_checked checked;
	struct pending_step pending[STEPS_AHEAD];
	uint32_t first, count;          /* pending steps: step k is at index
	                                 * k % STEPS_AHEAD */
	double started, ended;          /* seconds: start of the first step, end
	                                 * of the last */
};

/* Whether all steps of this run were skipped. */
bool steps_only_skipped(const struct step_queue *);
/* Begin the next step. */
ckr_status steps_begin(struct step_queue *);
/* Whether another step can be begun now: the model supports it, and nobody
 * needs the state in between. */
bool steps_can_begin(const struct step_queue *);
/* End the first pending step and fill its row; *warned: its data caused a
 * warning. */
ckr_status steps_end(struct step_queue *, struct step_row *, bool *warned);

#endif
