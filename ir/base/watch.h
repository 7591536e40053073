/* When to leave off: what every long loop asks.
 *
 * Two things end a search before its counted work is spent.  The user
 * interrupts: nothing that is in the making is of use, and whoever notices
 * may return at once with whatever it has, as the runner throws that away.
 * Or the time that the user gave is over: then the best that was found so far
 * is the answer, so what was cut short must neither be taken for a proof nor
 * for a plan.
 */
#ifndef PASSES_WATCH_H
#define PASSES_WATCH_H

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
