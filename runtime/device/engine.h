/* One convolution, executed by cuDNN. */
#ifndef RUNTIME_DEVICE_ENGINE_H
#define RUNTIME_DEVICE_ENGINE_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"
#include "runtime/device/cudnn_api.h"

enum { ENGINE_ALIGN = 16, ENGINE_PARTS = 16 };

struct engine {
	dnn_descriptor plan;            /* NULL: cuDNN has none */
	uint64_t work;                  /* bytes of workspace, at most the
	                                 * job's */
	dnn_descriptor part[ENGINE_PARTS];      /* descriptors of the plan */
	int parts;
};

/* Find the first engine of cuDNN's list that is deterministic, sums in float32,
 * rounds no operand, fits into the job's workspace and uses tensor cores where
 * products would.  The choice is the same every time for one GPU: that of
 * `handle`, or, if handle is NULL, the one that `device` describes, which need
 * not be installed (DNN_DEVICE, 9.8 and later).  False: there is none. */
bool engine_find(struct engine *, const struct dnn *, dnn_handle handle,
                 dnn_descriptor device, const struct ckr_convolved *);
/* x, w and y are aligned to ENGINE_ALIGN; struct ckr_convolved says which of
 * them is the result.  work: the job's workspace, or NULL. */
dnn_status engine_run(const struct engine *, const struct dnn *, dnn_handle,
                      void *x, void *w, void *y, void *work);
void engine_free(struct engine *, const struct dnn *);

#endif
