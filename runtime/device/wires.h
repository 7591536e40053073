/* What GPUs of several processes send each other, by NCCL.
 *
 * There is a lane for each group of ranks: a stream of its own, beside that of
 * kernels.  What stands between wires_begin and wires_end is a transfer; it is
 * carried out behind what kernels had been given before, and before what they
 * are given after wires_await, without the host's waiting.  A lane's transfers
 * are carried out in their order, which is the same on all ranks of the group;
 * each has a number, from 1 on.
 *
 * A failure is the device's first error.
 *
 * Knows: bytes and GPUs.  Must not know: who the processes are. */
#ifndef CKR_WIRES_H
#define CKR_WIRES_H

#include "runtime/device/device.h"
#include "runtime/device/nccl_api.h"

struct wires;

enum { WIRE_LANES = 2 };                /* by enum ckr_axis */

/* Look for the library.  CKR_EUNSUPPORTED, in words: it is not there, or too
 * old.  After a failure too there is something to close. */
ckr_status wires_open(struct wires **, struct device *, struct err *);
void wires_close(struct wires *);
/* What processes tell each other before they join: the library, "NCCL 2.28.9",
 * and the GPU, by a mark that no other has and by name. */
struct wires_card {
	char library[32], name[64];
	unsigned char mark[16];
};
ckr_status wires_show(struct wires *, struct wires_card *, struct err *);
/* What the ranks of a group know each other by: one of them makes it. */
ckr_status wires_name(struct wires *, struct nccl_id *, struct err *);
/* What a lane needs: room for `depth` transfers that have begun, twice as many
 * as will have begun and not been awaited; bytes of the GPU's memory. */
ckr_status wires_take(struct wires *, int lane, uint32_t depth,
                      uint64_t scratch, struct err *);
/* Take part in a group; returns when all of them have come. */
ckr_status wires_join(struct wires *, int lane, const struct nccl_id *,
                      uint32_t ranks, uint32_t rank, struct err *);
void *wires_scratch(const struct wires *, int lane);

uint64_t wires_begin(struct wires *, int lane);
void wires_end(struct wires *, int lane);
/* Kernels that are given from now on wait for it. */
void wires_await(struct wires *, int lane, uint64_t number);
/* Whether the GPU has come to it; how many have ended. */
bool wires_begun(struct wires *, int lane, uint64_t number);
uint64_t wires_over(struct wires *, int lane);
/* That kernels have done all they were given. */
bool wires_quiet(struct wires *);
/* Who is to look while the host waits; see struct device. */
void wires_watch(struct wires *, ckr_status (*quiet)(void *, struct err *),
                 void *user);
/* CKR_OK, or the device's error. */
ckr_status wires_status(const struct wires *, struct err *);
/* What the library has found wrong meanwhile; NULL: nothing. */
const char *wires_trouble(struct wires *);
/* End what is under way, wherever the others are. */
void wires_abort(struct wires *);

/* Within the GPU; lane -1: on the stream of kernels. */
void wires_copy(struct wires *, int lane, void *to, const void *from,
                uint64_t width, uint64_t rows, uint64_t to_pitch,
                uint64_t from_pitch);
void wires_zero(struct wires *, int lane, void *to, uint64_t nbytes);
/* Between them.  n: elements of a type of enum ckr_dtype; of what is only
 * moved, bytes.  all_gather: of each rank; reduce_scatter: for each. */
void wires_all_reduce(struct wires *, int lane, const void *x, void *y,
                      uint64_t n, uint8_t dtype, bool max);
void wires_all_gather(struct wires *, int lane, const void *x, void *y,
                      uint64_t nbytes);
void wires_reduce_scatter(struct wires *, int lane, const void *x, void *y,
                          uint64_t n, uint8_t dtype);
void wires_broadcast(struct wires *, int lane, const void *x, void *y,
                     uint64_t nbytes, uint32_t root);
void wires_reduce(struct wires *, int lane, const void *x, void *y, uint64_t n,
                  uint8_t dtype, uint32_t root);
void wires_send(struct wires *, int lane, const void *x, uint64_t nbytes,
                uint32_t to);
void wires_receive(struct wires *, int lane, void *y, uint64_t nbytes,
                   uint32_t from);
/* Calls between the two are carried out together. */
void wires_together(struct wires *, bool begin);

#endif
