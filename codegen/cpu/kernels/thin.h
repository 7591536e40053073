/* Convolutions of one input channel per group. */
#ifndef CODEGEN_CPU_KERNELS_THIN_H
#define CODEGEN_CPU_KERNELS_THIN_H

#include "conv.h"

/* Which weight, and where its run begins among the phases of x; for dx, how
 * far before the element of a phase that it adds to. */
struct ckr_tap {
	int32_t weight, at;
};

/* The copies of a task, in floats; struct conv_thin says more. */
struct ckr_thin {
	int64_t images;
	int64_t phases[3], room[3];
	int64_t image, size, all;       /* of an image in a phase, of a phase,
	                                 * of all */
	int64_t run, lead;              /* of y, of the zeros before it */
	const struct ckr_tap *tap;
	const int64_t *ends;            /* dx: taps up to the end of a phase */
};

void ckr_thins_conv(const struct ckr_conv *c, const struct ckr_thin *t,
                    float *y, const float *x, const float *w,
                    const float *bias, float *workspace,
                    const struct ckr_env *env);
void ckr_thins_dx(const struct ckr_conv *c, const struct ckr_thin *t,
                  float *dx, const float *dy, const float *w,
                  const float *bias, float *workspace,
                  const struct ckr_env *env);
void ckr_thins_dw(const struct ckr_conv *c, const struct ckr_thin *t,
                  float *dw, const float *x, const float *dy, float *workspace,
                  const struct ckr_env *env);

#endif
