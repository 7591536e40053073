/* Batch normalisation: x is [images, channels, size]. */
#ifndef CODEGEN_CPU_KERNELS_BATCHNORM_H
#define CODEGEN_CPU_KERNELS_BATCHNORM_H

#include "cpu.h"

/* Extents and type of x, and of its results and gradients; scale, bias and
 * statistics are float32. */
struct ckr_batchnorm {
	int64_t images, channels, size;
	double eps;
	int type;
};

/* y, mean and var may each be NULL, scale and bias too. */
void ckr_batchnorm(void *y, float *mean, float *var, const void *x,
                   const float *scale, const float *bias,
                   const struct ckr_batchnorm *p, const struct ckr_env *env);
/* dx, dscale and dbias may each be NULL, scale too. */
void ckr_batchnorm_grad(void *dx, float *dscale, float *dbias, const void *dy,
                        const void *x, const float *mean, const float *var,
                        const float *scale, const struct ckr_batchnorm *p,
                        const struct ckr_env *env);
/* The running statistic y is stat, overwritten. */
void ckr_bn_update(float *y, const float *stat, const float *new, int64_t n,
                   double momentum, const struct ckr_env *env);

#endif
