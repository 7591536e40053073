/* CPU oversubscription monitor: detects that other processes compete for the
 * processors, and adapts.
 *
 * OpenMP's threads wait for each other by spinning, which is best while each of
 * them has a processor.  Beside a busy process, the thread that the others wait
 * for is often not running, because they occupy its processor: steps then took
 * up to a hundred times as long.
 */
#ifndef RUNTIME_BASE_CPU_MONITOR_H
#define RUNTIME_BASE_CPU_MONITOR_H

struct cpu_monitor;

/* library: handle of the kernels' library, or NULL.  Returns NULL if there is
 * nothing to do, or if the user has set how OpenMP waits. */
struct cpu_monitor *cpu_monitor_open(int threads, void *library);
void cpu_monitor_close(struct cpu_monitor *);
/* To be called often, between kernels: measures now and then how long threads
 * waited for a processor, and makes OpenMP sleep instead of spin while that is
 * long.  The monitor may be NULL. */
void cpu_monitor_poll(struct cpu_monitor *);

#endif
