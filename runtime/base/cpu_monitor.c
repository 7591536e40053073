/* How long a thread was ready to run and did not is in
 * /proc/thread-self/schedstat.
 *
 * How libgomp waits is settled when the program starts, but for one rule (its
 * manual, GOMP_SPINCOUNT): a process that has more threads of OpenMP than
 * processors spins 100 times instead of 300,000, microseconds instead of
 * milliseconds.  So while processors are oversubscribed an idle OpenMP team of
 * extra threads exists.  To keep it always would cost a third of a step that
 * takes 0.1 ms: to sleep and be woken are calls of the system. */
#include "runtime/base/cpu_monitor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Oversubscription begins when threads wait for processors for this share of
 * the time, summed over them.  It ends when they do so for less than the other
 * share, or only as long as it takes to be woken. */
static const double BEGINS = 0.1, ENDS = 0.02;
enum { WAKING = 10000 };                /* ns */

/* Milliseconds between polls.  To read a thread's delays takes 2 us, which is
 * to be a thousandth of the time.  After a relapse
 * the end is polled for less often. */
enum { SOON = 8, PER_THREAD = 2, LATER = 100, LATEST = 1600, AGAIN = 1000 };

/* Summed over threads. */
struct sched_delays {
	uint64_t waited;                /* ns */
	uint64_t slices;                /* times that they were let run */
};

struct cpu_monitor {
	int threads;
	pid_t caller;                   /* whose OpenMP team `file` is of */
	int *file;                      /* schedstat of each thread, -1: none */
	struct sched_delays sum;        /* at `looked` */
	uint64_t looked, ended;         /* ns */
	uint64_t later;                 /* ms to the next poll while
	                                 * oversubscribed */
	bool oversubscribed;
	/* of an OpenMP run time that clang brings; NULL: none */
	void (*set_blocktime)(int ms);
	int blocktime;
};

/* ---- the idle team: one for the process ---- */

static struct {
	pthread_mutex_t transition;     /* held while the owner thread starts or
	                                 * ends */
	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t changed;
	pthread_t owner;
	int contexts;                   /* that are open; 0: no owner thread */
	int oversubscribed;             /* of them */
	int size;                       /* threads, the owner included */
} idle_team = { .transition = PTHREAD_MUTEX_INITIALIZER,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .changed = PTHREAD_COND_INITIALIZER };

static void
start_idle_team(int size)
{
	int here = 0;

#pragma omp parallel num_threads(size) reduction(+: here)
	here++;
	(void)here;
}

/* Ends its team by pausing all resources: to name those of the host alone has
 * libgomp look for other devices. */
static void *
run_idle_team(void *unused)
{
	bool started = false;

	pthread_mutex_lock(&idle_team.lock);
	while (idle_team.contexts || started) {
		bool wanted = idle_team.oversubscribed > 0;

		if (wanted == started) {
			pthread_cond_wait(&idle_team.changed, &idle_team.lock);
			continue;
		}
		pthread_mutex_unlock(&idle_team.lock);
		if (wanted)
			start_idle_team(idle_team.size);
		else
			omp_pause_resource_all(omp_pause_soft);
		started = wanted;
		pthread_mutex_lock(&idle_team.lock);
	}
	pthread_mutex_unlock(&idle_team.lock);
	return unused;
}

/* More than there are processors, with the threads of kernels; libgomp does
 * not count the owner. */
static int
idle_team_size(int threads)
{
	int size = omp_get_num_procs() - threads + 2;

	return size > 2 ? size : 2;
}

/* Signals are the business of the program's own threads. */
static bool
start_owner(void)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&idle_team.owner, NULL, run_idle_team, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool
idle_team_acquire(int threads)
{
	int size = idle_team_size(threads);
	bool ok = true;

	pthread_mutex_lock(&idle_team.transition);
	pthread_mutex_lock(&idle_team.lock);
	if (idle_team.contexts == 0 || size > idle_team.size)
		idle_team.size = size;
	if (idle_team.contexts == 0)
		ok = start_owner();
	idle_team.contexts += ok;
	pthread_mutex_unlock(&idle_team.lock);
	pthread_mutex_unlock(&idle_team.transition);
	return ok;
}

static void
idle_team_release(void)
{
	bool last;

	pthread_mutex_lock(&idle_team.transition);
	pthread_mutex_lock(&idle_team.lock);
	last = --idle_team.contexts == 0;
	pthread_cond_signal(&idle_team.changed);
	pthread_mutex_unlock(&idle_team.lock);
	if (last)
		pthread_join(idle_team.owner, NULL);
	pthread_mutex_unlock(&idle_team.transition);
}

