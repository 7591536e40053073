/* Inside of the emulated driver. */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H

#include "runtime/device/cuda_api.h"
#include "tests/cuda/stream.h"

typedef int CUresult;

#define EXPORT __attribute__((visibility("default")))

/* The GPU's memory can be touched between the two alone. */
void fake_enter(void);
void fake_leave(void);
/* Whether bytes from..from + n - 1 were taken there. */
int fake_mine(uint64_t from, size_t n);
/* The error of a GPU that is lost; 0: it is not. */
int fake_lost(void);

#endif
