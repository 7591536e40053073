/* Where a model's memory lies and its kernels run: the host, or a GPU.
 *
 * A device's first error is kept, and calls after it do nothing:
 * device_failed() tells of it, where a step ends.  Calls are carried out in
 * their order, behind kernels that were launched before; get() and sync()
 * wait for them.  What waits for nothing (bring, fetch) takes memory of
 * take_host, which is not touched before a mark behind it has come.
 */
#ifndef CKR_DEVICE_H
#define CKR_DEVICE_H

#include "runtime/base/err.h"
#include "runtime/base/mem.h"
#include "runtime/ckr_abi.h"

struct device;

/* A device has two queues.  One is of all work; what the other brings comes
 * while that goes on, and only marks say what is before what. */
enum device_queue { DEVICE_WORK, DEVICE_BRINGS };

/* One table for each kind of device. */
struct device_calls {
	void (*close)(struct device *);
	/* Bytes that start at a multiple of 256; NULL after an error. */
	void *(*take)(struct device *, uint64_t n);
	void (*drop)(struct device *, void *);
	/* Memory of the host that is copied from fastest. */
	void *(*take_host)(struct device *, uint64_t n);
	void (*drop_host)(struct device *, void *);
	void (*put)(struct device *, void *to, const void *from, uint64_t n);
	void (*get)(struct device *, void *to, const void *from, uint64_t n);
	void (*fill)(struct device *, void *to, int byte, uint64_t n);
	void (*sync)(struct device *);
	/* As put, by the other queue; as get, without waiting. */
	void (*bring)(struct device *, void *to, const void *from, uint64_t n);
	void (*fetch)(struct device *, void *to, const void *from, uint64_t n);
	/* A mark behind what a queue has been given, anew each time; what a
	 * queue is given next goes behind it; the host waits for it.  One that
	 * was not set has come. */
	void *(*mark_new)(struct device *);
	void (*mark_free)(struct device *, void *mark);
	void (*set)(struct device *, void *mark, enum device_queue);
	void (*follow)(struct device *, void *mark, enum device_queue);
	void (*await)(struct device *, void *mark);
	/* What kernels ask of the run time. */
	void (*offer)(struct device *, struct ckr_env *);
	/* Work given between the two is kept instead of done: what is
	 * returned is done as a whole whenever it is launched.  NULL: nothing
	 * could be kept.  Neither copies, marks nor sync() may stand
	 * between. */
	void (*capture)(struct device *);
	void *(*captured)(struct device *);
	void (*launch)(struct device *, void *work);
	void (*forget)(struct device *, void *work);
};

struct device {
	const struct device_calls *call;
	bool host;                      /* its memory is the process's */
	const char *name;               /* of the processor */
	struct err first;               /* error; text empty: none yet */
	ckr_status status;              /* of a call that follows it; CKR_OK:
	                                 * CKR_EIO */
	/* Before the host waits: look at who it waits for, until there is
	 * nothing left to wait for.  NULL: nobody but the GPU itself. */
	ckr_status (*quiet)(void *user, struct err *);
	void *quiet_user;
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
