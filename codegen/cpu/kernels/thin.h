/* Convolutions of one input channel per group. */
#ifndef CKR_THIN_H
#define CKR_THIN_H

#include "conv.h"

void ckr_thins_conv(const struct ckr_conv *c, float *y, const float *x,
                    const float *w, const float *bias, float *scratch,
                    const struct ckr_env *env);
void ckr_thins_dx(const struct ckr_conv *c, float *dx, const float *dy,
                  const float *w, const float *bias, float *scratch,
                  const struct ckr_env *env);
void ckr_thins_dw(const struct ckr_conv *c, float *dw, const float *x,
                  const float *dy, float *scratch, const struct ckr_env *env);

#endif
