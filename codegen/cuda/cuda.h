/* Room cuda: a target.
 *
 * in      a node of a planned graph
 * out     the target that passes see (target_cuda); a host function that
 *         launches the kernels of the node (emitter_cuda); nvcc's arguments
 *         (compiler_cuda)
 * must not know schedules and files
 */
#ifndef CODEGEN_CUDA_CUDA_H
#define CODEGEN_CUDA_CUDA_H

#include "codegen/cc.h"
#include "codegen/rules/target_emitter.h"

extern const struct target target_cuda;
extern const struct target_emitter emitter_cuda;
extern const struct compiler compiler_cuda;

/* "sm_90", "sm_90a". */
bool cuda_is_arch(const char *);

/* Bytes of n elements of this size, padded; -1: too many. */
static inline int64_t
cuda_bytes(int64_t n, int64_t size)
{
	enum { ALIGN = 256 };
	int64_t all;

	if (n < 0 || !mul_ok(n, size, &all) || all > INT64_MAX / 4)
		return -1;
	return (all + ALIGN - 1) / ALIGN * ALIGN;
}

enum { CUDA_GEMM_BYTES = 32 << 20 };    /* workspace that cuBLASLt can use */

/* ---- ops.c ---- */

/* Rules of ops that differ from the common ones, and workspace. */
extern const struct op_rule cuda_op[OP_COUNT];
/* Rows of one partial sum of the gradients of scale and bias. */
int64_t cuda_part_rows(int64_t rows);

EmitRule cuda_matmul_end, cuda_classifier, cuda_grad_norm, cuda_sum_squares,
	cuda_conv, cuda_conv_dx, cuda_conv_dw, cuda_pad, cuda_resize,
	cuda_expert_matmul, cuda_expert_dw, cuda_expert_slots;
WorkRule cuda_work_matmul, cuda_work_classifier, cuda_work_conv,
	cuda_work_reduce, cuda_work_expert_matmul, cuda_work_expert_dw;

/* ---- for struct target_emitter: nest.c, gemm.c, reduce.c ---- */

bool cuda_nest(struct emit *, const struct loop_nest *);
bool cuda_product(struct emit *, const Node *, const struct matmul_product *);
bool cuda_reduce(struct emit *, const Node *, const struct reduced *);

/* ---- classifier.c ---- */

/* As struct target has it. */
int64_t cuda_classifier_rows(int64_t rows, int64_t classes, bool half);

/* ---- attention.c ---- */

/* Columns of a head in the tensor-core kernel to use; 0: no such kernel takes
 * the heads. */
int cuda_attention_columns(const Val *q, const Val *v);

#endif
