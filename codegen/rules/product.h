/* A matmul as products of matrices in memory. */
#ifndef CODEGEN_RULES_PRODUCT_H
#define CODEGEN_RULES_PRODUCT_H

#include "codegen/rules/emit.h"

struct matrix {
	bool trans;                     /* transposed in memory */
	int64_t ld;                     /* elements from row to row */
	int64_t batch[MAX_RANK];        /* strides for the batch's dims */
};

/* For each matrix of the batch: y[m, n] = op(a)[m, k] op(b)[k, n].  y has no
 * gaps. */
struct matmul_product {
	int nbatch;                     /* dims of the batch, and their */
	int64_t extent[MAX_RANK];       /* ... extents */
	int64_t m, n, k;
	struct matrix a, b;
	int64_t out[MAX_RANK];          /* the result's strides for them */
};

/* `trans` combines the attributes ta, tb with transposed strides.  Batch dims
 * that continue the rows of `a`, while `b` stays the same, are merged into m.
 */
struct matmul_product matmul_product_of(const Val *a, const Val *b,
                                        const Val *y, bool ta, bool tb);
/* " + i0 * 768 + i1 * 64": where matrix (i0, i1, ...) of the batch begins. */
const char *product_offset(struct emit *, const struct matmul_product *,
                           const int64_t *stride);

#endif
