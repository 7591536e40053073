/* The host block and its lanes: beside the host, a file and threads; beside a
 * GPU, which here only writes down what it is told, streams and events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/offload/lane.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 1 << 12, UNITS = 16, BLOCK = UNIT * UNITS };

static struct device host = { .addressable = true };
static char folder[] = "/tmp/ckr-offload-XXXXXX";

/* ---- helpers ---- */

static struct offload *
open_block(uint32_t most, struct device *d)
{
	struct offload_options options = { .bytes = BLOCK, .most = most,
		.dir = folder };
	struct offload *o;
	struct err e = { .text = "" };

	if (offload_open(&o, d, &options, &e) != CKR_OK)
		fail_msg("%s", e.text);
	return o;
}

/* The descriptor of the file in the folder, which has no name there. */
static int
find_file(void)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *one;
	char path[300], to[300];
	int found = -1;

	while (all && (one = readdir(all)) != NULL) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", one->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[n < 0 ? 0 : n] = '\0';
		if (!strncmp(to, folder, strlen(folder))
		    && strlen(to) > strlen(folder))
			found = atoi(one->d_name);
	}
	closedir(all);
	return found;
}

static void
fill(char *unit, int byte)
{
	memset(unit, byte, UNIT);
}

static bool
holds(const char *unit, int byte)
{
	for (int i = 0; i < UNIT; i++)
		if ((unsigned char)unit[i] != byte)
			return false;
	return true;
}

static void
put(struct offload *o, int unit, int byte)
{
	char x[UNIT];
	struct err e;

	fill(x, byte);
	assert_int_equal(offload_write(o, offload_block(o) + unit * UNIT, x,
	                               UNIT, &e), CKR_OK);
}

static bool
has(struct offload *o, int unit, int byte)
{
	char x[UNIT];
	struct err e;

	assert_int_equal(offload_read(o, x, offload_block(o) + unit * UNIT,
	                              UNIT, &e), CKR_OK);
	return holds(x, byte);
}

static void
begin(struct offload *o, enum offload_lane lane, char *x, int unit,
      uint32_t end)
{
	offload_begin(o, lane, x, offload_block(o) + unit * UNIT, UNIT,
	              end - 1, end);
}

/* Whether there was something to wait for, on either lane. */
static bool
wait_for(struct offload *o, uint32_t i)
{
	struct err e = { .text = "" };
	bool any = false;
	int64_t begun;

	for (int k = 0; k < OFFLOAD_LANES; k++) {
		if (offload_wait(o, (enum offload_lane)k, i, &begun, &e))
			fail_msg("%s", e.text);
		any |= begun >= 0;
	}
	return any;
}

static ckr_status
try_wait(struct offload *o, enum offload_lane lane, uint32_t i, struct err *e)
{
	int64_t begun;

	return offload_wait(o, lane, i, &begun, e);
}

/* ---- the file ---- */

static void
file_is_allocated(void **unused)
{
	struct offload *o = open_block(1, &host);
	struct stat s;
	DIR *d = opendir(folder);
	int entries = 0;

	(void)unused;
	assert_int_equal(fstat(find_file(), &s), 0);
	assert_int_equal(s.st_size, BLOCK);
	assert_true(s.st_blocks * 512 >= BLOCK);
	assert_int_equal(s.st_nlink, 0);
	while (readdir(d))
		entries++;
	closedir(d);
	assert_int_equal(entries, 2);
	for (int i = 0; i < UNITS; i++)
		assert_true(has(o, i, 0));
	put(o, 3, 7);
	put(o, UNITS - 1, 9);
	assert_true(has(o, 2, 0) && has(o, 3, 7) && has(o, 4, 0));
	assert_true(has(o, UNITS - 1, 9));
	assert_string_equal(offload_dir(o), folder);
	offload_close(o);
	assert_int_equal(find_file(), -1);
	offload_close(NULL);
}

