/* What a library of convolutions for GPUs would compute: ckr_env.convolve. */
#ifndef TESTS_CODEGEN_CONVOLVED_H
#define TESTS_CODEGEN_CONVOLVED_H

#include "runtime/ckr_abi.h"

/* env->convs: the table of struct ckr_convolved. */
int convolved(struct ckr_env *env, uint32_t job, void *x, void *w, void *y,
              void *work);

#endif
