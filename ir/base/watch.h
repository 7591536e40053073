/* When to stop: polled by every long loop.
 *
 * Two events end a search before its counted work is done.  If the user
 * interrupts, results are discarded, so a function may return anything at once.
 * If the time limit has passed, the best result so far is the answer, and
 * unfinished work counts neither as a proof nor as a plan.
 */
#ifndef IR_BASE_WATCH_H
#define IR_BASE_WATCH_H

#include <signal.h>
#include <stdbool.h>

struct watch {
	const volatile sig_atomic_t *stop;      /* not 0: interrupted; NULL:
	                                         * never */
	double end;                     /* by now_sec; 0: no limit */
	bool late;                      /* the end has been seen */
};

/* NULL stands for work that nothing ends. */
static inline bool
watch_off(const struct watch *w)
{
	return w && w->stop && *w->stop;
}

/* Interrupted, or out of time; costs a look at the clock. */
bool watch_over(struct watch *);
/* Seconds until then; INFINITY: no limit. */
double watch_left(const struct watch *);
/* From now on so many seconds; the first call counts. */
void watch_begin(struct watch *, double sec);

#endif
