/* A device, the host or a GPU: memory of a model, and calls that run on it.
 *
 * A device's first error is kept, and calls after it do nothing:
 * device_failed() tells of it, where a step ends.  Calls are carried out in
 * their order, behind kernels launched before; copy_d2h() and sync()
 * wait for them.  The asynchronous copies do not wait.  Their host memory is of
 * alloc_pinned; it is not touched before an event behind the copy has come.
 */
#ifndef RUNTIME_DEVICE_DEVICE_H
#define RUNTIME_DEVICE_DEVICE_H

#include "runtime/base/err.h"
#include "runtime/base/mem.h"
#include "runtime/ckr_abi.h"

struct device;

/* A device has two streams: one for all work, one that copies inputs in
 * meanwhile.  Only events order one after the other. */
enum device_stream { DEVICE_COMPUTE, DEVICE_COPY_IN };

/* One table for each kind of device. */
struct device_calls {
	void (*close)(struct device *);
	/* Bytes that start at a multiple of 256; NULL after an error. */
	void *(*alloc)(struct device *, uint64_t n);
	void (*free)(struct device *, void *);
	/* Memory of the host that is copied from fastest. */
	void *(*alloc_pinned)(struct device *, uint64_t n);
	void (*free_pinned)(struct device *, void *);
	void (*copy_h2d)(struct device *, void *to, const void *from,
	                 uint64_t n);
	void (*copy_d2h)(struct device *, void *to, const void *from,
	                 uint64_t n);
	void (*fill)(struct device *, void *to, int byte, uint64_t n);
	void (*sync)(struct device *);
	/* On the copy-in stream; on the compute stream. */
	void (*copy_h2d_async)(struct device *, void *to, const void *from,
	                       uint64_t n);
	void (*copy_d2h_async)(struct device *, void *to, const void *from,
	                       uint64_t n);
	/* event_record: an event behind the work enqueued on a stream, anew
	 * each time.  event_wait: work enqueued next runs after it.
	 * event_sync: the host waits for it.  One never recorded has come. */
	void *(*event_new)(struct device *);
	void (*event_free)(struct device *, void *event);
	void (*event_record)(struct device *, void *event, enum device_stream);
	void (*event_wait)(struct device *, void *event, enum device_stream);
	void (*event_sync)(struct device *, void *event);
	/* The members of the environment that kernels call the device by. */
	void (*fill_env)(struct device *, struct ckr_env *);
	/* Work enqueued between the two is recorded into a graph, which runs
	 * as a whole whenever it is launched.  NULL: nothing could be
	 * recorded.  Neither copies, events nor sync() may stand between. */
	void (*graph_begin)(struct device *);
	void *(*graph_end)(struct device *);
	void (*graph_launch)(struct device *, void *graph);
	void (*graph_free)(struct device *, void *graph);
};

struct device {
	const struct device_calls *call;
	bool host;                      /* its memory is the process's */
	const char *name;               /* of the processor */
	struct err first;               /* error; text empty: none yet */
	ckr_status status;              /* of a call that follows it; CKR_OK:
	                                 * CKR_EIO */
	/* Called before the host waits: checks the other processes until
	 * the compute stream is empty.  NULL: there are none. */
	ckr_status (*before_wait)(void *user, struct err *);
	void *before_wait_user;
};

/* The host, which needs no closing. */
extern struct device device_host;

/* A GPU for code of this architecture ("sm_90"): the one that
 * CUDA_VISIBLE_DEVICES puts first, or number `index`. */
ckr_status device_open_cuda(struct device **, const char *arch, int index,
                            struct err *);
/* What computes products and convolutions there, in words too.  name: NULL or
 * "auto", "cublas" (products; convolutions unfold patches), "cudnn" (which
 * must be there for convolutions). */
ckr_status device_choose_cuda(struct device *, const char *name,
                              const struct ckr_convolved *, uint32_t n,
                              char *text, size_t, struct err *);
void device_close(struct device *);
/* Whether something went wrong, in *e then; and as what. */
bool device_failed(const struct device *, struct err *e);
ckr_status device_status(const struct device *, struct err *e);

/* A block of memory there: zero, or painted; as block_map on the host. */
ckr_status device_map(struct device *, struct block *, uint64_t size,
                      bool paint, bool at_end, int threads, struct err *);
void device_unmap(struct device *, struct block *);
/* As block_touched. */
uint64_t device_touched(struct device *, const struct block *);

#endif
