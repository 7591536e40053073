/* Partition of a matrix product over threads. */
#ifndef RUNTIME_BLAS_PARTS_H
#define RUNTIME_BLAS_PARTS_H

#include <stdint.h>

struct gemm_parts {
	int64_t rows, cols;             /* of C's parts; those at its right and
	                                 * lower edges may have fewer */
};

/* The parts of C[m,n] = op(A)[m,k] op(B)[k,n]; m, n, k > 0.  They depend on the
 * shape alone, so that bits do not depend on the number of threads. */
struct gemm_parts gemm_parts_of(int ta, int tb, int64_t m, int64_t n,
                                int64_t k);

#endif
