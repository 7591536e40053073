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
/* Before a call that waits for others and that nobody can look into: after
 * `seconds`, or sooner if a process beside this one is stopped, the process
 * ends with status 3 and this message.  0: it has returned. */
void watchdog_set(struct heartbeat *, double seconds, const char *message);

#endif
