/* Room offload: the host block, memory beside that of a device, and transfers
 * between the two, which run while the device computes.
 *
 * in      a device, bytes of the block
 * out     addresses in the block, transfers that begin at one instruction and
 *         end at a later one
 * must not know programs and tensors
 *
 * Beside a GPU the block is pinned memory.  Beside the host it is a file
 * without a name: its addresses are positions in the file, and no memory is
 * mapped there.
 *
 * Each direction is a lane, with a stream or a thread of its own: its transfers
 * run one after the other, in the order in which they begin.
 */
#ifndef RUNTIME_OFFLOAD_OFFLOAD_H
#define RUNTIME_OFFLOAD_OFFLOAD_H

#include "runtime/device/device.h"
#include "runtime/support/offload_dir.h"

enum offload_lane { OFFLOAD_FETCH, OFFLOAD_STORE, OFFLOAD_LANES };

struct offload;

struct offload_options {
	uint64_t bytes;                 /* of the block */
	uint32_t most;                  /* transfers that are in flight at one
	                                 * time, in each direction */
	const char *dir;                /* of the file; NULL: OFFLOAD_DIR */
};

/* A block of zeros.  The whole file is allocated, so that a full disk is an
 * error here and not later.  To be closed after a failure too. */
ckr_status offload_open(struct offload **, struct device *,
                        const struct offload_options *, struct err *);
void offload_close(struct offload *);
/* The first address of the block. */
char *offload_block(const struct offload *);
/* The folder of the file; NULL: the block is memory. */
const char *offload_dir(const struct offload *);

/* Copy n bytes between host memory and the block, when nothing is in flight.
 * Once a transfer has failed, all copies fail as it did. */
ckr_status offload_read(struct offload *, void *to, const char *at, uint64_t n,
                        struct err *);
ckr_status offload_write(struct offload *, char *at, const void *from,
                         uint64_t n, struct err *);

/* Begin a transfer of n bytes between device memory and the block at
 * instruction `begin`; it ends with instruction `end`. */
void offload_begin(struct offload *, enum offload_lane, void *device_at,
                   char *at, uint64_t n, uint32_t begin, uint32_t end);
/* Wait for the transfers of a lane that end with instruction i or before;
 * *begin: of the last one of them; -1: there were none. */
ckr_status offload_wait(struct offload *, enum offload_lane, uint32_t i,
                        int64_t *begin, struct err *);
/* Bytes per second of the slower direction so far; 0: unknown. */
double offload_rate(struct offload *);

#endif