static void
set_oversubscribed(struct cpu_monitor *c, bool oversubscribed)
{
	if (c->oversubscribed == oversubscribed)
		return;
	c->oversubscribed = oversubscribed;
	pthread_mutex_lock(&idle_team.lock);
	idle_team.oversubscribed += oversubscribed ? 1 : -1;
	pthread_cond_signal(&idle_team.changed);
	pthread_mutex_unlock(&idle_team.lock);
}

/* ---- delays ---- */

/* The time of the last tick, which is cheap to read: polls are frequent. */
static uint64_t
coarse_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* False: the thread is no more, or the system does not tell. */
static bool
add_thread_delays(int file, struct sched_delays *sum)
{
	char text[80];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);
	unsigned long long waited, slices;

	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &waited, &slices) != 2)
		return false;
	sum->waited += waited;
	sum->slices += slices;
	return true;
}

static bool
read_delays(const struct cpu_monitor *c, struct sched_delays *sum)
{
	*sum = (struct sched_delays){ 0 };
	for (int i = 0; i < c->threads; i++)
		if (!add_thread_delays(c->file[i], sum))
			return false;
	return true;
}

static void
close_files(struct cpu_monitor *c)
{
	for (int i = 0; i < c->threads; i++) {
		if (c->file[i] >= 0)
			close(c->file[i]);
		c->file[i] = -1;
	}
}

/* Open the files with the delays of the calling thread's OpenMP team. */
static bool
open_team_delays(struct cpu_monitor *c)
{
	close_files(c);
	c->caller = gettid();
	c->looked = coarse_now_ns();
#pragma omp parallel num_threads(c->threads)
	c->file[omp_get_thread_num()] = open("/proc/thread-self/schedstat",
	                                     O_RDONLY | O_CLOEXEC);
	return read_delays(c, &c->sum);
}

/* ---- both ---- */

static bool
user_sets_wait_policy(void)
{
	return getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT");
}

static void
find_blocktime(struct cpu_monitor *c, void *library)
{
	int (*get)(void);

	*(void **)&get = dlsym(library, "kmp_get_blocktime");
	*(void **)&c->set_blocktime = dlsym(library, "kmp_set_blocktime");
	if (get && c->set_blocktime)
		c->blocktime = get();
	else
		c->set_blocktime = NULL;
}

struct cpu_monitor *
cpu_monitor_open(int threads, void *library)
{
	struct cpu_monitor *c;

	if (threads < 2 || user_sets_wait_policy())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->threads = threads;
	c->later = LATER;
	c->file = malloc((size_t)threads * sizeof(*c->file));
	for (int i = 0; c->file && i < threads; i++)
		c->file[i] = -1;
	if (!c->file || !open_team_delays(c) || !idle_team_acquire(threads)) {
		if (c->file)
			close_files(c);
		free(c->file);
		free(c);
		return NULL;
	}
	if (library)
		find_blocktime(c, library);
	/* until it is known, and so that the idle team's memory is taken now */
	set_oversubscribed(c, true);
	return c;
}

void
cpu_monitor_close(struct cpu_monitor *c)
{
	if (!c)
		return;
	set_oversubscribed(c, false);
	idle_team_release();
	close_files(c);
	free(c->file);
	free(c);
}

/* Oversubscribed from now on, or no longer. */
static void
toggle_oversubscribed(struct cpu_monitor *c, uint64_t t)
{
	bool again = t - c->ended < AGAIN * UINT64_C(1000000);

	if (c->oversubscribed)
		c->ended = t;
	else
		c->later = !again ? LATER : c->later < LATEST ? 2 * c->later
		           : LATEST;
	set_oversubscribed(c, !c->oversubscribed);
}

static bool
detect_oversubscribed(const struct cpu_monitor *c, const struct sched_delays *d,
                      uint64_t ns)
{
	if (!c->oversubscribed)
		return (double)d->waited > BEGINS * (double)ns;
	return (double)d->waited > ENDS * (double)ns
	       && d->waited > WAKING * d->slices;
}

void
cpu_monitor_poll(struct cpu_monitor *c)
{
	uint64_t t, ms;
	struct sched_delays sum, d;

	if (!c)
		return;
	t = coarse_now_ns();
	ms = (t - c->looked) / 1000000;
	if (ms < SOON || ms < (uint64_t)c->threads * PER_THREAD
	    || (c->oversubscribed && ms < c->later))
		return;
	if (gettid() != c->caller || !read_delays(c, &sum)) {
		open_team_delays(c);
		return;
	}
	d.waited = sum.waited - c->sum.waited;
	d.slices = sum.slices - c->sum.slices;
	if (detect_oversubscribed(c, &d, t - c->looked) != c->oversubscribed)
		toggle_oversubscribed(c, t);
	c->sum = sum;
	c->looked = t;
	if (c->set_blocktime)
		c->set_blocktime(c->oversubscribed ? 0 : c->blocktime);
}
