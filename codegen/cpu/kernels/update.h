/* Optimizer steps, accumulation, gradient norm. */
#ifndef CODEGEN_CPU_KERNELS_UPDATE_H
#define CODEGEN_CPU_KERNELS_UPDATE_H

#include "cpu.h"

enum { CKR_NORM_PARTS = 1024, CKR_UPDATE_BLOCK = 1 << 14 };

/* Sum of squares; parts depend on n alone. */
double ckr_norm_part(const float *g, int64_t n, const struct ckr_env *env);

/* The factor of gradients: clipping, and the inverse of the loss scale, which
 * the norm does not contain. */
static inline float
ckr_clip_scale(const float *norm, const struct ckr_env *env)
{
	float clip = norm && env->clip > 0 && *norm > env->clip
	             ? env->clip / *norm : 1.0f;

	return clip * env->unscale;
}

/* Learning rate and weight decay of the parameter being updated.  decay:
 * without a decay of its own it has the step's. */
static inline float
ckr_own_lr(const struct ckr_env *env)
{
	return env->lr * env->group.lr;
}

static inline float
ckr_own_decay(int decay, const struct ckr_env *env)
{
	return env->group.decay >= 0 ? env->group.decay
	       : decay ? env->weight_decay : 0.0f;
}

void ckr_accumulate(float *y, const float *acc, const float *g, int64_t n,
                    const struct ckr_env *env);
void ckr_sgd(float *y, const float *p, const float *g, const float *norm,
             int64_t n, int decay, const struct ckr_env *env);
/* SGD as PyTorch has it: decay is part of the gradient, and the first average
 * is the gradient itself, which starting from 0 makes it.  Sutskever et al.,
 * "On the importance of initialization and momentum", 2013, but for where lr
 * stands. */
void ckr_sgdm(float *y, float *m1, const float *p, const float *g,
              const float *m, const float *norm, int64_t n, int decay,
              const struct ckr_env *env);
/* Chen et al., "Symbolic discovery of optimization algorithms", 2023,
 * algorithm 2.  A NaN stays one. */
void ckr_lion(float *y, float *m1, const float *p, const float *g,
              const float *m, const float *norm, int64_t n, int decay,
              const struct ckr_env *env);
/* Loshchilov and Hutter, "Decoupled weight decay regularization", 2019;
 * coupled: Adam, with the decay in the gradient. */
void ckr_adamw(float *y, float *m1, float *v1, const float *p, const float *g,
               const float *m, const float *v, const float *norm, int64_t n,
               int decay, int coupled, const struct ckr_env *env);

#endif
