/* Sharding of a tensor over ranks, as runs of elements that are contiguous both
 * in the whole tensor and in a rank's shard: every transfer between the two
 * consists of such runs. */
#ifndef RUNTIME_RANKS_SHARDING_H
#define RUNTIME_RANKS_SHARDING_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"

struct sharding {
	uint32_t replication;           /* ranks that hold the same shard */
	uint32_t nsegment;
	bool mirror;                    /* every second segment is shared out
	                                 * from its end on */
	uint64_t nshard;                /* shards of a segment */
	uint64_t outer, inner;          /* elements before and after the sharded
	                                 * dims */
	uint64_t whole, local;          /* extents of the sharded dims: of the
	                                 * whole tensor, of a rank's shards */
	uint64_t segment[CKR_MAX_DIMS]; /* extents of the segments */
	uint64_t replica_shard;         /* elements of a replica's shard of what
	                                 * a rank would have; 0: every replica
	                                 * has all of it */
	uint64_t nreplica;              /* replicas with a shard each; else 1.
	                                 * Replicas behind them hold the same
	                                 * shards in turn */
	uint64_t nrun;                  /* runs of the whole tensor */
};

/* n contiguous elements, from element `whole` of the whole tensor on and from
 * element `local` of the shard on.  Ranks rank .. rank + replication - 1 hold
 * them, in replica `replica`, and those nreplica
 * further each time, or in all.  n may be 0.  Elements are counted in
 * row-major order. */
struct shard_run {
	uint64_t whole, local, n;
	uint32_t rank, replica;
};

/* n elements that lie on rank `from`, from its element x on, in one sharding,
 * and on the ranks from `to` on, from their element y on, in another. */
struct shard_overlap {
	uint32_t from, to;
	uint64_t x, y, n;
	uint64_t i, k, at;              /* the walk: runs, and elements behind
	                                 * it */
};

/* The numbers of a rank's runs: first, first + by, first + 2 by, ... */
struct shard_stride {
	uint64_t first, by;
};

/* dim: extents of the whole tensor or of a shard; entries of sharded dims are
 * ignored.  False if the placement is invalid. */
bool sharding_of(struct sharding *, const struct ckr_placement *,
                 uint32_t ranks, int rank, const int64_t *dim);
/* The same for a tensor that is sharded over the ranks of a replica, over so
 * many replicas, or both. */
bool sharding_of_tensor(struct sharding *, const struct ckr_tensor *,
                        uint32_t ranks, uint32_t replicas);
/* Run i.  The runs 0 .. nrun - 1 cover the whole tensor in order, without
 * gaps. */
struct shard_run sharding_run(const struct sharding *, uint64_t i);
/* Which of the `nshard` runs i * nshard .. is that of a shard; runs before them
 * are of i segments. */
uint64_t sharding_run_of(const struct sharding *, uint64_t i, uint64_t shard);
/* Go on to what the next two runs have in common, from an overlap of zeros on;
 * false: there is no more. */
bool sharding_next_overlap(const struct sharding *from,
                           const struct sharding *to, struct shard_overlap *);
struct shard_stride sharding_runs_of_rank(const struct sharding *,
                                          uint32_t rank, uint32_t replica);
bool sharding_rank_holds(const struct sharding *, const struct shard_run *,
                         uint32_t rank, uint32_t replica);
/* How many elements of a run are among at .. at + n - 1 of the whole tensor;
 * *first: the first of them. */
uint64_t shard_run_part(const struct shard_run *, uint64_t at, uint64_t n,
                        uint64_t *first);
/* Elements of the longest run. */
uint64_t sharding_longest_run(const struct sharding *);
/* Elements of a shard, with the zeros that pad the last one. */
uint64_t sharding_shard_elems(const struct sharding *);

#endif
