#include "runtime/base/pace.h"

#include <time.h>

#include "runtime/support/now.h"

static double
thread_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double
pace_seconds(double used, double elapsed, double done)
{
	double due = used / PACE_SHARE, last = done * PACE_LONGEST;

	return (due < last ? due : last) - elapsed;
}

void
pace_init(struct pace *p)
{
	pthread_condattr_t attr;

	*p = (struct pace){ .hurry = false };
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
}

void
pace_destroy(struct pace *p)
{
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

void
pace_begin(struct pace *p, double total)
{
	p->total = total;
	p->done = 0;
	p->begun = now_sec();
	p->used = thread_seconds();
}

static struct timespec
time_after(double seconds)
{
	double t = now_sec() + seconds;
	time_t whole = (time_t)t;

	return (struct timespec){ whole, (long)(1e9 * (t - (double)whole)) };
}

void
pace_rest(struct pace *p, double n)
{
	struct timespec until;
	double seconds;

	if (!p)
		return;
	p->done += n;
	seconds = pace_seconds(thread_seconds() - p->used, now_sec() - p->begun,
	                       p->total > 0 ? p->done / p->total : 1);
	if (seconds <= 0)
		return;
	until = time_after(seconds);
	pthread_mutex_lock(&p->lock);
	while (!p->hurry
	       && !pthread_cond_timedwait(&p->wake, &p->lock, &until))
		;
	pthread_mutex_unlock(&p->lock);
}

void
pace_hurry(struct pace *p)
{
	pthread_mutex_lock(&p->lock);
	p->hurry = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

void
pace_relax(struct pace *p)
{
	pthread_mutex_lock(&p->lock);
	p->hurry = false;
	pthread_mutex_unlock(&p->lock);
}
