/* Room cuda: one machine.
 *
 * in      a node of a planned graph
 * out     what passes ask of a machine (target_cuda); a function of the host
 *         that launches what carries the node out (machine_cuda)
 * unaware of schedules and files
 */
#ifndef CODEGEN_CUDA_CUDA_H
#define CODEGEN_CUDA_CUDA_H

#include "codegen/rules/machine.h"

extern const struct target target_cuda;
extern const struct machine machine_cuda;

/* The rules of ops that the CPU's rules do not serve. */
EmitRule cuda_matmul;

/* ---- nest.c ---- */

bool cuda_nest(struct emit *, const struct nest *);

/* ---- work.c ---- */

/* struct target's. */
int64_t cuda_workspace(const Graph *, const Node *, int threads);

/* ---- build.c ---- */

void cuda_command(struct command *, const struct codegen_options *, Arena *);

#endif
