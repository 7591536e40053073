/* Ctrl-C and its like: end soon, and in order. */
#ifndef FRONTEND_STOP_H
#define FRONTEND_STOP_H

/* From here on the first SIGINT, SIGTERM or SIGHUP makes the result not 0; the
 * second one ends the process as usual. */
const volatile int *stop_on_signals(void);

#endif
