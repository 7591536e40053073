/* Room cuda: a target.
 *
 * in      a node of a planned graph
 * out     the target that passes see (target_cuda); a host function that
 *         launches the kernels of the node (emitter_cuda)
 * unaware of schedules and files
 */
#ifndef CODEGEN_CUDA_CUDA_H
#define CODEGEN_CUDA_CUDA_H

#include "codegen/rules/target_emitter.h"

extern const struct target target_cuda;
extern const struct target_emitter emitter_cuda;

/* Rules of ops that differ from the CPU's. */
EmitRule cuda_matmul, cuda_matmul_end, cuda_classifier, cuda_grad_norm,
	cuda_sum_squares, cuda_conv, cuda_conv_dx, cuda_conv_dw, cuda_pad,
	cuda_reduce, cuda_resize;

/* Rows of a chunk of logits; chunk: their upper limit, 0: none. */
int64_t cuda_classifier_chunk(int64_t rows, int64_t classes, int64_t chunk,
                              int64_t size);

/* ---- nest.c ---- */

bool cuda_nest(struct emit *, const struct loop_nest *);

/* ---- conv.c, reduce.c: workspace of these ---- */

int64_t cuda_conv_bytes(const Graph *, const Node *);
int64_t cuda_reduce_floats(const Graph *, const Node *);

/* ---- work.c ---- */

enum { CUDA_GEMM_BYTES = 32 << 20 };    /* workspace that cuBLASLt can use */

/* Bytes of n elements of this size, padded; -1: too many. */
int64_t cuda_bytes(int64_t n, int64_t size);
/* As struct target has it. */
int64_t cuda_workspace(const Graph *, const Node *, int threads);
/* Rows of one partial sum of the gradients of scale and bias. */
int64_t cuda_part_rows(int64_t rows);

/* ---- classifier.c ---- */

int64_t cuda_classifier_bytes(const Graph *, const Node *);

/* ---- attention.c ---- */

/* Columns of a head in the tensor-core kernel to use; 0: no such kernel takes
 * the heads. */
int cuda_attention_columns(const Val *q, const Val *v);

/* ---- gemm.c ---- */

/* Bytes of operands that are converted to another type. */
int64_t cuda_matmul_bytes(const Graph *, const Node *);

/* ---- build.c ---- */

void cuda_command(struct command *, const struct codegen_options *, Arena *);

#endif
