/* Matrix products on a GPU, by cuBLASLt. */
#ifndef RUNTIME_DEVICE_PRODUCTS_H
#define RUNTIME_DEVICE_PRODUCTS_H

#include "runtime/device/cuda_api.h"
#include "runtime/device/device.h"

struct products;

/* NULL after an error. */
struct products *products_open(struct device *, cu_stream);
void products_close(struct products *);
/* ckr_env.gemm; env->gemms: the products. */
void products_run(struct ckr_env *, const struct ckr_gemm *, const void *a,
                  const void *b, const void *bias, const void *c, void *y,
                  void *work, uint64_t bytes);
/* ckr_env.gemm_epilogue. */
int products_run_epilogue(struct ckr_env *, const struct ckr_gemm *,
                           const void *a, const void *b, const void *x,
                           const void *c, void *y, void *sums,
                           void *workspace, uint64_t bytes);

#endif
