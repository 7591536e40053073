/* Sampling at the positions of a grid. */
#ifndef CODEGEN_CPU_KERNELS_SAMPLE_H
#define CODEGEN_CPU_KERNELS_SAMPLE_H

#include "cpu.h"
#include "spots.h"

void ckr_grid_sample(const struct ckr_sample *s, float *y, const float *x,
                     const float *grid, const struct ckr_env *env);
void ckr_grid_sample_dx(const struct ckr_sample *s, float *dx, const float *dy,
                        const float *grid, const struct ckr_env *env);
void ckr_grid_sample_dgrid(const struct ckr_sample *s, float *dgrid,
                           const float *dy, const float *x, const float *grid,
                           const struct ckr_env *env);

#endif
