/* Products of rows with the matrices of their experts. */
#ifndef CODEGEN_CPU_KERNELS_EXPERTS_H
#define CODEGEN_CPU_KERNELS_EXPERTS_H

#include "cpu.h"

/* As struct expert_tile of codegen/cpu/tile.h, which see. */
struct ckr_experts {
	int64_t n, experts;             /* rows; matrices */
	int64_t inner, width;           /* of x and y, or of a and b */
	int64_t all, first;             /* experts; that of the first matrix */
	int tb, type, idx_bytes;        /* of all floats; of an index */
	int64_t rows, cols, depth;      /* a tile */
	/* where in workspace tiles begin, floats of a thread's */
	int64_t tiles, thread;
};

struct ckr_slots {
	int64_t n, all, replicas, room;
	int drop, idx_bytes;
};

/* See expert_slots of ir/ops.h; a result may be NULL.  counts: of replicas. */
void ckr_expert_slots(const struct ckr_slots *p, int64_t *slot, int64_t *row,
                      void *expert, const void *idx, int64_t *counts,
                      struct ckr_env *env);
/* y [n, width]: rows of x [n, inner] times matrices of w. */
void ckr_expert_matmul(const struct ckr_experts *p, void *y, const void *x,
                       const void *w, const void *idx, float *workspace,
                       struct ckr_env *env);
/* dw [experts, inner, width] of a [n, inner] and b [n, width]. */
void ckr_expert_dw(const struct ckr_experts *p, void *dw, const void *a,
                   const void *b, const void *idx, float *workspace,
                   struct ckr_env *env);

#endif
