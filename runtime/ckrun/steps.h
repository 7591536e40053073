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
	double at;                      /* seconds */
	bool warned;                    /* a warning of its data, or before */
};

struct step_queue {
	const struct ckrun_options *o;
	ckr_ctx *m;
	const struct data *data;
	uint64_t total, before;         /* in all; done before this run */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* of all gradients */
	uint64_t skipped;               /* steps of this run by --on-nan */
	uint64_t overflows;             /* ... and by the loss scale */
	struct ckr_checked checked;
	struct pending_step pending[STEPS_AHEAD];
	uint32_t first, count;          /* of them, counted on and on */
	double started, ended;          /* the first one, the last one; in
	                                 * seconds */
};

/* Whether no step of this run has come to gradients. */
bool steps_only_skipped(const struct step_queue *);
/* Begin the next step. */
ckr_status steps_begin(struct step_queue *);
/* Whether the one behind those begun can be begun now, and the state between
 * is not wanted. */
bool steps_can_begin(const struct step_queue *);
/* End the first one begun: its row; *odd: its data has a warning. */
ckr_status steps_end(struct step_queue *, struct step_row *, bool *warned);

#endif
