/* Convolutions as products over unfolded patches. */
#ifndef CODEGEN_CPU_KERNELS_CONV_H
#define CODEGEN_CPU_KERNELS_CONV_H

#include "cpu.h"

struct ckr_conv {
	int64_t images, group, cin, cout;       /* channels of one group */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
	int64_t taps, in_size, out_size;        /* products of the above */
	int direct;
	int64_t windows;                /* in a block */
	int64_t channels;               /* input channels in a task */
	int64_t parts, each;            /* partial sums; images in each */
	int64_t workspace;                /* floats per thread */
};

#define CKR_FOR_TAPS(c) \
	for (int64_t kd = 0; kd < (c)->kernel[0]; kd++) \
		for (int64_t kh = 0; kh < (c)->kernel[1]; kh++) \
			for (int64_t kw = 0; kw < (c)->kernel[2]; kw++)

static inline void
ckr_zero(float *to, int64_t n)
{
	if (n > 0)
		memset(to, 0, (size_t)n * sizeof *to);
}

void ckr_conv(const struct ckr_conv *c, float *y, const float *x,
              const float *w, const float *bias, float *workspace,
              const struct ckr_env *env);
void ckr_conv_dx(const struct ckr_conv *c, float *dx, const float *dy,
                 const float *w, const float *bias, float *workspace,
                 const struct ckr_env *env);
void ckr_conv_dw(const struct ckr_conv *c, float *dw, const float *x,
                 const float *dy, float *workspace, const struct ckr_env *env);

#endif
