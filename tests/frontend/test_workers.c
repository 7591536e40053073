/* Work in child processes: results, children that end without one, an
 * interruption. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend/driver/workers.h"
#include "runtime/support/now.h"

enum { N = 20, KILLED = 7, ENDED = 11 };

struct result {
	int in, out;
	char room[2000];                /* more than one write may take */
};

struct pieces {
	struct result r[N];
	int lost[N];
	char why[200];
};

static void
square(void *of, int i, void *result)
{
	struct result *r = result;

	(void)of;
	if (i == KILLED)
		raise(SIGKILL);
	if (i == ENDED)
		_exit(3);
	r->out = r->in * r->in;
	memset(r->room, i, sizeof r->room);
}

static void
lose(void *of, int i, const char *why)
{
	struct pieces *p = of;

	p->lost[i]++;
	if (i == ENDED)
		snprintf(p->why, sizeof p->why, "%s", why);
}

static void
test_results(void **state)
{
	static struct pieces p;
	const struct workers w = { .work = square, .lost = lose, .of = &p,
		.result = p.r, .size = sizeof *p.r };

	(void)state;
	for (int i = 0; i < N; i++)
		p.r[i].in = i + 1;
	assert_true(workers_run(&w, N));
	for (int i = 0; i < N; i++) {
		bool lost = i == KILLED || i == ENDED;

		assert_int_equal(p.lost[i], lost);
		assert_int_equal(p.r[i].out, lost ? 0 : (i + 1) * (i + 1));
		assert_int_equal(p.r[i].room[1999], lost ? 0 : i);
	}
	assert_non_null(strstr(p.why, "status 3"));
}

static void
test_interrupted(void **state)
{
	static struct pieces p;
	volatile sig_atomic_t stop = 1;
	const struct workers w = { .work = square, .lost = lose, .of = &p,
		.result = p.r, .size = sizeof *p.r, .stop = &stop };

	(void)state;
	assert_false(workers_run(&w, N));
	assert_int_equal(p.lost[0], 0);
}

static void
sleep_or_square(void *of, int i, void *result)
{
	if (i % 2)
		sleep(60);
	square(of, i, result);
}

static void
test_late(void **state)
{
	static struct pieces p;
	const struct workers w = { .work = sleep_or_square, .lost = lose,
		.of = &p, .result = p.r, .size = sizeof *p.r,
		.end = now_sec() + 1 };
	double began = now_sec();

	(void)state;
	p.r[0].in = 5;
	assert_true(workers_run(&w, 4));
	assert_true(now_sec() - began < 30);
	assert_int_equal(p.r[0].out, 25);
	assert_int_equal(p.r[1].out, 0);
	assert_int_equal(p.lost[1], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
