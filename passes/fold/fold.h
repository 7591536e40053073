/* Room fold: compute everything that is known before a step runs.
 *
 * in      a graph as imported: symbolic extents, shape arithmetic, recurrences
 * out     static shapes; constants and static operands computed, dead nodes
 *         gone
 * must not know training, memory and machines
 */
#ifndef PASSES_FOLD_FOLD_H
#define PASSES_FOLD_FOLD_H

#include "passes/pass.h"

PassFn pass_bind, pass_fold;

#endif
