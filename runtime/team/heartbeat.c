#include "runtime/team/heartbeat.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/team/same_launcher.h"


enum { BEAT = 250000000, PATIENCE = 12 };       /* ns, seconds */

struct heartbeat {
	pthread_t thread;
	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t changed;
	bool stop;
	atomic_uint *word;              /* NULL: none yet */
	double left;                    /* seconds of a limit; 0: there is
	                                 * none */
	double patience;                /* ... if a process of the same
	                                 * launcher is stopped */
	const char *message;
};

/* Counts beats, not time, so that a machine that slept has not waited. */
static void
check_watchdog(struct heartbeat *p)
{
	long stopped;

	if (p->left <= 0)
		return;
	p->left -= BEAT * 1e-9;
	stopped = same_launcher_stopped();
	if (stopped)
		p->patience -= BEAT * 1e-9;
	if (p->left > 0 && p->patience > 0)
		return;
	if (p->patience <= 0)
		dprintf(STDERR_FILENO, "ckr: %s: process %ld is stopped\n",
		        p->message, stopped);
	else
		dprintf(STDERR_FILENO, "ckr: %s\n", p->message);
	_exit(3);
}

static void *
beat(void *heartbeat)
{
	struct heartbeat *p = heartbeat;
	struct timespec t;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (p->word)
			atomic_fetch_add(p->word, 1);
		check_watchdog(p);
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += BEAT;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&p->changed, &p->lock, &t);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* Signals are the business of the program's own threads. */
static bool
start_thread(struct heartbeat *p)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&p->thread, NULL, beat, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

struct heartbeat *
heartbeat_start(void)
{
	struct heartbeat *p = calloc(1, sizeof(*p));
	pthread_condattr_t clock;

	if (!p)
		return NULL;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, &clock);
	if (start_thread(p))
		return p;
	free(p);
	return NULL;
}

void
heartbeat_stop(struct heartbeat *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	free(p);
}

void
heartbeat_set_word(struct heartbeat *p, atomic_uint *word)
{
	pthread_mutex_lock(&p->lock);
	p->word = word;
	pthread_mutex_unlock(&p->lock);
}

void
watchdog_set(struct heartbeat *p, double seconds, const char *message)
{
	pthread_mutex_lock(&p->lock);
	p->left = seconds;
	p->patience = seconds < 2 * PATIENCE ? seconds / 2 : PATIENCE;
	p->message = message;
	pthread_mutex_unlock(&p->lock);
}
