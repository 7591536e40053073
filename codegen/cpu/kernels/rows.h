/* Softmax and cross entropy: x is [outer, n, inner], over n. */
#ifndef CODEGEN_CPU_KERNELS_ROWS_H
#define CODEGEN_CPU_KERNELS_ROWS_H

#include "labels.h"

void ckr_softmax(float *y, const float *x, int64_t outer, int64_t n,
                 int64_t inner, int log, const struct ckr_env *env);
void ckr_softmax_grad(float *dx, const float *dy, const float *y, int64_t outer,
                      int64_t n, int64_t inner, int log,
                      const struct ckr_env *env);
/* logp 1: x holds log-probabilities already (nll; lse is NULL then). */
void ckr_sce(float *loss, float *lse, float *denom, const float *x,
             const struct ckr_labels *l, int64_t rows, int64_t n, int64_t inner,
             int reduction, int logp, struct ckr_env *env);
void ckr_sce_grad(float *dx, const float *dloss, const float *x,
                  const struct ckr_labels *l, const float *lse,
                  const float *denom, int64_t rows, int64_t n, int64_t inner,
                  int reduction, struct ckr_env *env);
void ckr_nll_grad(float *dx, const float *dloss, const struct ckr_labels *l,
                  const float *denom, int64_t rows, int64_t n, int64_t inner,
                  int reduction, struct ckr_env *env);

#endif
