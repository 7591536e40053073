/* Room context_parallel: positions of samples shared out to replicas (--cp).
 *
 * in      a canonical forward graph of the replicas that have the same
 *         samples, with its loss; --cp, and which dims have positions
 * out     the same graph for a part of the positions
 * must not know ranks that share a replica, backward and memory
 */
#ifndef PASSES_CONTEXT_PARALLEL_CONTEXT_PARALLEL_H
#define PASSES_CONTEXT_PARALLEL_CONTEXT_PARALLEL_H

#include "passes/pass.h"

PassFn pass_context;

#endif
