/* Convolutions on a GPU, by cuDNN if it is available. */
#ifndef RUNTIME_DEVICE_CONVOLUTIONS_H
#define RUNTIME_DEVICE_CONVOLUTIONS_H

#include "runtime/device/device.h"
#include "runtime/device/engine.h"

struct convolutions;

/* The handle of cuDNN 8.9 or later, its functions in *dnn; NULL: why not. */
void *convolutions_library(struct dnn *, char *why, size_t);

/* Prepare the convolutions of the list that cuDNN can compute on the current
 * GPU.  NULL: none; text: the library's name, or why there are none. */
struct convolutions *convolutions_open(struct device *, cu_stream,
                                       const struct ckr_convolved *,
                                       uint32_t n, char *text, size_t);
void convolutions_close(struct convolutions *);
/* ckr_env.convolve; env->convs: the convolutions. */
int convolutions_run(struct ckr_env *, uint32_t i, void *x, void *w, void *y,
                     void *work);

#endif
