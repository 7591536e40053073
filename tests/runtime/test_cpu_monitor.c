/* What is done when other processes want the processors: the clock and the
 * delays that the system tells are made up here, and what the run time does
 * then is seen from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cpu_monitor.h"

/* ---- the system, in place of libc's ---- */

static struct {
	uint64_t ns;                    /* time since the start */
	uint64_t waited, slices;        /* of every thread */
	int gone;                       /* so many reads fail */
} made_up;

int
clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	t->tv_sec = (time_t)(made_up.ns / 1000000000);
	t->tv_nsec = (long)(made_up.ns % 1000000000);
	return 0;
}

ssize_t
pread(int file, void *text, size_t n, off_t at)
{
	assert_true(file >= 0 && at == 0);
	if (made_up.gone > 0 && made_up.gone--)
		return -1;
	return snprintf(text, n, "123 %llu %llu\n",
	                (unsigned long long)made_up.waited,
	                (unsigned long long)made_up.slices);
}

/* So many milliseconds in which each thread waited that share of them, in so
 * many pieces. */
static void
pass(struct cpu_monitor *c, int ms, double share, int pieces)
{
	made_up.ns += (uint64_t)ms * 1000000;
	made_up.waited += (uint64_t)(share * ms * 1000000);
	made_up.slices += (uint64_t)pieces;
	cpu_monitor_poll(c);
}

static int
count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

/* Threads come and go in their own time. */
static void
expect_threads(int n)
{
	for (int i = 0; i < 10000 && count_threads() != n; i++)
		usleep(1000);
	assert_int_equal(count_threads(), n);
}

/* ---- tests ---- */

/* Of a team, and of the process with the chief. */
enum { THREADS = 2, ALONE = THREADS + 1 };

/* Of the process when the crew is there, too. */
static int
crowded(void)
{
	int procs = omp_get_num_procs();

	return ALONE + 1 + (procs > THREADS ? procs - THREADS : 0);
}

static struct cpu_monitor *
open_calm(int threads)
{
	struct cpu_monitor *c = cpu_monitor_open(threads, NULL);

	assert_non_null(c);
	pass(c, 100, 0, 0);
	expect_threads(threads + 1);
	return c;
}

/* The crew is there while threads wait for processors, and then no more. */
static void
test_hires(void **state)
{
	struct cpu_monitor *c = cpu_monitor_open(THREADS, NULL);

	(void)state;
	assert_non_null(c);
	expect_threads(crowded());
	cpu_monitor_close(c);
	c = open_calm(THREADS);
	pass(c, 8, 0.04, 1);            /* seldom enough */
	pass(c, 7, 0.9, 1);             /* too soon to look */
	expect_threads(ALONE);
	pass(c, 1, 0.9, 1);
	expect_threads(crowded());
	pass(c, 100, 0.02, 10);         /* 200 us each */
	expect_threads(crowded());
	pass(c, 100, 0.02, 1000);       /* 2 us each: no longer than waking */
	expect_threads(ALONE);
	cpu_monitor_close(c);
	expect_threads(THREADS);
}

/* Crowded again at once: its end is looked for less and less often. */
static void
test_doubles(void **state)
{
	struct cpu_monitor *c = open_calm(THREADS);

	(void)state;
	for (int later = 200; later < 6400; later *= 2) {
		int ms = later < 1600 ? later : 1600;

		pass(c, 10, 0.9, 1);
		expect_threads(crowded());
		pass(c, ms - 1, 0, 0);
		expect_threads(crowded());
		pass(c, 1, 0, 0);
		expect_threads(ALONE);
	}
	pass(c, 2000, 0, 0);
	pass(c, 10, 0.9, 1);            /* long after: as at first */
	expect_threads(crowded());
	pass(c, 100, 0, 0);
	expect_threads(ALONE);
	cpu_monitor_close(c);
}

static void *
look(void *crowd)
{
	pass(crowd, 8, 0.9, 1);
	pass(crowd, 8, 0.9, 1);
	return crowd;
}

/* Another thread calls, with a team of its own; a thread that was looked at
 * is no more. */
static void
test_other_team(void **state)
{
	struct cpu_monitor *c = open_calm(THREADS);
	pthread_t t;

	(void)state;
	made_up.gone = 1;
	pass(c, 8, 0.9, 1);
	expect_threads(ALONE);
	pass(c, 8, 0.9, 1);
	expect_threads(crowded());
	pass(c, 200, 0, 0);
	expect_threads(ALONE);
	assert_int_equal(pthread_create(&t, NULL, look, c), 0);
	pthread_join(t, NULL);
	expect_threads(crowded());
	cpu_monitor_close(c);
}

static void
test_nothing_to_do(void **state)
{
	(void)state;
	assert_null(cpu_monitor_open(1, NULL));
	setenv("OMP_WAIT_POLICY", "active", 1);
	assert_null(cpu_monitor_open(THREADS, NULL));
	unsetenv("OMP_WAIT_POLICY");
	made_up.gone = 1;
	assert_null(cpu_monitor_open(THREADS, NULL));
	cpu_monitor_poll(NULL);
	cpu_monitor_close(NULL);
	expect_threads(THREADS);
}

/* CPU time of the calling thread in ns. */
static int64_t
cpu_time(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return ((use.ru_utime.tv_sec + use.ru_stime.tv_sec) * INT64_C(1000000)
	        + use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000;
}

/* That of the one of two threads which waits for the other. */
static int64_t
waiting(void)
{
	int64_t ns = 0;

	for (int i = 0; i < 5; i++) {
#pragma omp parallel num_threads(THREADS) reduction(+: ns)
		if (omp_get_thread_num() == 0)
			usleep(50000);
		else
			ns -= cpu_time();
#pragma omp parallel num_threads(THREADS) reduction(+: ns)
		if (omp_get_thread_num() == 1)
			ns += cpu_time();
	}
	return ns;
}

/* It is OpenMP's run time that has to take the hint.  On one processor it
 * never spins. */
static void
test_sleeps(void **state)
{
	struct cpu_monitor *c;
	int64_t spinning, sleeping;

	(void)state;
	if (omp_get_num_procs() < THREADS)
		skip();
	c = open_calm(THREADS);
	spinning = waiting();
	pass(c, 10, 0.9, 1);
	expect_threads(crowded());
	sleeping = waiting();
	assert_true(2 * sleeping < spinning);
	cpu_monitor_close(c);
}

/* Far more threads than processors, and a crew that comes and goes. */
static void
test_same_sums(void **state)
{
	enum { MANY = 12, PARTS = 64 };
	struct cpu_monitor *c = open_calm(MANY);
	uint64_t sum[PARTS], right[PARTS];

	(void)state;
	for (uint64_t p = 0; p < PARTS; p++)
		sum[p] = right[p] = p;
	for (uint64_t round = 0; round < 200; round++) {
		pass(c, 2000, round & 1 ? 0.9 : 0, 1);
#pragma omp parallel for schedule(dynamic) num_threads(MANY)
		for (int p = 0; p < PARTS; p++)
			sum[p] = sum[p] * 31 + round;
#pragma omp parallel for num_threads(MANY)
		for (int p = 0; p < PARTS; p++)
			sum[p] ^= sum[p] >> 7;
		for (int p = 0; p < PARTS; p++) {
			right[p] = right[p] * 31 + round;
			right[p] ^= right[p] >> 7;
		}
	}
	assert_memory_equal(sum, right, sizeof(sum));
	cpu_monitor_close(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hires),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_other_team),
		cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_sleeps),
		cmocka_unit_test(test_same_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
