/* What a library of convolutions would compute: ckr_env.conv. */
#ifndef TESTS_CODEGEN_BLOCKED_H
#define TESTS_CODEGEN_BLOCKED_H

#include "runtime/ckr_abi.h"

/* Elements of its weights. */
int64_t blocked_weights(const struct ckr_blocked *);
/* convs: the table of struct ckr_blocked. */
void blocked_conv(void *convs, int thread, uint32_t job, void *x, void *w,
                  void *y, void *scratch);

#endif
