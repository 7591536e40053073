/* Room evaluation: ckrun eval, predict and sample, evaluation of a model on
 * data that it is not trained on.
 *
 * in      a model by ckr.h, data in order
 * out     loss, accuracy, perplexity; predictions in a file
 * must not know steps
 */
#ifndef RUNTIME_CKRUN_EVALUATION_EVALUATION_H
#define RUNTIME_CKRUN_EVALUATION_EVALUATION_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/ckrun/console.h"
#include "runtime/data/data.h"

/* ---- score.c ---- */

/* Before a batch: fails if a signal has come, to any process. */
ckr_status check_interrupted(ckr_ctx *);

/* Pass on a failure of evaluation, with the data that it concerns: "--valid".
 */
ckr_status score_error(ckr_ctx *, const struct data *, const char *what,
                       ckr_status);

/* Whether the library has a loss. */
bool score_exists(ckr_ctx *);
/* Score all samples; stops: a signal ends it.  The last batch is filled up with
 * copies of the last sample, whose contribution, measured by a batch of that
 * sample alone, is subtracted. */
ckr_status score_data(struct score *, ckr_ctx *, struct data *,
                      bool stops);
/* Print a note if the score depends on the batch size, or is not finite and for
 * which row; what: "--data". */
void score_note(const struct score *, struct data *, const char *what);

/* ---- predict.c ---- */

/* Write the rows of an output of the model (NULL: the only one) for all samples
 * to an .npy file. */
ckr_status predict_data(ckr_ctx *, struct data *, const char *output,
                        const char *path);

/* The output of that name, or the only one (NULL), that is no loss and no
 * metric. */
ckr_status find_prediction(ckr_ctx *, const char *name, struct ckr_info *);

/* ---- sample.c ---- */

/* Print --prompt and --length tokens that the model predicts behind it. */
ckr_status sample_text(ckr_ctx *, const struct ckrun_options *);

/* ---- valid.c ---- */

/* Validation beside training. */
struct valid {
	ckr_ctx *m;
	struct data data, *trained;     /* validation data; training data */
	uint64_t every;                 /* steps between validations */
	struct score last;
	bool noted;                     /* score_note has been called */
};

/* Open the data of --valid.  To be closed after a failure too. */
ckr_status valid_open(struct valid *, ckr_ctx *, const struct ckrun_options *,
                      struct data *trained);
void valid_close(struct valid *);
/* Whether the state after step `step` of `total` is to be validated. */
bool valid_is_due(const struct valid *, uint64_t step, uint64_t total);
/* Score the data; *best: this is the best score so far. */
ckr_status valid_run(struct valid *, bool *best);

/* Whether the loss has not improved in the last --patience validations. */
bool valid_stalled(const ckr_ctx *, const struct ckrun_options *);

/* ---- verbs.c ---- */

/* ckrun eval, predict and sample: exit status. */
int eval_run(const struct ckrun_options *);

#endif
