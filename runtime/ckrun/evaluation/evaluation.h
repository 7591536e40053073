/* ckrun eval and ckrun predict: evaluation of a model on data that it is not
 * trained on.
 *
 * in      a model by ckr.h, data in order
 * out     loss, accuracy, perplexity; predictions in a file
 * unaware of steps
 */
#ifndef RUNTIME_CKRUN_EVALUATION_EVALUATION_H
#define RUNTIME_CKRUN_EVALUATION_EVALUATION_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/ckrun/console.h"
#include "runtime/data/data.h"

/* ---- score.c ---- */

/* Before a batch: fails if a signal has come, to any process. */
ckr_status check_interrupted(ckr_ctx *);

/* What evaluation met, as a fault of the data it is about: "--valid". */
ckr_status score_error(ckr_ctx *, const struct data *, const char *what,
                       ckr_status);

/* Of all samples; stops: a signal ends it.  Behind the end of the data a batch
 * is filled up with the last sample, and what that adds is taken out again: a
 * batch of that sample alone gives it. */
ckr_status score_data(struct score *, ckr_ctx *, struct data *,
                      bool stops);
/* Say that it depends on the size of batches, or is not finite and for which
 * row, if so; what: "--data". */
void score_note(const struct score *, struct data *, const char *what);

/* ---- predict.c ---- */

/* The rows that an output of the model (NULL: the only one) has for all
 * samples, as an .npy file. */
ckr_status predict_data(ckr_ctx *, struct data *, const char *output,
                        const char *path);

/* ---- valid.c ---- */

/* Validation beside training. */
struct valid {
	ckr_ctx *m;
	struct data data, *trained;     /* not trained on; trained on */
	uint64_t every;
	struct score last;
	bool noted;                     /* score_note has been called */
};

/* Open the data of --valid beside those of training.  It can be closed in any
 * case. */
ckr_status valid_open(struct valid *, ckr_ctx *, const struct ckrun_options *,
                      struct data *trained);
void valid_close(struct valid *);
/* Whether the state after step `step` of `total` is to be validated. */
bool valid_is_due(const struct valid *, uint64_t step, uint64_t total);
/* Score the data; *best: better than ever before. */
ckr_status valid_run(struct valid *, bool *best);

/* Whether the loss has not been lower for as long as --patience has it. */
bool valid_stalled(const ckr_ctx *, const struct ckrun_options *);

/* ---- verbs.c ---- */

/* ckrun eval, ckrun predict: exit status. */
int eval_run(const struct ckrun_options *);

#endif
