/* Convolutions by a library that wants channels in blocks. */
#ifndef CODEGEN_CPU_KERNELS_CONV_BLOCKS_H
#define CODEGEN_CPU_KERNELS_CONV_BLOCKS_H

#include "conv.h"

/* Channels side by side. */
#ifdef __AVX512F__
#define CKR_BLOCK 16
#else
#define CKR_BLOCK 8
#endif

struct ckr_blocks {
	uint32_t job;                   /* in ckr_library.blocked */
	int point;                      /* 1x1: x is sampled beforehand */
	int64_t cin, cout;              /* padded; cin may be plain */
	int64_t images, lines, channels, halo, each;
	int64_t extent[2];
	int64_t weights, x, y, w, scratch;      /* floats */
};

static inline int
ckr_has_blocks(const struct ckr_blocks *b, const struct ckr_env *env)
{
	return env->conv_ready && env->conv_ready[b->job];
}

void ckr_blocks_conv(const struct ckr_conv *c, const struct ckr_blocks *b,
                     void *y, const void *x, const void *w, const void *bias,
                     float *workspace, const struct ckr_env *env);
void ckr_blocks_dx(const struct ckr_conv *c, const struct ckr_blocks *b,
                   void *dx, const void *dy, const void *w, const void *bias,
                   float *workspace, const struct ckr_env *env);
void ckr_blocks_dw(const struct ckr_conv *c, const struct ckr_blocks *b,
                   void *dw, const void *x, const void *dy, float *workspace,
                   const struct ckr_env *env);

#endif
