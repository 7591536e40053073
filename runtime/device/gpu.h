/* Internals of the GPU device, shared by the files of this room. */
#ifndef RUNTIME_DEVICE_GPU_H
#define RUNTIME_DEVICE_GPU_H

#include "runtime/base/dtype.h"
#include "runtime/device/cuda_api.h"
#include "runtime/device/device.h"

struct gpu {
	struct device device;
	struct cu cu;
	void *dl;
	cu_device number;
	cu_context context;
	cu_stream stream[DEVICE_STREAMS];
	struct products *products;
	struct convolutions *convolutions;      /* NULL: patches are unfolded */
	char name[128];
};

/* The stream of kernels. */
static inline cu_stream
gpu_stream(const struct gpu *g)
{
	return g->stream[DEVICE_COMPUTE];
}

struct gpu *gpu_of(struct device *);
/* Whether the call succeeded; keeps the first error. */
bool gpu_done(struct gpu *, cu_result, const char *what);

#endif