static void
file_cannot_be_made(void **unused)
{
	struct offload_options options = { .bytes = BLOCK, .dir = "/none/at/all" };
	struct offload *o;
	struct err e;

	(void)unused;
	assert_int_equal(offload_open(&o, &host, &options, &e), CKR_EIO);
	assert_non_null(strstr(e.text, "/none/at/all: cannot create a file"));
	offload_close(o);
	options.dir = folder;
	options.bytes = INT64_MAX / 2;
	assert_int_equal(offload_open(&o, &host, &options, &e), CKR_EIO);
	assert_non_null(strstr(e.text, "cannot allocate 4611686018427387903"));
	offload_close(o);
	assert_int_equal(find_file(), -1);
}

/* ---- lanes ---- */

/* With CKR_LATE the moment of each transfer is known: when somebody waits for
 * it or for one behind it. */
static void
late_jobs_run_when_waited_for(void **unused)
{
	char x[4][UNIT], y[UNIT];
	struct offload *o;
	struct err e;
	int64_t begun;

	(void)unused;
	setenv("CKR_LATE", "1", 1);
	o = open_block(4, &host);
	unsetenv("CKR_LATE");
	for (int k = 0; k < 4; k++) {
		put(o, k, k + 1);
		fill(x[k], 0);
	}
	begin(o, OFFLOAD_FETCH, x[0], 0, 5);
	begin(o, OFFLOAD_FETCH, x[1], 1, 3);
	begin(o, OFFLOAD_FETCH, x[2], 2, 9);
	begin(o, OFFLOAD_FETCH, x[3], 3, 9);
	fill(y, 77);
	begin(o, OFFLOAD_STORE, y, 8, 6);
	for (int k = 0; k < 4; k++)
		assert_true(holds(x[k], 0xff));
	assert_false(wait_for(o, 2));
	assert_true(holds(x[1], 0xff));
	/* one that ends later is in front */
	assert_int_equal(offload_wait(o, OFFLOAD_FETCH, 3, &begun, &e), CKR_OK);
	assert_int_equal(begun, 2);
	assert_true(holds(x[0], 1) && holds(x[1], 2) && holds(x[2], 0xff));
	assert_false(wait_for(o, 4));
	assert_false(wait_for(o, 5));
	assert_true(has(o, 8, 0));
	assert_true(wait_for(o, 8));
	assert_true(has(o, 8, 77) && holds(x[2], 0xff));
	assert_true(wait_for(o, UINT32_MAX));
	assert_true(holds(x[2], 3) && holds(x[3], 4));
	assert_false(wait_for(o, UINT32_MAX));
	offload_close(o);
}

/* The order of a lane is that of its beginnings; the ring is used again. */
static void
order_in_threads(void **unused)
{
	struct offload *o = open_block(3, &host);
	char in[3][UNIT], out[3][UNIT];

	(void)unused;
	for (int step = 0; step < 500; step++) {
		for (int k = 0; k < 3; k++) {
			fill(in[k], (step + k) % 251);
			/* all over one unit: the last one stays */
			begin(o, OFFLOAD_STORE, in[k], 5, (uint32_t)k);
		}
		assert_true(wait_for(o, 2));
		for (int k = 0; k < 3; k++)
			begin(o, OFFLOAD_FETCH, out[k], 5, 10 + (uint32_t)k);
		assert_true(wait_for(o, 12));
		for (int k = 0; k < 3; k++)
			assert_true(holds(out[k], (step + 2) % 251));
	}
	offload_close(o);
}

/* As updates do: each unit is fetched, changed and put back, while the next one
 * is fetched. */
static void
lanes_side_by_side(void **unused)
{
	static char x[UNITS][UNIT];
	struct offload *o = open_block(UNITS, &host);

	(void)unused;
	for (int step = 1; step <= 50; step++) {
		begin(o, OFFLOAD_FETCH, x[0], 0, 1);
		for (int k = 0; k < UNITS; k++) {
			uint32_t at = 2 * (uint32_t)k + 1;

			if (k + 1 < UNITS)
				begin(o, OFFLOAD_FETCH, x[k + 1], k + 1,
				      at + 2);
			wait_for(o, at);
			assert_true(holds(x[k], step - 1));
			fill(x[k], step);
			begin(o, OFFLOAD_STORE, x[k], k, 1000);
		}
		assert_true(wait_for(o, 1000));
	}
	for (int k = 0; k < UNITS; k++)
		assert_true(has(o, k, 50));
	offload_close(o);
}

