/* Opens a model with its weights and data, according to the options. */
#ifndef RUNTIME_CKRUN_START_H
#define RUNTIME_CKRUN_START_H

#include "runtime/ckrun/ckrun_options.h"
#include "runtime/data/data.h"

/* The settings for reading samples from these files. */
struct data_options start_data(const struct ckrun_options *,
                               const struct option_files *);
/* Open `so`, and load weights or a checkpoint.  *m is set as by ckr_open. */
ckr_status start_weights(ckr_ctx **m, const struct ckrun_options *,
                         const char *so);
/* The same, and choose the sources of inputs.  data can be closed in any case.
 */
ckr_status start_model(ckr_ctx **m, struct data *, const struct ckrun_options *,
                       const char *so);
/* Fails unless the files to be written at the end can be written. */
ckr_status start_files(ckr_ctx *, const struct ckrun_options *);
/* With --ema: use averages in place of parameters, if an update has made any,
 * or the parameters again. */
ckr_status start_averages(ckr_ctx *, const struct ckrun_options *, bool use);
/* Write the ONNX file, and say if it is in training form. */
ckr_status export_onnx(ckr_ctx *, const char *path);
/* Settings of the 0-based step `step` of `total`. */
struct ckr_hyper start_hyper(const struct ckrun_options *, uint64_t step,
                             uint64_t total);


/* ---- param_groups.c ---- */

/* Split "GLOB=F" at its last "=" into the length of the glob and F >= 0; false:
 * it has another form. */
bool groups_split(const char *text, size_t *glob, double *x);
/* Set the learning rates and decays of parameters, and print them unless quiet.
 * The last glob that matches a parameter counts; a glob that matches none is an
 * error. */
ckr_status groups_set(ckr_ctx *, const struct ckrun_options *);

#endif
