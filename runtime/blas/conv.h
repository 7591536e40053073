/* Convolutions that a model delegates to a library (ckr_library.blocked). */
#ifndef RUNTIME_BLAS_CONV_H
#define RUNTIME_BLAS_CONV_H

#include "runtime/ckr_abi.h"

struct convs;

/* Prepare the convolutions of the list that oneDNN, with this handle, computes
 * efficiently, for so many threads; NULL: there are none.  bf16: products of
 * bf16 have units. */
struct convs *convs_open(void *onednn, const struct ckr_blocked *, uint32_t n,
                         int threads, int bf16);
/* Set the members of the environment by which kernels call them. */
void convs_fill_env(struct convs *, struct ckr_env *);
void convs_close(struct convs *);

#endif
