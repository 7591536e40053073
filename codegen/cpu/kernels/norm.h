/* Layer and RMS normalisation: x is [rows, n]. */
#ifndef CODEGEN_CPU_KERNELS_NORM_H
#define CODEGEN_CPU_KERNELS_NORM_H

#include "cpu.h"

/* Types of x (y, dy and dx are alike), and of scale and bias.  workspace, where
 * one is 16 bits: for each thread two rows, or three for the gradient, behind
 * scale and bias, or the gradients of both.  ORDER TILE: work_norm(). */
struct ckr_norm {
	int64_t rows, n;
	double eps;
	int x, scale;
	float *workspace;
};

void ckr_layernorm(void *y, float *mean, float *rstd, const void *x,
                   const void *scales, const void *biases,
                   const struct ckr_norm *c, const struct ckr_env *env);
void ckr_rmsnorm(void *y, float *rstd, const void *x, const void *scales,
                 const struct ckr_norm *c, const struct ckr_env *env);
/* part holds 2 * n floats (1 * n for rmsnorm: mean NULL) for each
 * `part_rows` rows.  acc NULL: nothing is added to dx. */
void ckr_norm_grad(void *dx, void *dscale, void *dbias, const void *dy,
                   const void *x, const void *scales, const float *mean,
                   const float *rstd, const void *acc, const struct ckr_norm *c,
                   int64_t part_rows, float *part, const struct ckr_env *env);

#endif
