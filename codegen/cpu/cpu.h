/* Room cpu: a target.
 *
 * in      a node of a planned graph
 * out     the target that passes see (target_cpu); a C function that computes
 *         the node (emitter_cpu)
 * unaware of schedules and files
 */
#ifndef CODEGEN_CPU_CPU_H
#define CODEGEN_CPU_CPU_H

#include "codegen/rules/target_emitter.h"

extern const struct target target_cpu;
extern const struct target_emitter emitter_cpu;

/* The rule of the node's op, whatever its operands' types. */
bool cpu_emit_plain(struct emit *, const Node *);

/* ---- nest.c ---- */

bool cpu_nest(struct emit *, const struct loop_nest *);

/* ---- staging.c ---- */

/* The node on float32 copies of its 16-bit operands (tile_staged()). */
bool emit_staged(struct emit *, const Node *);

/* ---- conv_depthwise.c ---- */

/* "t1" with its tables, where conv_depthwise() fits; by_phase: as conv_dx wants
 * them. */
void emit_depthwise(struct emit *, const Node *, bool by_phase);

/* ---- build.c ---- */

void cpu_command(struct command *, const struct codegen_options *, Arena *);

#endif
