/* A context in a run of several processes: every process makes all calls. In a
 * run of one process these functions do nothing. */
#ifndef RUNTIME_MODEL_PEERS_H
#define RUNTIME_MODEL_PEERS_H

#include "runtime/model/rt.h"
#include "runtime/team/process_group.h"

/* Take part in the run, if there is one. */
ckr_status peers_open(ckr_ctx *, const struct ckr_options *);
void peers_close(ckr_ctx *);
/* How many ranks there are if `wanted` are wanted, 0: any number. */
ckr_status peers_count(ckr_ctx *, uint32_t wanted, uint32_t *ranks);
/* The world is known: this process is one rank of it. */
ckr_status peers_assign_ranks(ckr_ctx *);
/* That all have the same library, and carry it out alike. */
ckr_status peers_compare(ckr_ctx *);
/* How it ended here, and how it ended: with the failure of any. */
ckr_status peers_agree(ckr_ctx *, ckr_status, const char *what);
/* Of a step: the earliest failure, and what the finite check of any found. */
ckr_status peers_agree_step(ckr_ctx *, ckr_status, uint64_t order);
/* Whether it is so in any. */
ckr_status peers_any(ckr_ctx *, bool here, bool *any);
/* The one that speaks and writes. */
bool peers_first(const ckr_ctx *);

#endif
