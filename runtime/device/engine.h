/* One convolution, executed by cuDNN. */
#ifndef RUNTIME_DEVICE_ENGINE_H
#define RUNTIME_DEVICE_ENGINE_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"
#include "runtime/device/cudnn_api.h"

enum { ENGINE_ALIGN = 16, ENGINE_PARTS = 16 };

struct engine {
	dnn_descriptor plan;            /* NULL: there is none */
	uint64_t work;                  /* bytes it wants, at most the job's */
	dnn_descriptor part[ENGINE_PARTS];      /* what it is made of */
	int parts;
};

/* The library's first answer that gives the same bits in every run, sums in
 * float32, rounds no operand, does with the job's room and, where products
 * would go to tensor cores, goes there too: the same one whenever it is asked
 * for this GPU.  That is handle's, or, if handle is NULL, the one that `device`
 * describes, which need not be there (DNN_DEVICE, 9.8 and later).  False: there
 * is none. */
bool engine_find(struct engine *, const struct dnn *, dnn_handle handle,
                 dnn_descriptor device, const struct ckr_convolved *);
/* x, w and y start at multiples of ENGINE_ALIGN; work: NULL or the job's room.
 * What is computed is among them, see struct ckr_convolved. */
dnn_status engine_run(const struct engine *, const struct dnn *, dnn_handle,
                      void *x, void *w, void *y, void *work);
void engine_free(struct engine *, const struct dnn *);

#endif
