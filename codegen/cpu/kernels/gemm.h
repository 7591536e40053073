/* Preparation of matrix products. */
#ifndef CODEGEN_CPU_KERNELS_GEMM_H
#define CODEGEN_CPU_KERNELS_GEMM_H

#include "cpu.h"

/* y[rows, n] = bias + acc; either may be absent, acc may be y. */
void ckr_prefill(float *y, const float *bias, const float *acc, int64_t rows,
                 int64_t n, const struct ckr_env *env);

#endif
