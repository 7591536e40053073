/* A matmul as products of matrices in memory. */
#ifndef CODEGEN_RULES_PRODUCT_H
#define CODEGEN_RULES_PRODUCT_H

#include "codegen/rules/emit.h"

struct matrix {
	bool trans;                     /* as it lies in memory */
	int64_t ld;
	int64_t batch[MAX_RANK];        /* strides of the result's lead dims */
};

/* Of each of the batch: y[m, n] = op(a)[m, k] op(b)[k, n]; y without gaps. */
struct matmul_product {
	int nbatch;
	int64_t extent[MAX_RANK];
	int64_t m, n, k;
	struct matrix a, b;
	int64_t out[MAX_RANK];          /* result's strides of the lead dims */
};

/* Transposes, in the attributes or in the strides, are trans; leading dims that
 * continue the rows of `a` while `b` stays the same are rows. */
struct matmul_product matmul_product_of(const Val *a, const Val *b,
                                        const Val *y, bool ta, bool tb);
/* " + i0 * 768 + i1 * 64": where matrix (i0, i1, ...) of the batch begins. */
const char *product_offset(struct emit *, const struct matmul_product *,
                           const int64_t *stride);
/* Products of types that no library knows: a work item per row, sums in
 * order. */
void product_plain(struct emit *, const Node *, const struct matmul_product *);

#endif
