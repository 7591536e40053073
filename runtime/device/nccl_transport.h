/* NCCL transport: transfers between GPUs of several processes.
 *
 * Each group of ranks has a communicator.  Transfers of all groups run in one
 * stream beside the compute stream, in the order of the program, which is the
 * same on all ranks.  In streams of their own, ranks could begin transfers of
 * two groups in different orders and wait for each other for ever.
 *
 * The calls between nccl_begin and nccl_end are one transfer, of one group.  It
 * runs after the work that was enqueued on the compute stream before
 * nccl_begin, and before the work that is enqueued after nccl_await; the host
 * does not wait.  Transfers are numbered from 1 on.
 *
 * A failure is the device's first error.  The transport knows bytes and GPUs,
 * but not the processes.
 */
#ifndef RUNTIME_DEVICE_NCCL_TRANSPORT_H
#define RUNTIME_DEVICE_NCCL_TRANSPORT_H

#include "runtime/device/device.h"
#include "runtime/device/nccl_api.h"

struct nccl_transport;

enum { NCCL_GROUPS = CKR_AXES };               /* by enum ckr_axis */

/* Load the library.  CKR_EUNSUPPORTED: it is missing or too old.  To be closed
 * after a failure too. */
ckr_status nccl_open(struct nccl_transport **, struct device *, struct err *);
void nccl_close(struct nccl_transport *);
/* What processes exchange before they join: the library, "NCCL 2.28.9", and the
 * GPU's name and UUID. */
struct nccl_peer_info {
	char library[32], name[64];
	unsigned char uuid[16];
};
ckr_status nccl_get_peer_info(struct nccl_transport *, struct nccl_peer_info *,
                              struct err *);
/* Make the identifier of a group: one rank calls this and sends it to the
 * others. */
ckr_status nccl_new_id(struct nccl_transport *, struct nccl_id *, struct err *);
/* Allocate events for `depth` transfers, twice the number that will have begun
 * and not been awaited, and `workspace` bytes of GPU memory. */
ckr_status nccl_alloc(struct nccl_transport *, uint32_t depth,
                      uint64_t workspace, struct err *);
/* Join a group; returns when all its ranks have joined. */
ckr_status nccl_join_group(struct nccl_transport *, int group,
                           const struct nccl_id *, uint32_t ranks,
                           uint32_t rank, struct err *);
/* NULL: it has 0 bytes. */
void *nccl_workspace(const struct nccl_transport *);

/* The number of the transfer; 0: the device has failed. */
uint64_t nccl_begin(struct nccl_transport *);
void nccl_end(struct nccl_transport *);
/* Kernels that are enqueued from now on wait for transfer `number`. */
void nccl_await(struct nccl_transport *, uint64_t number);
/* Whether the GPU has begun transfer `number`; how many transfers have ended.
 */
bool nccl_has_begun(struct nccl_transport *, uint64_t number);
uint64_t nccl_count_ended(struct nccl_transport *);
/* Whether the compute stream is empty. */
bool nccl_kernels_done(struct nccl_transport *);
/* Set struct device's before_wait. */
void nccl_set_before_wait(struct nccl_transport *,
                          ckr_status (*call)(void *, struct err *),
                          void *user);
/* CKR_OK, or the device's error. */
ckr_status nccl_status(const struct nccl_transport *, struct err *);
/* The library's asynchronous error; NULL: none. */
const char *nccl_async_error(struct nccl_transport *);
/* Abort all transfers, without the other ranks. */
void nccl_abort(struct nccl_transport *);

/* Copies within the GPU; in_transfer: as part of the transfer that has begun,
 * else on the compute stream. */
void nccl_copy_rows(struct nccl_transport *, bool in_transfer, void *to,
                    const void *from, uint64_t width, uint64_t rows,
                    uint64_t to_pitch, uint64_t from_pitch);
void nccl_zero(struct nccl_transport *, bool in_transfer, void *to,
               uint64_t nbytes);
/* Collectives of a group.  n: elements of type dtype (enum
 * ckr_dtype); all_gather: nbytes of each rank; reduce_scatter: n elements for
 * each rank. */
void nccl_all_reduce(struct nccl_transport *, int group, const void *x,
                     void *y, uint64_t n, uint8_t dtype, bool max);
void nccl_all_gather(struct nccl_transport *, int group, const void *x,
                     void *y, uint64_t nbytes);
void nccl_reduce_scatter(struct nccl_transport *, int group, const void *x,
                         void *y, uint64_t n, uint8_t dtype);
void nccl_broadcast(struct nccl_transport *, int group, const void *x, void *y,
                    uint64_t nbytes, uint32_t root);
void nccl_reduce(struct nccl_transport *, int group, const void *x, void *y,
                 uint64_t n, uint8_t dtype, uint32_t root);
void nccl_send(struct nccl_transport *, int group, const void *x,
               uint64_t nbytes, uint32_t to);
void nccl_receive(struct nccl_transport *, int group, void *y, uint64_t nbytes,
                  uint32_t from);
/* Calls between begin true and begin false run together. */
void nccl_group(struct nccl_transport *, bool begin);

#endif
