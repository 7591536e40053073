/* The gradient of attention. */
#ifndef CODEGEN_CPU_KERNELS_ATTENTION_GRAD_H
#define CODEGEN_CPU_KERNELS_ATTENTION_GRAD_H

#include "attention.h"

struct ckr_attention_grad {
	const void *d_o, *q, *k, *v, *o, *mask;
	const float *lse;
	void *dq, *dk, *dv;                     /* NULL: not wanted */
	int64_t start[3];                       /* where in these it begins */
};

void ckr_attention_grad(const struct ckr_attention *a,
                        const struct ckr_attention_grad *p, float *workspace,
                        const struct ckr_env *env);

#endif
