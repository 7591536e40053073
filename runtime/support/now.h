#ifndef RUNTIME_SUPPORT_NOW_H
#define RUNTIME_SUPPORT_NOW_H

/* Seconds since some time before the program started; nobody sets this clock
 * back. */
double now_sec(void);

#endif
