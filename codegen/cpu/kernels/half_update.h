/* Optimizer steps of 16-bit parameters and states. */
#ifndef CODEGEN_CPU_KERNELS_HALF_UPDATE_H
#define CODEGEN_CPU_KERNELS_HALF_UPDATE_H

#include "cpu.h"

enum { CKR_HALF_BLOCK = 2048 };

double ckr_half_norm_part(const void *g, int type, int64_t n,
                          const struct ckr_env *env);

/* How a rank's shard of a parameter lies in the whole: shard number `shard`
 * with `size` of each segment of the sharded dim, `local` in all.  The update
 * begins with the shard's element `first`. */
struct ckr_shard {
	int64_t first, shard, inner, local;
	int nsegment;
	int64_t segment[CKR_MAX_DIMS], size[CKR_MAX_DIMS];
};

/* Types of what is updated, of the gradient and of the states; stream of the
 * rounding, whose words are those of elements of the whole.  shard NULL: y is
 * not sharded.  copy: the type of a copy of the new parameter, rounded to
 * nearest; CKR_NONE: there is none. */
struct ckr_half_types {
	int y, g, state;
	uint32_t stream;
	const struct ckr_shard *shard;
	int copy;
};

/* A parameter's new value. */
void ckr_half_store(void *y, void *copy, struct ckr_half_types t, int64_t at,
                    float *x, int64_t n, const struct ckr_env *env);
void ckr_half_accumulate(void *y, const void *acc, const void *g,
                         struct ckr_half_types t, int64_t n,
                         const struct ckr_env *env);
void ckr_half_sgd(void *y, void *copy, const void *p, const void *g,
                  const float *norm, struct ckr_half_types t, int64_t n,
                  int decay, const struct ckr_env *env);
void ckr_half_sgdm(void *y, void *m1, void *copy, const void *p, const void *g,
                   const void *m, const float *norm, struct ckr_half_types t,
                   int64_t n, int decay, const struct ckr_env *env);
void ckr_half_lion(void *y, void *m1, void *copy, const void *p, const void *g,
                   const void *m, const float *norm, struct ckr_half_types t,
                   int64_t n, int decay, const struct ckr_env *env);
void ckr_half_adamw(void *y, void *m1, void *v1, void *copy, const void *p,
                    const void *g, const void *m, const void *v,
                    const float *norm, struct ckr_half_types t, int64_t n,
                    int decay, int coupled, const struct ckr_env *env);

#endif
