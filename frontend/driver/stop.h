/* Interrupting signals let the process clean up before it ends. */
#ifndef FRONTEND_DRIVER_STOP_H
#define FRONTEND_DRIVER_STOP_H

#include <signal.h>

/* Installs handlers.  The first SIGINT, SIGTERM or SIGHUP sets *result to
 * nonzero; the second one ends the process.  An ignored SIGHUP, as under nohup,
 * stays ignored. */
const volatile sig_atomic_t *stop_on_signals(void);

#endif
