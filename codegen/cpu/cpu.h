/* Room cpu: one machine.
 *
 * in      a node of a planned graph
 * out     what passes ask of a machine (target_cpu); a C function that carries
 *         the node out
 * unaware of schedules, files and compilers
 */
#ifndef CODEGEN_CPU_H
#define CODEGEN_CPU_H

#include "codegen/cpu/emit.h"
#include "ir/target.h"

extern const struct target target_cpu;

/* The body of the kernel of a node into e->out; false after a diagnostic. */
bool cpu_emit(struct emit *e, const Node *);
/* What the kernels written so far need, NEED_*: the ABI, arithmetic, loops. */
void cpu_texts(struct out *, unsigned need);

#endif
