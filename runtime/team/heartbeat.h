/* Heartbeat: a thread increments a word of shared memory, by which the other
 * processes of the machine see that this one runs. */
#ifndef RUNTIME_TEAM_HEARTBEAT_H
#define RUNTIME_TEAM_HEARTBEAT_H

#include <stdatomic.h>
#include <stdbool.h>

struct heartbeat;

/* NULL: no memory, or no thread. */
struct heartbeat *heartbeat_start(void);
void heartbeat_stop(struct heartbeat *);
void heartbeat_set_word(struct heartbeat *, atomic_uint *word);
/* Before a library call that waits for other processes and cannot be polled:
 * after `seconds`, or sooner if another local process is stopped, the process
 * ends with status 3 and this message.  seconds 0: the call has returned. */
void watchdog_set(struct heartbeat *, double seconds, const char *message);

#endif
