/* Signals that end a run after its current step: Ctrl-C, SIGTERM, SIGHUP, and
 * SIGUSR1, which mpirun forwards where it would leave a second for other
 * signals.
 *
 * No handler runs on a thread that computes: compiled kernels of products'
 * libraries keep wide registers and stacks of their own, and a signal that came
 * in the middle of one was seen to end in a broken heap.  The signals are
 * blocked, and a thread waits for them.
 */
#ifndef RUNTIME_CKRUN_INTERRUPT_H
#define RUNTIME_CKRUN_INTERRUPT_H

#include <stdbool.h>

/* To be called before other threads begin, which inherit what is blocked. */
void interrupt_begin(void);
/* Whether a signal has come.  A second one ends the process at once. */
bool interrupted(void);

#endif
