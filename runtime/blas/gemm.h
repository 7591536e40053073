/* Matrix products, by an external library if one is available. */
#ifndef RUNTIME_BLAS_GEMM_H
#define RUNTIME_BLAS_GEMM_H

#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/ckr_abi.h"

/* As ckr_env.bgemm. */
typedef void bgemm_fn(int ta, int tb, int64_t m, int64_t n, int64_t k,
                      float alpha, const uint16_t *a, int64_t lda,
                      const uint16_t *b, int64_t ldb, float beta, float *c,
                      int64_t ldc);

struct gemm {
	ckr_sgemm_fn *fn, *one;         /* sgemm, sgemm_one */
	bgemm_fn *bf16;                 /* NULL: as float32 */
	int packs;                      /* packing buffers it added */
	void *onednn;                   /* its handle, if that is what fn
	                                 * calls; stays open */
	char text[160];                 /* which library, version, kernel */
};

/* name: NULL or "auto", "onednn", "openblas", "own"; "onednn-bf16": products
 * of bf16 by oneDNN even where the processor has no units for them. */
ckr_status gemm_choose(struct gemm *, const char *name, int threads,
                       struct err *);
void gemm_release(struct gemm *);
/* Around products: what of the library's settings holds for the whole process
 * is changed only in between.  Pairs may nest and overlap. */
void gemm_begin(const struct gemm *);
void gemm_end(const struct gemm *);

/* gemm_own.c: runs on this machine's vectors; never fails, and takes no
 * memory.  Without a packing buffer it is slower, with the same bits. */
void gemm_own(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb,
              float beta, float *c, int64_t ldc);
const char *gemm_own_isa(void);
/* Add n packing buffers to the pool of the process, and remove as many; returns
 * how many could be had. */
int gemm_own_add_buffers(int n);
void gemm_own_remove_buffers(int n);

#endif
