/* Room device: the host or a GPU, with the memory of a model and the libraries
 * that its kernels call.
 *
 * in      a GPU architecture, the tables of convolutions
 * out     memory, copies, events, graphs; products and convolutions for kernels
 * must not know tensors, programs and ranks
 *
 * A device keeps its first error, and later calls do nothing: device_failed()
 * returns the error when a step ends.  Calls run in order, after kernels that
 * were launched before; copy_d2h() and sync() wait for them.  Asynchronous
 * copies do not wait.  Their host memory comes from alloc_pinned, and must not
 * be touched before an event recorded after the copy is complete.
 */
#ifndef RUNTIME_DEVICE_DEVICE_H
#define RUNTIME_DEVICE_DEVICE_H

#include "runtime/base/err.h"
#include "runtime/base/mem.h"
#include "runtime/ckr_abi.h"

struct device;
struct nccl_transport;

/* A device has a stream for all work, and others that copy in the meantime:
 * inputs, and values from and to host memory.  Only events order them. */
enum device_stream { DEVICE_COMPUTE, DEVICE_COPY_IN, DEVICE_FETCH,
                     DEVICE_OFFLOAD, DEVICE_STREAMS };

/* The functions of one kind of device. */
struct device_calls {
	void (*close)(struct device *);
	/* Before other calls, and kernels: the calling thread uses this
	 * device. */
	void (*enter)(struct device *);
	/* Open the libraries of products and convolutions that the model asks
	 * for, and set the members of the environment that kernels use them
	 * and the device by.  name: NULL or "auto", or a library's. */
	ckr_status (*open_libraries)(struct device *,
	                             const struct ckr_library *,
	                             const char *name, struct ckr_env *,
	                             struct err *);
	/* Between the two, process-wide settings of these libraries are
	 * ours. */
	void (*take_libraries)(struct device *);
	void (*release_libraries)(struct device *);
	/* Between the devices of several processes; NULL: they exchange host
	 * memory. */
	ckr_status (*open_transport)(struct nccl_transport **, struct device *,
	                             struct err *);
	/* Blocks: see device_map; NULL: made of the functions below. */
	ckr_status (*map)(struct block *, uint64_t size, bool paint,
	                  bool at_end, int threads, struct err *);
	void (*unmap)(struct block *);
	/* Memory of n bytes, aligned to 256; NULL after an error. */
	void *(*alloc)(struct device *, uint64_t n);
	void (*free)(struct device *, void *);
	/* Host memory from which copies are fastest. */
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
	/* From and to pinned memory, on the streams of that name; NULL: the
	 * host can use the device's addresses. */
	void (*fetch_async)(struct device *, void *to, const void *from,
	                    uint64_t n);
	void (*offload_async)(struct device *, void *to, const void *from,
	                      uint64_t n);
	/* event_record: the event completes after the work enqueued on the
	 * stream so far; recording again replaces that.  event_wait: work
	 * enqueued next runs after it.  event_sync: the host waits for it.  An
	 * event that was never recorded is complete. */
	void *(*event_new)(struct device *);
	void (*event_free)(struct device *, void *event);
	void (*event_record)(struct device *, void *event, enum device_stream);
	void (*event_wait)(struct device *, void *event, enum device_stream);
	void (*event_sync)(struct device *, void *event);
	/* Work enqueued between graph_begin and graph_end is recorded into a
	 * graph, which graph_launch runs as a whole.  NULL: recording failed,
	 * and nothing of it runs.  In between no sync(), and no copies but
	 * fetch_async() and offload_async() behind an event of the compute
	 * stream, which in the end waits for them by events of theirs. */
	void (*graph_begin)(struct device *);
	void *(*graph_end)(struct device *);
	void (*graph_launch)(struct device *, void *graph);
	void (*graph_free)(struct device *, void *graph);
};

struct device {
	const struct device_calls *call;
	bool addressable;               /* the host can use its addresses */
	bool deferred;                  /* kernels run after the calls that
	                                 * launch them, with an environment in
	                                 * device memory, where they leave what
	                                 * they find */
	const char *name;               /* of an accelerator; else "" */
	char libraries[160];            /* of products and convolutions */
	struct err first;               /* first error; empty: none yet */
	ckr_status status;              /* status of the first error; CKR_OK:
	                                 * CKR_EIO */
	/* Called before the host waits: checks the other processes until
	 * the compute stream is empty.  NULL: there are none. */
	ckr_status (*before_wait)(void *user, struct err *);
	void *before_wait_user;
};

/* Open the host, or a GPU for code of this architecture ("sm_90"): number
 * `index` among those of CUDA_VISIBLE_DEVICES, or the first. */
ckr_status device_open_host(struct device **, struct err *);
ckr_status device_open_cuda(struct device **, const char *arch, int index,
                            struct err *);
void device_close(struct device *);
/* Whether there was an error, in *e then; its status. */
bool device_failed(const struct device *, struct err *e);
ckr_status device_status(const struct device *, struct err *e);
/* Go on after an error of work that was not to be carried out. */
void device_forget_error(struct device *);

/* The status of an allocation that failed, in words. */
ckr_status device_no_memory(const struct device *, struct err *);
/* Pinned memory of zeros, which may be freed when it is NULL. */
void *device_alloc_pinned(struct device *, uint64_t n);
void device_free_pinned(struct device *, void *);

/* Allocate a block of device memory; arguments as for block_map. */
ckr_status device_map(struct device *, struct block *, uint64_t size,
                      bool paint, bool at_end, int threads, struct err *);
void device_unmap(struct device *, struct block *);
/* As block_touched. */
uint64_t device_touched(struct device *, const struct block *);

#endif
