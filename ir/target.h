/* The interface between passes and code generation: a target.
 *
 * Passes use only this struct; each target's room in codegen/ defines one.
 */
#ifndef IR_TARGET_H
#define IR_TARGET_H

#include "ir/ir.h"

/* Fusions that a target has kernels for. */
enum {
	FUSE_CLASSIFIER = 1,            /* last linear, loss and gradients */
	FUSE_PACKED = 2,                /* attention's gradients side by side */
	FUSE_ACCUMULATE = 4,            /* products that add to an operand */
	FUSE_COPIES = 8,                /* updates that write 16-bit copies: all
	                                 * targets can, the bit says that it is
	                                 * worth it */
	FUSE_PRETRANSPOSED = 16,        /* small products whose right side is
	                                 * transposed ahead, once */
	FUSE_EPILOGUES = 32,            /* 16-bit products whose epilogues are
	                                 * GELU's gradient and sums */
	FUSE_FROZEN = 64,               /* products whose right side is a frozen
	                                 * parameter of fewer bits, which they
	                                 * convert tile by tile to the left
	                                 * side's type */
	FUSE_EXPERTS = 128,             /* products of rows with matrices by
	                                 * index, which are not copied */
};

struct target {
	int64_t align;                  /* bytes: every place and size is a
	                                 * multiple */
	unsigned fuses;                 /* FUSE_* */
	/* Bytes of workspace of the node's kernel, a multiple of `align`;
	 * 0: none; -1: more than 62 bits hold. */
	int64_t (*workspace)(const Graph *, const Node *, int threads);
	/* Rows of logits that exist at a time in a fused classifier; half: all
	 * operands have 16 bits. */
	int64_t (*classifier_rows)(int64_t rows, int64_t classes, bool half);
};

#endif
