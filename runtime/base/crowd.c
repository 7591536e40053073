/* How long a thread was ready to run and did not is in
 * /proc/thread-self/schedstat.
 *
 * How libgomp waits is settled when the program starts, but for one rule (its
 * manual, GOMP_SPINCOUNT): a process that has more threads of OpenMP than
 * processors spins 100 times instead of 300,000, microseconds instead of
 * milliseconds.  So a crew of threads that do nothing is hired for as long as
 * it is crowded.  To do so always would cost a third of a step that takes
 * 0.1 ms: to sleep and be woken are calls of the system. */
#include "runtime/base/crowd.h"

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

/* It begins to be crowded when threads wait for processors for this share of
 * the time, summed over them.  It ends when they do so for less than the other
 * share, or only as long as it takes to be woken. */
static const double BEGINS = 0.1, ENDS = 0.02;
enum { WAKING = 10000 };                /* ns */

/* Milliseconds between looks.  To read a thread's delays takes 2 us, which is
 * to be a thousandth of the time.  Whoever finds it crowded again at once
 * looks less often for the end of it. */
enum { SOON = 8, PER_THREAD = 2, LATER = 100, LATEST = 1600, AGAIN = 1000 };

/* Summed over threads. */
struct delays {
	uint64_t waited;                /* ns */
	uint64_t slices;                /* times that they were let run */
};

struct crowd {
	int threads;
	pid_t caller;                   /* whose team `file` is of */
	int *file;                      /* schedstat of each thread, -1: none */
	struct delays sum;              /* at `looked` */
	uint64_t looked, ended;         /* ns */
	uint64_t later;                 /* ms to the next look in a crowd */
	bool crowded;
	/* of an OpenMP run time that clang brings; NULL: none */
	void (*set_blocktime)(int ms);
	int blocktime;
};

/* ---- the crew: one for the process ---- */

static struct {
	pthread_mutex_t door;           /* held while the chief comes or goes */
	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t changed;
	pthread_t chief;
	int contexts;                   /* that are open; 0: no chief */
	int crowded;                    /* of them */
	int size;                       /* threads, the chief included */
} crew = { .door = PTHREAD_MUTEX_INITIALIZER,
           .lock = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER };

static void
hire(int size)
{
	int here = 0;

#pragma omp parallel num_threads(size) reduction(+: here)
	here++;
	(void)here;
}

/* Ends its team by pausing all resources: to name those of the host alone has
 * libgomp look for other devices. */
static void *
lead(void *unused)
{
	bool hired = false;

	pthread_mutex_lock(&crew.lock);
	while (crew.contexts || hired) {
		bool wanted = crew.crowded > 0;

		if (wanted == hired) {
			pthread_cond_wait(&crew.changed, &crew.lock);
			continue;
		}
		pthread_mutex_unlock(&crew.lock);
		if (wanted)
			hire(crew.size);
		else
			omp_pause_resource_all(omp_pause_soft);
		hired = wanted;
		pthread_mutex_lock(&crew.lock);
	}
	pthread_mutex_unlock(&crew.lock);
	return unused;
}

/* More than there are processors, with the threads of kernels; libgomp does
 * not count the chief. */
static int
crew_size(int threads)
{
	int size = omp_get_num_procs() - threads + 2;

	return size > 2 ? size : 2;
}

/* Signals are the business of the program's own threads. */
static bool
start_chief(void)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&crew.chief, NULL, lead, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool
crew_enter(int threads)
{
	int size = crew_size(threads);
	bool ok = true;

	pthread_mutex_lock(&crew.door);
	pthread_mutex_lock(&crew.lock);
	if (crew.contexts == 0 || size > crew.size)
		crew.size = size;
	if (crew.contexts == 0)
		ok = start_chief();
	crew.contexts += ok;
	pthread_mutex_unlock(&crew.lock);
	pthread_mutex_unlock(&crew.door);
	return ok;
}

static void
crew_leave(void)
{
	bool last;

	pthread_mutex_lock(&crew.door);
	pthread_mutex_lock(&crew.lock);
	last = --crew.contexts == 0;
	pthread_cond_signal(&crew.changed);
	pthread_mutex_unlock(&crew.lock);
	if (last)
		pthread_join(crew.chief, NULL);
	pthread_mutex_unlock(&crew.door);
}

