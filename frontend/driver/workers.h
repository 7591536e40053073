/* Work in child processes, several at once. */
#ifndef FRONTEND_DRIVER_WORKERS_H
#define FRONTEND_DRIVER_WORKERS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct workers {
	/* in a child: fill the result of piece i, which is as it was before */
	void (*work)(void *of, int i, void *result);
	/* here: the child of piece i ended without a result, for a reason */
	void (*lost)(void *of, int i, const char *why);
	void *of;
	void *result;                   /* n of them, of `size` bytes each */
	size_t size;
	const volatile sig_atomic_t *stop;      /* not 0: end; NULL: never */
	double end;                     /* by now_sec: children are ended, and
	                                 * results stay as they were;
	                                 * 0: never */
	/* here, before the child of piece i starts, while others work; NULL:
	 * nothing */
	void (*prepare)(void *of, int i);
};

/* Do n pieces of work, at most as many at once as there are processors.  False:
 * interrupted. */
bool workers_run(const struct workers *, int n);

#endif
