/* Determinants of square matrices. */
#ifndef CODEGEN_CPU_KERNELS_DET_H
#define CODEGEN_CPU_KERNELS_DET_H

#include "cpu.h"

void ckr_det(float *y, const float *x, double *workspace, int64_t count,
             int64_t n, const struct ckr_env *env);
void ckr_det_grad(float *dx, const float *dy, const float *x, double *workspace,
                  int64_t count, int64_t n, const struct ckr_env *env);

#endif