static void
pending_jobs_do_not_keep_a_lane(void **unused)
{
	static char x[UNITS][UNIT];

	(void)unused;
	for (int i = 0; i < 50; i++) {
		struct offload *o = open_block(UNITS, &host);

		for (int k = 0; k < UNITS; k++)
			begin(o, OFFLOAD_FETCH, x[k], k, 1);
		offload_close(o);
	}
}

/* The first failure stays, and nothing is moved behind it. */
static void
failure_is_kept(void **late)
{
	struct offload *o;
	char x[UNIT], y[UNIT];
	struct err e;

	if (*late)
		setenv("CKR_LATE", "1", 1);
	o = open_block(4, &host);
	unsetenv("CKR_LATE");
	put(o, 0, 3);
	assert_int_equal(ftruncate(find_file(), 3 * UNIT + 100), 0);
	fill(x, 1);
	fill(y, 1);
	begin(o, OFFLOAD_FETCH, x, 3, 1);
	begin(o, OFFLOAD_FETCH, y, 0, 2);
	assert_int_equal(try_wait(o, OFFLOAD_FETCH, 1, &e), CKR_EIO);
	assert_non_null(strstr(e.text, ": cannot read offloaded values: the "
	                       "file is too short: expected 3996 bytes more at "
	                       "12388"));
	e.text[0] = '\0';
	assert_int_equal(try_wait(o, OFFLOAD_FETCH, 2, &e), CKR_EIO);
	assert_non_null(strstr(e.text, "too short"));
	assert_false(holds(y, 3));
	/* the other lane works */
	begin(o, OFFLOAD_STORE, y, 1, 7);
	assert_int_equal(try_wait(o, OFFLOAD_STORE, 7, &e), CKR_OK);
	begin(o, OFFLOAD_FETCH, x, 0, 8);
	assert_int_equal(try_wait(o, OFFLOAD_FETCH, 8, &e), CKR_EIO);
	/* what the host copies would be that of no step */
	e.text[0] = '\0';
	assert_int_equal(offload_read(o, x, offload_block(o), UNIT, &e),
	                 CKR_EIO);
	assert_non_null(strstr(e.text, "too short"));
	assert_int_equal(offload_write(o, offload_block(o), x, UNIT, &e),
	                 CKR_EIO);
	offload_close(o);
}

static void
writes_fail(void **unused)
{
	struct offload *o = open_block(1, &host);
	char x[UNIT] = { 0 };
	struct err e;
	int here = find_file(), reader = open("/dev/null", O_RDONLY);

	(void)unused;
	assert_true(reader >= 0 && dup2(reader, here) == here);
	close(reader);
	begin(o, OFFLOAD_STORE, x, 2, 0);
	assert_int_equal(try_wait(o, OFFLOAD_STORE, 0, &e), CKR_EIO);
	assert_non_null(strstr(e.text, ": cannot write offloaded values: "));
	offload_close(o);
}

/* ---- a GPU ---- */

static struct {
	char text[4000];
	size_t n;
	int events;
} told;

static void
tell(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	told.n += (size_t)vsnprintf(told.text + told.n,
	                            sizeof(told.text) - told.n, fmt, args);
	va_end(args);
	assert_true(told.n < sizeof(told.text));
}

static const char *
stream_name(enum device_stream s)
{
	static const char *const name[] = { "compute", "copy", "fetch",
		"offload" };

	return name[s];
}

static void *
event_new(struct device *d)
{
	(void)d;
	return calloc(1, (size_t)++told.events);
}

static void
event_free(struct device *d, void *event)
{
	(void)d;
	told.events -= event != NULL;
	free(event);
}

