/* A rank that holds a shard of a table or of the classes. */
#ifndef CODEGEN_CPU_KERNELS_SHARD_H
#define CODEGEN_CPU_KERNELS_SHARD_H

#include "labels.h"
#include "places.h"

/* As ckr_gather; x [outer, size, row], zeros for rows of other ranks. */
void ckr_gather_part(void *y, const void *x, const void *idx, int idx_bytes,
                     int64_t outer, int64_t size, int64_t nidx, int64_t row,
                     struct ckr_part part, struct ckr_env *env);
/* As ckr_scatter_add; y [outer, size, inner], rows of other ranks are passed
 * over. */
void ckr_scatter_add_part(float *y, const float *acc, const float *upd,
                          const void *idx, int idx_bytes, int64_t outer,
                          int64_t size, int64_t nidx, int64_t inner,
                          struct ckr_part part, struct ckr_env *env);
/* y [rows, 3]: the largest of a row's x [rows, size], the sum of exponentials
 * relative to it, the label's x if the label is this rank's. */
void ckr_vocab_stats(float *y, const float *x, const struct ckr_labels *l,
                     int64_t rows, int64_t size, struct ckr_part part,
                     const struct ckr_env *env);
void ckr_sce_part(float *loss, float *lse, float *denom, const float *stats,
                  const struct ckr_labels *l, int64_t rows, int64_t shared,
                  int reduction, struct ckr_env *env);
/* dx, x: [rows, size]; padding of the last shard gets zeros. */
void ckr_sce_grad_part(float *dx, const float *dloss, const float *x,
                       const struct ckr_labels *l, const float *lse,
                       const float *denom, int64_t rows, int64_t size,
                       struct ckr_part part, int reduction,
                       struct ckr_env *env);

#endif
