/* A clock for measuring durations. */
#ifndef RUNTIME_SUPPORT_NOW_H
#define RUNTIME_SUPPORT_NOW_H

/* Seconds of a monotonic clock. */
double now_sec(void);

#endif
