/* Matrix products: somebody else's library if there is one. */
#ifndef CKR_GEMM_H
#define CKR_GEMM_H

#include <stdint.h>

#include "runtime/err.h"

/* As ckr_env.sgemm: row-major C[m,n] = alpha op(A) op(B) + beta C.  With beta
 * 0 C is not read. */
typedef void sgemm_fn(int ta, int tb, int64_t m, int64_t n, int64_t k,
                      float alpha, const float *a, int64_t lda,
                      const float *b, int64_t ldb, float beta, float *c,
                      int64_t ldc);

struct gemm {
	sgemm_fn *fn;
	void *onednn;                   /* its handle, if that is what fn
	                                 * calls; stays open */
	char text[160];                 /* which library, version, kernel */
};

/* name: NULL or "auto", "onednn", "openblas", "own". */
ckr_status gemm_choose(struct gemm *, const char *name, int threads,
                       struct err *);

/* gemm_own.c: runs on this machine's vectors; never fails. */
void gemm_own(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb,
              float beta, float *c, int64_t ldc);
const char *gemm_own_isa(void);
/* Take the packing memory before the first step. */
void gemm_own_prepare(int threads);

#endif
