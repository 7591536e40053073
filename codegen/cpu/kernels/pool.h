/* Pools and resampling. */
#ifndef CODEGEN_CPU_KERNELS_POOL_H
#define CODEGEN_CPU_KERNELS_POOL_H

#include "cpu.h"
#include "windows.h"

/* y or idx may be NULL. */
void ckr_maxpool(const struct ckr_pool *p, float *y, int32_t *idx,
                 const float *x, const struct ckr_env *env);
void ckr_maxpool_grad(float *dx, const float *dy, const int32_t *idx,
                      int64_t planes, int64_t in, int64_t out,
                      const struct ckr_env *env);
void ckr_avgpool(const struct ckr_pool *p, float *y, const float *x,
                 const struct ckr_env *env);
void ckr_avgpool_grad(const struct ckr_pool *p, float *dx, const float *dy,
                      const struct ckr_env *env);

struct ckr_resize {
	int64_t outer, from, to, inner;
	const int32_t *first;           /* row t: entries first[t].. */
	const int32_t *at;
	const float *weight;
	float fill;                     /* rows without entries */
};

void ckr_resize(const struct ckr_resize *r, float *y, const float *x,
                const struct ckr_env *env);

#endif
