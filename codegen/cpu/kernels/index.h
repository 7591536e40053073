/* Indexing and data movement by index. */
#ifndef CODEGEN_CPU_KERNELS_INDEX_H
#define CODEGEN_CPU_KERNELS_INDEX_H

#include "cpu.h"
#include "arith.h"
#include "places.h"

static inline void
ckr_move(void *to, const void *from, int64_t nbytes)
{
	switch (nbytes) {
	case 1: memcpy(to, from, 1); break;
	case 2: memcpy(to, from, 2); break;
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	default: memcpy(to, from, (size_t)nbytes);
	}
}

/* y [outer, nidx, row] from x [outer, size, row], positions of the whole that
 * the part has, zeros elsewhere; row in bytes. */
void ckr_gather(void *y, const void *x, const void *idx, int idx_bytes,
                int64_t outer, int64_t size, int64_t nidx, int64_t row,
                struct ckr_part part, struct ckr_env *env);
/* y [outer, size, inner] = acc, or 0, + upd [outer, nidx, inner] at idx, where
 * the part has that.  A target row belongs to one thread and takes its updates
 * in the order of idx. */
void ckr_scatter_add(float *y, const float *acc, const float *upd,
                     const void *idx, int idx_bytes, int64_t outer,
                     int64_t size, int64_t nidx, int64_t inner,
                     struct ckr_part part, struct ckr_env *env);
void ckr_gather_elements(void *y, const void *x, const void *idx, int idx_bytes,
                         int size, int rank, int axis, const int64_t *dim,
                         const int64_t *idim, int64_t nidx,
                         struct ckr_env *env);
/* Indices may repeat: in order, by one thread.  add_dtype 0: replace. */
void ckr_scatter_elements(void *y, const void *x, int64_t n, const void *idx,
                          int idx_bytes, const void *upd, int size,
                          int add_dtype, int how, int rank, int axis,
                          const int64_t *dim, const int64_t *idim, int64_t nidx,
                          struct ckr_env *env);
/* x [batch, dim..., row], idx [batch, nidx, depth], y [batch, nidx, row]; row
 * in bytes, nslice the product of dim. */
void ckr_gather_nd(void *y, const void *x, const void *idx, int idx_bytes,
                   int64_t batch, int64_t nidx, int depth, const int64_t *dim,
                   int64_t nslice, int64_t row, struct ckr_env *env);
void ckr_scatter_nd(void *y, const void *x, int64_t nbytes, const void *idx,
                    int idx_bytes, const void *upd, int64_t nidx, int depth,
                    const int64_t *dim, int64_t row, int size, int add_dtype,
                    int how, struct ckr_env *env);
void ckr_pad(void *y, const void *x, int size, int rank, int64_t mode,
             const int64_t *dim, const int64_t *stride, const int64_t *odim,
             const int64_t *begin, const struct ckr_env *env);
void ckr_trilu(void *y, const void *x, int size, int64_t outer, int64_t rows,
               int64_t cols, int64_t upper, int64_t k,
               const struct ckr_env *env);

#endif
