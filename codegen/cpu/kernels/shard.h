/* A rank that holds a shard of the classes. */
#ifndef CODEGEN_CPU_KERNELS_SHARD_H
#define CODEGEN_CPU_KERNELS_SHARD_H

#include "labels.h"
#include "arith.h"
#include "places.h"

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
