/* Room frozen: in which type frozen weights are stored (--frozen-dtype).
 *
 * in      a canonical forward graph with its loss
 * out     the same; frozen parameters of 16 bits, or in blocks of quantised
 *         weights, and nodes that convert them
 * must not know gradients, memory and machines
 */
#ifndef PASSES_FROZEN_FROZEN_H
#define PASSES_FROZEN_FROZEN_H

#include "passes/pass.h"

PassFn pass_frozen;

#endif
