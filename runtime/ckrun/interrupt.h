/* Signals that end a run after its current step: Ctrl-C, SIGTERM, SIGHUP, and
 * SIGUSR1, which mpirun forwards where it would leave a second for other
 * signals.
 *
 * No handler runs on a thread that computes: kernels of BLAS libraries use wide
 * registers and their own stacks, and a signal in the middle of one corrupted
 * the heap.  So the signals are blocked, and a thread waits for them.
 */
#ifndef RUNTIME_CKRUN_INTERRUPT_H
#define RUNTIME_CKRUN_INTERRUPT_H

#include <stdbool.h>

/* To be called before other threads start, which inherit the blocked signals.
 */
void interrupt_begin(void);
/* Whether a signal has come.  A second one ends the process at once. */
bool interrupted(void);

#endif
