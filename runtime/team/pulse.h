/* A thread that shows the other processes of a machine that this one runs: it
 * counts a word in memory that they share. */
#ifndef CKR_PULSE_H
#define CKR_PULSE_H

#include <stdatomic.h>
#include <stdbool.h>

struct pulse;

/* NULL: no memory, or no thread. */
struct pulse *pulse_start(void);
void pulse_stop(struct pulse *);
void pulse_count(struct pulse *, atomic_uint *word);
/* Before a call that waits for others and that nobody can look into: after
 * `seconds`, or sooner if a process beside this one is stopped, the process
 * ends with status 3 and this message.  0: it has returned. */
void pulse_limit(struct pulse *, double seconds, const char *message);

#endif
