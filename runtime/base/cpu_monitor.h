/* CPU oversubscription monitor: detects that other processes compete for the
 * processors, and adapts.
 *
 * Threads of OpenMP wait for each other by spinning, which is right while each
 * has a processor to itself.  Beside a busy process the one that is waited for
 * is often not running, and those who wait may be what keeps it from it: steps
 * were seen to take a hundred times as long.
 *
 * Knows: OpenMP, and what Linux tells of a thread.  Must not know: models. */
#ifndef RUNTIME_BASE_CPU_MONITOR_H
#define RUNTIME_BASE_CPU_MONITOR_H

struct cpu_monitor;

/* For kernels on so many threads, of a library that dlopen gave (NULL: none).
 * NULL: there is nothing to do, or the user has set how OpenMP waits. */
struct cpu_monitor *cpu_monitor_open(int threads, void *library);
void cpu_monitor_close(struct cpu_monitor *);
/* To be called between kernels, often: finds out now and then how long threads
 * waited for a processor, and has OpenMP wait asleep while that is long.
 * The monitor may be NULL. */
void cpu_monitor_poll(struct cpu_monitor *);

#endif
