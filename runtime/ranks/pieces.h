/* Whole tensors and the pieces of them that ranks hold. */
#ifndef RUNTIME_RANKS_PIECES_H
#define RUNTIME_RANKS_PIECES_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"

struct pieces {
	uint32_t shared, npart;
	uint64_t npiece;                /* of a segment */
	uint64_t outer, inner;          /* elements around what is cut */
	uint64_t whole, local;          /* extents of what is cut */
	uint64_t part[CKR_MAX_DIMS];
	/* Of what a rank would have: elements of a replica's piece, and how
	 * many pieces; 0 and 1: every replica has all of it. */
	uint64_t shard;
	uint32_t nshard;
	uint64_t nrun;
};

/* Elements that lie side by side, in the whole and on the ranks `rank` ..
 * `rank` + shared - 1, of that replica or of all; n may be 0.  Elements are
 * counted in row-major order. */
struct piece_run {
	uint64_t whole, local, n;
	uint32_t rank, replica;
};

/* The run that one rank holds next after another. */
struct piece_step {
	uint64_t first, by;
};

/* dim: extents of the whole or of a piece; those of what is cut are not
 * looked at.  False if the split makes no sense. */
bool pieces_of(struct pieces *, const struct ckr_split *, uint32_t ranks,
               int rank, const int64_t *dim);
/* The same of a tensor's whole, whatever it is cut over; ranks: a replica's. */
bool pieces_of_tensor(struct pieces *, const struct ckr_tensor *,
                      uint32_t ranks, uint32_t replicas);
/* The runs 0 .. nrun - 1 cover the whole in order, without gaps. */
struct piece_run pieces_run(const struct pieces *, uint64_t i);
/* Those of a rank are first, first + by, ... */
struct piece_step pieces_held(const struct pieces *, uint32_t rank,
                              uint32_t replica);
bool pieces_hold(const struct pieces *, const struct piece_run *,
                 uint32_t rank, uint32_t replica);
/* Elements of the longest run. */
uint64_t pieces_longest(const struct pieces *);
/* Elements of a piece, with what a last one lacks. */
uint64_t pieces_padded_elems(const struct pieces *);

#endif
