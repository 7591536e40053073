/* Room offload: what lies in host memory between its uses.
 *
 * in      a graph with updates, before memory is laid out
 * out     states and parameters marked Val.host, transfers around the updates
 *         that use them
 * must not know when transfers run (passes/overlap), and how bytes move
 */
#ifndef PASSES_OFFLOAD_OFFLOAD_H
#define PASSES_OFFLOAD_OFFLOAD_H

#include "passes/pass.h"

PassFn pass_offload;

/* Bytes of device memory that states and float32 parameters of this graph,
 * which is laid out, would leave free in host memory, about. */
int64_t offload_would_free(const Graph *, Arena *scratch);
/* Bytes of states and float32 parameters of this graph that leave if host
 * memory has so much room. */
int64_t offload_bytes(const Pass *, const Graph *, int64_t room,
                      Arena *scratch);

#endif
