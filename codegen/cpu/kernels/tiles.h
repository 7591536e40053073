/* Matrix products of 16-bit floats, tile by tile. */
#ifndef CODEGEN_CPU_KERNELS_TILES_H
#define CODEGEN_CPU_KERNELS_TILES_H

#include "cpu.h"

enum { CKR_HALF_BATCH = 6 };

/* An operand: its bytes (NULL: none), type, row stride, strides of the
 * batch. */
struct ckr_half {
	void *data;
	int type;
	int64_t ld, batch[CKR_HALF_BATCH];
};

/* For each matrix of the batch: y[m,n] = alpha op(a) op(b) + bias + acc, in
 * tiles of at most rows x cols and partial sums over `depth` of k.  A tile of
 * the result is rounded when it is complete. */
struct ckr_half_product {
	int ta, tb, nbatch;
	int64_t extent[CKR_HALF_BATCH];
	int64_t m, n, k, rows, cols, depth;
	float alpha;
	struct ckr_half a, b, bias, acc, y;
};

/* Threads share tiles.  ORDER TILE: product_workspace() counts `each`, the
 * floats of a thread's workspace. */
void ckr_half_matmul(const struct ckr_half_product *p, int64_t each,
                     float *workspace, const struct ckr_env *env);

#endif
