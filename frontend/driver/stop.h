/* Signals that interrupt: the process ends soon and cleans up. */
#ifndef FRONTEND_DRIVER_STOP_H
#define FRONTEND_DRIVER_STOP_H

#include <signal.h>

/* From here on the first SIGINT, SIGTERM or SIGHUP makes the result not 0; the
 * second one ends the process as usual.  A hangup that is ignored, as
 * under nohup, stays so. */
const volatile sig_atomic_t *stop_on_signals(void);

#endif
