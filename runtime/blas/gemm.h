/* Room blas: matrix products and convolutions on the host, by an external
 * library if one is available.
 *
 * in      the name of a library, the table of convolutions
 * out     functions that kernels call through struct ckr_env
 * must not know models and tensors
 */
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
	ckr_sgemm_fn *fn, *one, *tile;  /* sgemm, sgemm_one, sgemm_tile */
	bgemm_fn *bf16;                 /* NULL: as float32 */
	int packs;                      /* packing buffers added to the pool */
	void *onednn;                   /* oneDNN's handle if fn calls oneDNN,
	                                 * never closed; else NULL */
	char text[160];                 /* library, version and kernel */
};

/* name: NULL or "auto", "onednn", "openblas", "own"; "onednn-bf16": products
 * of bf16 by oneDNN even where the processor has no units for them.
 * largest: FLOPs, as ckr_library.largest_product. */
ckr_status gemm_choose(struct gemm *, const char *name, uint64_t largest,
                       int threads, struct err *);
void gemm_release(struct gemm *);
/* Call gemm_begin before products and gemm_end after them: between the two, the
 * library's process-wide settings are ours.  Pairs may nest and overlap. */
void gemm_begin(const struct gemm *);
void gemm_end(const struct gemm *);

/* gemm_own.c: uses this machine's vector instructions; never fails, and
 * allocates nothing.  Without a packing buffer it is slower, with the same
 * bits. */
void gemm_own(int ta, int tb, int64_t m, int64_t n, int64_t k, float alpha,
              const float *a, int64_t lda, const float *b, int64_t ldb,
              float beta, float *c, int64_t ldc);
const char *gemm_own_isa(void);
/* Add n packing buffers to the pool of the process and return how many could be
 * allocated; remove n buffers. */
int gemm_own_add_buffers(int n);
void gemm_own_remove_buffers(int n);

#endif
