/* Collectives between the ranks of one process. */
#ifndef RUNTIME_RANKS_COMM_H
#define RUNTIME_RANKS_COMM_H

#include "runtime/ranks/sharding.h"

/* One collective.  x[r], y[r]: operands of rank r, without gaps. */
struct comm {
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	void *const *x, *const *y;
	uint32_t ranks;
	int threads;
};

/* Whether it is between a device and host memory, not between ranks. */
static inline bool
comm_is_host(const struct ckr_comm *c)
{
	return c->kind == CKR_FETCH || c->kind == CKR_OFFLOAD;
}

/* Whether it is a message from one stage to another. */
static inline bool
comm_is_message(const struct ckr_comm *c)
{
	return c->kind == CKR_SEND || c->kind == CKR_RECEIVE;
}

/* Elements of one rank's tensor. */
uint64_t comm_nelem(const struct ckr_tensor *);
/* Bytes that each rank sends by ring algorithms; all_reduce is reduce_scatter
 * and all_gather (Thakur et al. 2005).  0: nothing moves between ranks. */
double comm_sent(const struct ckr_comm *, uint32_t ranks,
                 const struct ckr_tensor *x, const struct ckr_tensor *y);
/* Whether the types and shapes of a collective's operands fit its placements.
 */
bool comm_sane(const struct ckr_comm *, uint32_t ranks,
               const struct ckr_tensor *x, const struct ckr_tensor *y);
/* Whether there is nothing to do: a single rank, in place. */
bool comm_is_still(const struct comm *);
void comm_run(const struct comm *);
/* y = the sum, or the maximum, of x[0 .. ranks - 1], n elements each. */
void comm_reduce(uint8_t dtype, bool max, const void *const *x, uint32_t ranks,
                 uint64_t n, void *y);

#endif