/* Events are named in the order in which they are first recorded. */
static int
event_name(void *event)
{
	static void *seen[100];
	int n = 0;

	while (seen[n] && seen[n] != event)
		n++;
	seen[n] = event;
	return n;
}

static void
event_record(struct device *d, void *event, enum device_stream s)
{
	(void)d;
	tell("%d on %s\n", event_name(event), stream_name(s));
}

static void
event_wait(struct device *d, void *event, enum device_stream s)
{
	(void)d;
	tell("%s waits for %d\n", stream_name(s), event_name(event));
}

static void
fetch_async(struct device *d, void *to, const void *from, uint64_t n)
{
	(void)d;
	(void)to;
	(void)n;
	tell("fetch %d\n", *(const char *)from);
}

static void
offload_async(struct device *d, void *to, const void *from, uint64_t n)
{
	(void)d;
	(void)from;
	(void)n;
	tell("offload %d\n", *(const char *)to);
}

static void *
alloc_pinned(struct device *d, uint64_t n)
{
	(void)d;
	return calloc(1, n);
}

static void
free_pinned(struct device *d, void *p)
{
	(void)d;
	free(p);
}

static void
sync_device(struct device *d)
{
	(void)d;
	tell("sync\n");
}

static const struct device_calls calls = { .alloc_pinned = alloc_pinned,
	.free_pinned = free_pinned, .sync = sync_device,
	.fetch_async = fetch_async, .offload_async = offload_async,
	.event_new = event_new, .event_free = event_free,
	.event_record = event_record, .event_wait = event_wait };

static void
check_told(const char *expected)
{
	assert_string_equal(told.text, expected);
	told.n = 0;
	told.text[0] = '\0';
}

/* A transfer begins behind what was enqueued before, and what is enqueued
 * behind its end runs behind it. */
static void
events_order_streams(void **unused)
{
	struct device gpu = { .call = &calls };
	struct offload *o = open_block(2, &gpu);
	char x[UNIT];

	(void)unused;
	assert_null(offload_dir(o));
	for (int k = 0; k < UNITS; k++)
		offload_block(o)[k * UNIT] = (char)k;
	begin(o, OFFLOAD_FETCH, x, 4, 1);
	check_told("0 on compute\nfetch waits for 0\nfetch 4\n1 on fetch\n");
	begin(o, OFFLOAD_STORE, x, 5, 2);
	check_told("2 on compute\noffload waits for 2\noffload 5\n"
	           "3 on offload\n");
	begin(o, OFFLOAD_FETCH, x, 6, 2);
	check_told("0 on compute\nfetch waits for 0\nfetch 6\n4 on fetch\n");
	assert_false(wait_for(o, 0));
	check_told("");
	assert_true(wait_for(o, 1));
	check_told("compute waits for 1\n");
	assert_true(wait_for(o, 2));
	check_told("compute waits for 4\ncompute waits for 3\n");
	assert_false(wait_for(o, 2));
	check_told("");
	/* the first event again */
	begin(o, OFFLOAD_FETCH, x, 7, 3);
	check_told("0 on compute\nfetch waits for 0\nfetch 7\n1 on fetch\n");
	assert_true(wait_for(o, UINT32_MAX));
	check_told("compute waits for 1\n");
	put(o, 1, 9);
	check_told("sync\n");
	assert_true(has(o, 1, 9));
	check_told("sync\n");
	offload_close(o);
	assert_int_equal(told.events, 0);
}

int
main(void)
{
	static int late = 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_is_allocated),
		cmocka_unit_test(file_cannot_be_made),
		cmocka_unit_test(late_jobs_run_when_waited_for),
		cmocka_unit_test(order_in_threads),
		cmocka_unit_test(lanes_side_by_side),
		cmocka_unit_test(pending_jobs_do_not_keep_a_lane),
		cmocka_unit_test(failure_is_kept),
		cmocka_unit_test_prestate(failure_is_kept, &late),
		cmocka_unit_test(writes_fail),
		cmocka_unit_test(events_order_streams),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
