/* Room cuda: one machine.
 *
 * in      a node of a planned graph
 * out     the target that passes see (target_cuda); a host function that
 *         launches the kernels of the node (machine_cuda)
 * unaware of schedules and files
 */
#ifndef CODEGEN_CUDA_CUDA_H
#define CODEGEN_CUDA_CUDA_H

#include "codegen/rules/machine.h"

extern const struct target target_cuda;
extern const struct machine machine_cuda;

/* The rules of ops that the CPU's rules do not serve. */
EmitRule cuda_matmul, cuda_matmul_end, cuda_classifier, cuda_grad_norm,
	cuda_sum_squares, cuda_conv, cuda_conv_dx, cuda_conv_dw, cuda_pad,
	cuda_reduce, cuda_resize;

/* Rows of a chunk of logits, which are to be at most so many; 0: any. */
int64_t cuda_classifier_chunk(int64_t rows, int64_t classes, int64_t chunk,
                              int64_t size);

/* ---- nest.c ---- */

bool cuda_nest(struct emit *, const struct loop_nest *);

/* ---- conv.c, reduce.c: scratch of these ---- */

int64_t cuda_conv_bytes(const Graph *, const Node *);
int64_t cuda_reduce_floats(const Graph *, const Node *);

/* ---- work.c ---- */

enum { CUDA_GEMM_BYTES = 32 << 20 };    /* that the library makes use of */

/* n elements of this size, padded; -1: too many. */
int64_t cuda_bytes(int64_t n, int64_t size);
/* struct target's. */
int64_t cuda_workspace(const Graph *, const Node *, int threads);
/* Rows whose gradients of scale and bias are summed one by one. */
int64_t cuda_part_rows(int64_t rows);

/* ---- classifier.c ---- */

int64_t cuda_classifier_bytes(const Graph *, const Node *);

/* ---- attention.c ---- */

/* The columns that kernels on tensor cores have room for; 0: they do not take
 * such heads. */
int cuda_attention_columns(const Val *q, const Val *v);

/* ---- gemm.c ---- */

/* Of operands in other types than they have. */
int64_t cuda_matmul_bytes(const Graph *, const Node *);

/* ---- build.c ---- */

void cuda_command(struct command *, const struct codegen_options *, Arena *);

#endif
