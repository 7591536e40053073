/* Reductions of float32: x is [outer, n, inner], over n. */
#ifndef CODEGEN_CPU_KERNELS_REDUCE_H
#define CODEGEN_CPU_KERNELS_REDUCE_H

#include "cpu.h"

enum ckr_reduce { CKR_ADD, CKR_MAX, CKR_MIN, CKR_MUL };

/* x and y are of this type. */
void ckr_reduce_rows(enum ckr_reduce op, void *y, const void *x, int type,
                     int64_t outer, int64_t n, float divisor,
                     const struct ckr_env *env);
/* x and y are of this type. */
void ckr_reduce_columns(enum ckr_reduce op, void *y, const void *x, int type,
                        int64_t outer, int64_t n, int64_t inner, float divisor,
                        const struct ckr_env *env);
/* x is [lead, outer, n], over lead and n. */
void ckr_reduce_planes(enum ckr_reduce op, void *y, const void *x, int type,
                       int64_t lead, int64_t outer, int64_t n, float divisor,
                       const struct ckr_env *env);

#endif
