/* Internals of the ranks' memory, shared by the files of this room. */
#ifndef RUNTIME_WORLD_INSIDE_H
#define RUNTIME_WORLD_INSIDE_H

#include "runtime/library/tensor.h"
#include "runtime/ranks/transfers.h"
#include "runtime/world/world.h"

struct memory {
	struct block *resident;         /* [count] */
	uint64_t shared;                /* bytes before these that are in the
	                                 * owner's blocks; 0: the owner */
	struct world *sharers, *next;   /* worlds that share the owner's
	                                 * memory; the next one of these */
	uint64_t common[2];             /* byte range of the resident block that
	                                 * a replica's first rank here has for
	                                 * all: constants and inputs */
	bool *input_set;                /* [nshared] */
	void **whole;                   /* [nshared]: inputs of all replicas;
	                                 * NULL: the tensor is the whole */
	struct nccl_transport *nccl;    /* between GPUs; NULL: there are none */
	struct transfers *transfers;    /* between ranks of a stage */
	struct stage_messages *messages; /* between stages; NULL: there is one
	                                 */
	uint32_t *next_tied;            /* [nshared]: the next tensor that is
	                                 * tied to the same one as this, or to
	                                 * this; 0: none.  NULL: there is one
	                                 * stage */
	uint32_t arrived;               /* stages that have come to a collective
	                                 * of all, which the first one has
	                                 * carried out */
	struct offload *offload;        /* host blocks of all local ranks, one
	                                 * after the other; NULL: none */
	uint64_t host_bytes;            /* of one rank */
	uint64_t anonymous;             /* process's bytes before blocks were
	                                 * allocated */
	bool copied;                    /* 16-bit copies equal the parameters */
	void **kept;                    /* [nshared], by average in use: its
	                                 * whole 16-bit parameter; NULL: none */
};

/* ---- operands.c ---- */

/* The first local rank of the same replica, which has its constants and
 * inputs. */
uint32_t place_first_rank(const struct world *, uint32_t r);

/* Take a stage's ranks to the micro-batch in that slot. */
void operands_take_slot(const struct world *, struct loaded_program *,
                        uint32_t stage, uint32_t slot);

/* Link tied tensors; false: no memory. */
bool place_open_ties(struct world *);

/* ---- averages.c ---- */

void averages_free(struct world *);

/* ---- host_block.c ---- */

/* What programs of a library need: bytes of a rank, transfers in flight. */
struct host_need {
	uint64_t bytes;
	uint32_t transfers;
};
struct host_need host_need(const struct ckr_library *);
/* Open the host blocks, if programs have any. */
ckr_status host_block_open(struct world *);
void host_block_close(struct world *);

/* ---- share.c ---- */

/* Make the owner's arena at least so large. */
ckr_status share_arena(struct world *, uint64_t bytes);
void share_close(struct world *);

/* ---- place.c ---- */

/* Allocate the resident blocks of all local ranks. */
ckr_status place_open(struct world *);
void place_close(struct world *);

/* ---- whole.c ---- */

/* The whole tensor of one replica, without gaps; whether replicas have
 * different ones. */
struct ckr_tensor whole_of_replica(const struct ckr_tensor *);
bool whole_has_batches(const struct world *, const struct ckr_tensor *);
/* [count]: a tensor's elements on each local rank without gaps: where it lies,
 * or copies to be filled; NULL: no memory. */
char **whole_open_local(struct world *, const struct loaded_program *,
                        const struct ckr_tensor *);
void whole_close_local(struct world *, const struct ckr_tensor *, char **);

/* ---- inputs.c ---- */

ckr_status inputs_open(struct world *);
void inputs_close(struct world *);

/* ---- transfers.c ---- */

ckr_status transfers_open_world(struct world *);

/* ---- compare.c ---- */

/* Check that all processes have the same library and the same settings. */
ckr_status compare_processes(struct world *, uint64_t seed);

#endif
