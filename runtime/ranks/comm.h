/* Collectives between ranks. */
#ifndef RUNTIME_RANKS_COMM_H
#define RUNTIME_RANKS_COMM_H

#include "runtime/ranks/pieces.h"

/* A collective of all ranks of one process.  x[r], y[r]: operands of rank r,
 * without gaps. */
struct comm {
	const struct ckr_comm *what;
	const struct ckr_tensor *tx, *ty;
	void *const *x, *const *y;
	uint32_t ranks;
	int threads;
};

/* Elements of a tensor as it is on one rank. */
uint64_t comm_nelem(const struct ckr_tensor *);
/* Bytes that each of so many ranks sends, by rings: a sum is scattered and then
 * gathered (Thakur et al. 2005).  0: all do a part of their own whole. */
double comm_sent(const struct ckr_comm *, uint32_t ranks,
                 const struct ckr_tensor *x, const struct ckr_tensor *y);
/* Whether tables agree: types and shapes of a collective's operands. */
bool comm_sane(const struct ckr_comm *, uint32_t ranks,
               const struct ckr_tensor *x, const struct ckr_tensor *y);
/* Whether nothing moves: a rank alone has the result where it is. */
bool comm_is_still(const struct comm *);
void comm_run(const struct comm *);
/* y = the sum, or the largest, of x[0 .. ranks - 1], n elements each. */
void comm_reduce(uint8_t dtype, bool max, const void *const *x, uint32_t ranks,
                 uint64_t n, void *y);

#endif
