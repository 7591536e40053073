/* What the halves of the emulated driver share: memory and copies (libcuda.c),
 * and streams (libcuda_streams.c). */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H

#include "runtime/device/cuda_api.h"
#include "tests/cuda/stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;

#define EXPORT __attribute__((visibility("default")))

/* Calls: those in which the host has waited for a stream, and for a mark in it
 * that had not come; launches of graphs, and how many graphs there are. */
struct fake_count {
	unsigned long stops, waits, launches, graphs;
};

extern struct fake_count fake_count;
/* By who changed what was being copied; 0: nobody. */
extern CUresult fake_broken;

/* The GPU's memory can be touched between the two alone. */
void fake_enter(void);
void fake_leave(void);
/* 201: this thread has no current context; 0: it has one. */
CUresult fake_context(void);
/* 719: the device has been lost by now; 0: it has not. */
CUresult fake_lost(void);

/* Now, or when its turn comes. */
void fake_give(struct fake_stream *, void (*run)(void *), void (*drop)(void *),
               void *arg);
/* Wait until so many works of a stream have been carried out. */
void fake_wait(struct fake_stream *, unsigned long done);
/* Carry out all that can be. */
void fake_finish(void);

#endif
