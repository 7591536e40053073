/* Room offload: what lies in host memory between its uses.
 *
 * in      a graph with updates, before memory is laid out
 * out     states marked Val.host, transfers around the updates that use them
 * must not know when transfers run (passes/overlap), and how bytes move
 */
#ifndef PASSES_OFFLOAD_OFFLOAD_H
#define PASSES_OFFLOAD_OFFLOAD_H

#include "passes/pass.h"

PassFn pass_offload;

#endif
