/* Convolutions of one input channel per group. */
#ifndef CODEGEN_CPU_KERNELS_THIN_H
#define CODEGEN_CPU_KERNELS_THIN_H

#include "conv.h"

enum { CKR_THIN_TAPS = 1 << 12 };       /* at most */

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
                    void *y, const void *x, const void *w, const void *bias,
                    float *workspace, const struct ckr_env *env);
void ckr_thins_dx(const struct ckr_conv *c, const struct ckr_thin *t,
                  void *dx, const void *dy, const void *w, const void *bias,
                  float *workspace, const struct ckr_env *env);
void ckr_thins_dw(const struct ckr_conv *c, const struct ckr_thin *t,
                  void *dw, const void *x, const void *dy, float *workspace,
                  const struct ckr_env *env);

#endif
