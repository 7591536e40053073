/* A context in a run of several processes.  All processes make all calls.  In a
 * run of one process these functions do nothing. */
#ifndef RUNTIME_MODEL_PEERS_H
#define RUNTIME_MODEL_PEERS_H

#include "runtime/model/rt.h"
#include "runtime/team/process_group.h"

/* Take part in the run, if there is one. */
ckr_status peers_open(ckr_ctx *, const struct ckr_options *);
void peers_close(ckr_ctx *);
/* *ranks: number of ranks; fails if it is not `wanted`, unless that is 0. */
ckr_status peers_count(ckr_ctx *, uint32_t wanted, uint32_t *ranks);
/* Set c->world: this process is one rank of it. */
ckr_status peers_assign_ranks(ckr_ctx *);
/* Check that all processes have the same library and the same settings. */
ckr_status peers_compare(ckr_ctx *);
/* Takes the outcome in this process; returns the first failure of any. */
ckr_status peers_agree(ckr_ctx *, ckr_status, const char *what);
/* The same for a step: its earliest failure, and the results of all finite
 * checks. */
ckr_status peers_agree_step(ckr_ctx *, ckr_status, uint64_t order);
/* *any: whether `here` is true in any process. */
ckr_status peers_any(ckr_ctx *, bool here, bool *any);
/* Whether this process is the first, which prints and writes files. */
bool peers_first(const ckr_ctx *);

#endif