static void
set_crowded(struct crowd *c, bool crowded)
{
	if (c->crowded == crowded)
		return;
	c->crowded = crowded;
	pthread_mutex_lock(&crew.lock);
	crew.crowded += crowded ? 1 : -1;
	pthread_cond_signal(&crew.changed);
	pthread_mutex_unlock(&crew.lock);
}

/* ---- delays ---- */

/* Of the last tick, as looks are many. */
static uint64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* False: the thread is no more, or the system does not tell. */
static bool
add_delays(int file, struct delays *sum)
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
read_delays(const struct crowd *c, struct delays *sum)
{
	*sum = (struct delays){ 0 };
	for (int i = 0; i < c->threads; i++)
		if (!add_delays(c->file[i], sum))
			return false;
	return true;
}

static void
close_files(struct crowd *c)
{
	for (int i = 0; i < c->threads; i++) {
		if (c->file[i] >= 0)
			close(c->file[i]);
		c->file[i] = -1;
	}
}

/* Of the calling thread's team. */
static bool
watch_team(struct crowd *c)
{
	close_files(c);
	c->caller = gettid();
	c->looked = now();
#pragma omp parallel num_threads(c->threads)
	c->file[omp_get_thread_num()] = open("/proc/thread-self/schedstat",
	                                     O_RDONLY | O_CLOEXEC);
	return read_delays(c, &c->sum);
}

/* ---- both ---- */

static bool
user_decides(void)
{
	return getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT");
}

static void
find_blocktime(struct crowd *c, void *library)
{
	int (*get)(void);

	*(void **)&get = dlsym(library, "kmp_get_blocktime");
	*(void **)&c->set_blocktime = dlsym(library, "kmp_set_blocktime");
	if (get && c->set_blocktime)
		c->blocktime = get();
	else
		c->set_blocktime = NULL;
}

struct crowd *
crowd_open(int threads, void *library)
{
	struct crowd *c;

	if (threads < 2 || user_decides())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->threads = threads;
	c->later = LATER;
	c->file = malloc((size_t)threads * sizeof(*c->file));
	for (int i = 0; c->file && i < threads; i++)
		c->file[i] = -1;
	if (!c->file || !watch_team(c) || !crew_enter(threads)) {
		if (c->file)
			close_files(c);
		free(c->file);
		free(c);
		return NULL;
	}
	if (library)
		find_blocktime(c, library);
	/* until it is known, and so that the crew's memory is taken now */
	set_crowded(c, true);
	return c;
}

void
crowd_close(struct crowd *c)
{
	if (!c)
		return;
	set_crowded(c, false);
	crew_leave();
	close_files(c);
	free(c->file);
	free(c);
}

/* Crowded from now on, or not. */
static void
turn(struct crowd *c, uint64_t t)
{
	bool again = t - c->ended < AGAIN * UINT64_C(1000000);

	if (c->crowded)
		c->ended = t;
	else
		c->later = !again ? LATER : c->later < LATEST ? 2 * c->later
		           : LATEST;
	set_crowded(c, !c->crowded);
}

static bool
is_crowded(const struct crowd *c, const struct delays *d, uint64_t ns)
{
	if (!c->crowded)
		return (double)d->waited > BEGINS * (double)ns;
	return (double)d->waited > ENDS * (double)ns
	       && d->waited > WAKING * d->slices;
}

void
crowd_look(struct crowd *c)
{
	uint64_t t, ms;
	struct delays sum, d;

	if (!c)
		return;
	t = now();
	ms = (t - c->looked) / 1000000;
	if (ms < SOON || ms < (uint64_t)c->threads * PER_THREAD
	    || (c->crowded && ms < c->later))
		return;
	if (gettid() != c->caller || !read_delays(c, &sum)) {
		watch_team(c);
		return;
	}
	d.waited = sum.waited - c->sum.waited;
	d.slices = sum.slices - c->sum.slices;
	if (is_crowded(c, &d, t - c->looked) != c->crowded)
		turn(c, t);
	c->sum = sum;
	c->looked = t;
	if (c->set_blocktime)
		c->set_blocktime(c->crowded ? 0 : c->blocktime);
}
