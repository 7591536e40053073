/* Room cpu: a target.
 *
 * in      a node of a planned graph
 * out     the target that passes see (target_cpu); a C function that computes
 *         the node (emitter_cpu); the C compiler's arguments (compiler_cpu)
 * must not know schedules and files
 */
#ifndef CODEGEN_CPU_CPU_H
#define CODEGEN_CPU_CPU_H

#include "codegen/cc.h"
#include "codegen/rules/target_emitter.h"

extern const struct target target_cpu;
extern const struct target_emitter emitter_cpu;
extern const struct compiler compiler_cpu;
/* Its kernels, for all machines that run on the host. */
extern const char *const cpu_texts[];

/* ---- for struct target_emitter: nest.c, gemm.c, reduce.c ---- */

bool cpu_nest(struct emit *, const struct loop_nest *);
bool cpu_product(struct emit *, const Node *, const struct matmul_product *);
bool cpu_reduce(struct emit *, const Node *, const struct reduced *);

/* ---- conv_depthwise.c ---- */

/* "t1" with its tables, where conv_depthwise() fits; by_phase: as conv_dx wants
 * them. */
void emit_depthwise(struct emit *, const Node *, bool by_phase);

/* ---- ops.c ---- */

/* Rules of ops that differ from the common ones, and workspace of kernels on
 * float32. */
extern const struct op_rule cpu_op[OP_COUNT];

EmitRule cpu_classifier, cpu_conv, cpu_conv_dx, cpu_conv_dw, cpu_expert_matmul,
	cpu_expert_dw, cpu_expert_slots;

/* ---- staging.c ---- */

/* Kernels that are written for float32 alone see 16-bit operands as float32
 * copies in front of their own workspace (conversion staging).  True if this
 * node has such operands and such a kernel. */
bool staging_needed(const Graph *, const Node *);
/* Bytes of copies and workspace of such a node; -1: too many. */
int64_t staging_bytes(const Graph *, const Node *, int threads);
/* Such a node, on copies. */
bool staging_emit(struct emit *, const Node *);

#endif
