/* A thread that works in the background, at the pace of a small share of a
 * core, while others compute. */
#ifndef RUNTIME_BASE_PACE_H
#define RUNTIME_BASE_PACE_H

#include <pthread.h>
#include <stdbool.h>

/* Of the time that goes by, in CPU time.  Where kernels occupy all cores, each
 * waits for the slowest thread: steps take so much longer, and as much again
 * for what has left the caches. */
#define PACE_SHARE 0.01
/* Seconds in which all the work is done, also if it takes a larger share. */
#define PACE_LONGEST 600.0

struct pace {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool hurry;                     /* somebody waits */
	double total, done;             /* work, in any unit */
	double begun, used;             /* seconds when it began: of the clock,
	                                 * and of the thread's CPU time */
};

/* Seconds to sleep after a share `done` of the work, which has taken `used`
 * seconds of CPU time and `elapsed` of the clock; not more than 0: none. */
double pace_seconds(double used, double elapsed, double done);

void pace_init(struct pace *);
void pace_destroy(struct pace *);
/* The calling thread begins so much work, unless it is already hurried. */
void pace_begin(struct pace *, double total);
/* It has done n more: sleep as long as the pace says.  NULL: no pace. */
void pace_rest(struct pace *, double n);
/* From any thread: somebody waits for the work.  It goes on without sleep until
 * pace_relax, which is called between works. */
void pace_hurry(struct pace *);
void pace_relax(struct pace *);

#endif
