/* Room plain: a third machine, for tests: C on one thread of the host, with
 * naive loops for all that the common rules print, and the host's kernels for
 * the rest.
 *
 * in      a node of a planned graph
 * out     what a row of struct machine names
 * must not know schedules and files
 */
#ifndef TESTS_MACHINE_PLAIN_H
#define TESTS_MACHINE_PLAIN_H

#include "codegen/cc.h"
#include "codegen/rules/target_emitter.h"

extern const struct target target_plain;
extern const struct target_emitter emitter_plain;
extern const struct compiler compiler_plain;

#endif
