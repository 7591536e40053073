/* Convolutions as products over unfolded patches. */
#ifndef CODEGEN_CPU_KERNELS_CONV_H
#define CODEGEN_CPU_KERNELS_CONV_H

#include "half.h"

/* Operands are float32, or bf16 where env.bgemm is there. */
struct ckr_conv {
	int type;
	int64_t images, group, cin, cout;       /* channels of one group */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
	int64_t taps, in_size, out_size;        /* products of the above */
	int direct;
	int64_t windows;                /* in a block */
	int64_t channels;               /* input channels in a task */
	int64_t parts, each;            /* partial sums; images in each */
	int64_t room;                   /* where float32 sums of a task of
	                                 * bf16 are in workspace */
	int64_t workspace;                /* floats per thread */
};

#define CKR_FOR_TAPS(c) \
	for (int64_t kd = 0; kd < (c)->kernel[0]; kd++) \
		for (int64_t kh = 0; kh < (c)->kernel[1]; kh++) \
			for (int64_t kw = 0; kw < (c)->kernel[2]; kw++)

/* n elements, `to_step` and `from_step` apart. */
static inline void
ckr_copy_elements(void *to, int64_t to_step, const void *from,
                  int64_t from_step, int type, int64_t n)
{
	if (type == CKR_F32)
		for (int64_t i = 0; i < n; i++)
			((float *)to)[i * to_step] =
				((const float *)from)[i * from_step];
	else
		for (int64_t i = 0; i < n; i++)
			((uint16_t *)to)[i * to_step] =
				((const uint16_t *)from)[i * from_step];
}

void ckr_conv(const struct ckr_conv *c, void *y, const void *x, const void *w,
              const void *bias, float *workspace, const struct ckr_env *env);
void ckr_conv_dx(const struct ckr_conv *c, void *dx, const void *dy,
                 const void *w, const void *bias, float *workspace,
                 const struct ckr_env *env);
void ckr_conv_dw(const struct ckr_conv *c, void *dw, const void *x,
                 const void *dy, float *workspace, const struct ckr_env *env);

#endif
