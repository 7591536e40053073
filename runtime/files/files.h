/* Room files: weights, checkpoints, gradients, outputs and exports in files.
 *
 * in      files of tensors; a world, and the progress of a run
 * out     tensors in the world, or files of them; what a file lacked
 * must not know   data sets, evaluation, traces
 *
 * All processes make all calls.  A write leaves a whole file or none.
 */
#ifndef RUNTIME_FILES_FILES_H
#define RUNTIME_FILES_FILES_H

#include "runtime/stepping/stepping.h"

struct files;

/* NULL: no memory. */
struct files *files_open(struct world *, struct stepping *);
void files_close(struct files *);

/* As the functions of ckr.h, for an open model and between steps. */
ckr_status files_load_weights(struct files *, const char *path);
ckr_status files_init(struct files *, const char *const *path, size_t n,
                      const struct ckr_init *);
ckr_status files_save(struct files *, const char *path);
ckr_status files_save_async(struct files *, const char *path);
ckr_status files_save_reserve(struct files *, const char *path);
ckr_status files_save_poll(struct files *, bool *done);
ckr_status files_save_wait(struct files *);
ckr_status files_resume(struct files *, const char *path);
ckr_status files_save_outputs(struct files *, const char *path);
ckr_status files_save_grads(struct files *, const char *path);
ckr_status files_save_adapters(struct files *, const char *path);
ckr_status files_save_merged(struct files *, const char *path);
ckr_status files_export_onnx(struct files *, const char *path);

/* The k-th weight that the last files lacked; NULL: there are no more. */
const char *files_missing_weight(const struct files *, size_t k);
/* Host memory of files_save_async in this process. */
uint64_t files_staging_bytes(const struct files *);
/* What of the last files the model does not use, in words. */
const char *files_unused_tensors(const struct files *);

#endif
