/* A clock for measuring durations. */
#ifndef RUNTIME_SUPPORT_NOW_H
#define RUNTIME_SUPPORT_NOW_H

#include <time.h>

/* Seconds of a monotonic clock. */
static inline double
now_sec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
