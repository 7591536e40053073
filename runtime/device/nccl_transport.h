/* NCCL transport: transfers between GPUs of several processes.
 *
 * Each group of ranks has a stream of its own, beside the compute stream.  The
 * calls between nccl_begin and nccl_end are one transfer.  It runs after the
 * work that was enqueued on the compute stream before nccl_begin, and before
 * the work that is enqueued after nccl_await; the host does not wait.
 * Transfers of a stream run in their order, which is the same on all ranks of
 * the group.  They are numbered from 1 on.
 *
 * A failure is the device's first error.
 *
 * Knows: bytes and GPUs.  Must not know: who the processes are. */
#ifndef RUNTIME_DEVICE_NCCL_TRANSPORT_H
#define RUNTIME_DEVICE_NCCL_TRANSPORT_H

#include "runtime/device/device.h"
#include "runtime/device/nccl_api.h"

struct nccl_transport;

enum { NCCL_STREAMS = 2 };              /* by enum ckr_axis */

/* Look for the library.  CKR_EUNSUPPORTED, in words: it is not there, or too
 * old.  After a failure too there is something to close. */
ckr_status nccl_open(struct nccl_transport **, struct device *, struct err *);
void nccl_close(struct nccl_transport *);
/* What processes tell each other before they join: the library, "NCCL 2.28.9",
 * and the GPU, by its UUID and by name. */
struct nccl_peer_info {
	char library[32], name[64];
	unsigned char uuid[16];
};
ckr_status nccl_get_peer_info(struct nccl_transport *, struct nccl_peer_info *,
                              struct err *);
/* What the ranks of a group know each other by: one of them makes it. */
ckr_status nccl_new_id(struct nccl_transport *, struct nccl_id *, struct err *);
/* What a stream needs: room for `depth` transfers under way, twice as many
 * as will have begun and not been awaited; bytes of the GPU's memory. */
ckr_status nccl_alloc_stream(struct nccl_transport *, int stream,
                             uint32_t depth, uint64_t workspace, struct err *);
/* Take part in a group; returns when all of them have come. */
ckr_status nccl_join_group(struct nccl_transport *, int stream,
                           const struct nccl_id *, uint32_t ranks,
                           uint32_t rank, struct err *);
void *nccl_workspace(const struct nccl_transport *, int stream);

uint64_t nccl_begin(struct nccl_transport *, int stream);
void nccl_end(struct nccl_transport *, int stream);
/* Kernels that are enqueued from now on wait for it. */
void nccl_await(struct nccl_transport *, int stream, uint64_t number);
/* Whether the GPU has reached it; how many have ended. */
bool nccl_has_begun(struct nccl_transport *, int stream, uint64_t number);
uint64_t nccl_count_ended(struct nccl_transport *, int stream);
/* Whether the compute stream is empty. */
bool nccl_kernels_done(struct nccl_transport *);
/* What the host calls before it waits; see struct device. */
void nccl_set_before_wait(struct nccl_transport *,
                          ckr_status (*call)(void *, struct err *),
                          void *user);
/* CKR_OK, or the device's error. */
ckr_status nccl_status(const struct nccl_transport *, struct err *);
/* What the library has found wrong meanwhile; NULL: nothing. */
const char *nccl_async_error(struct nccl_transport *);
/* End what is under way, wherever the others are. */
void nccl_abort(struct nccl_transport *);

/* Within the GPU; stream -1: the compute stream. */
void nccl_copy_rows(struct nccl_transport *, int stream, void *to,
                    const void *from, uint64_t width, uint64_t rows,
                    uint64_t to_pitch, uint64_t from_pitch);
void nccl_zero(struct nccl_transport *, int stream, void *to, uint64_t nbytes);
/* Between them.  n: elements of a type of enum ckr_dtype; of what is only
 * moved, bytes.  all_gather: of each rank; reduce_scatter: for each. */
void nccl_all_reduce(struct nccl_transport *, int stream, const void *x,
                     void *y, uint64_t n, uint8_t dtype, bool max);
void nccl_all_gather(struct nccl_transport *, int stream, const void *x,
                     void *y, uint64_t nbytes);
void nccl_reduce_scatter(struct nccl_transport *, int stream, const void *x,
                         void *y, uint64_t n, uint8_t dtype);
void nccl_broadcast(struct nccl_transport *, int stream, const void *x, void *y,
                    uint64_t nbytes, uint32_t root);
void nccl_reduce(struct nccl_transport *, int stream, const void *x, void *y,
                 uint64_t n, uint8_t dtype, uint32_t root);
void nccl_send(struct nccl_transport *, int stream, const void *x,
               uint64_t nbytes, uint32_t to);
void nccl_receive(struct nccl_transport *, int stream, void *y, uint64_t nbytes,
                  uint32_t from);
/* Calls between the two are carried out together. */
void nccl_group(struct nccl_transport *, bool begin);

#endif
