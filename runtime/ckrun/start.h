/* Opens a model with its weights and data, according to the options. */
#ifndef RUNTIME_CKRUN_START_H
#define RUNTIME_CKRUN_START_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/data/data.h"

/* How samples are read out of these files. */
struct data_options start_data(const struct ckrun_options *,
                               const struct option_files *);
/* Open `so`, or go on from a checkpoint, and decide what inputs get.  *m is
 * set as by ckr_open, and data can be closed in any case. */
ckr_status start_model(ckr_ctx **m, struct data *, const struct ckrun_options *,
                       const char *so);
/* That the files which are written at the end could be. */
ckr_status start_files(ckr_ctx *, const struct ckrun_options *);
/* Behind a --save: --keep's FILE.STEP, the same file under a second name, and
 * the end of those that are too many. */
ckr_status keep_saved(ckr_ctx *, const struct ckrun_options *);
/* Settings of the 0-based step `step` of `total`. */
struct ckr_hyper start_hyper(const struct ckrun_options *, uint64_t step,
                             uint64_t total);


/* ---- param_groups.c ---- */

/* "GLOB=F" at its last "=", F a number of 0 or more: the length of the glob and
 * F; false: it is none. */
bool groups_split(const char *text, size_t *glob, double *x);
/* Learning rates and decays of parameters, printed unless quiet; of globs that
 * match a parameter the last counts, and each must match one. */
ckr_status groups_set(ckr_ctx *, const struct ckrun_options *);

#endif
